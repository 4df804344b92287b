import { createRootRoute, createRoute, createRouter, redirect, type RouterHistory } from '@tanstack/react-router';

import { AgentsPage } from '../features/agents/page';
import { CompilePage } from '../features/compiles/detail';
import { CompilesPage } from '../features/compiles/page';
import { EnvironmentsPage } from '../features/environments/page';
import { FactsPage } from '../features/facts/page';
import { JourneysPage } from '../features/journeys/page';
import { NotificationsPage } from '../features/notifications/page';
import { RepositoriesPage } from '../features/repositories/page';
import { ResourcePage } from '../features/resources/detail';
import { ResourcesPage, resourceSearch } from '../features/resources/page';
import { ServerPage } from '../features/server/page';
import { SettingsPage } from '../features/settings/page';
import { VersionPage, versionSearch } from '../features/versions/detail';
import { VersionsPage } from '../features/versions/page';
import { Broken, NotFound, Shell } from './shell';

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: Broken });
const index = createRoute({ getParentRoute: () => root, path: '/', beforeLoad: () => { throw redirect({ to: '/environments' }); } }); // prettier-ignore
const environments = createRoute({ getParentRoute: () => root, path: '/environments', component: EnvironmentsPage });
const repositories = createRoute({ getParentRoute: () => root, path: '/repositories', component: RepositoriesPage });
const server = createRoute({ getParentRoute: () => root, path: '/server', component: ServerPage });
const environment = createRoute({ getParentRoute: () => root, path: '/environments/$environment' });
const journeys = createRoute({ getParentRoute: () => environment, path: '/', component: JourneysPage });
const resources = createRoute({
  getParentRoute: () => environment,
  path: '/resources',
  component: ResourcesPage,
  validateSearch: resourceSearch,
});
const resource = createRoute({ getParentRoute: () => environment, path: '/resources/$id', component: ResourcePage });
const versions = createRoute({ getParentRoute: () => environment, path: '/versions', component: VersionsPage });
const version = createRoute({
  getParentRoute: () => environment,
  path: '/versions/$version',
  component: VersionPage,
  validateSearch: versionSearch,
});
const compiles = createRoute({ getParentRoute: () => environment, path: '/compiles', component: CompilesPage });
const compile = createRoute({ getParentRoute: () => environment, path: '/compiles/$id', component: CompilePage });
const agents = createRoute({ getParentRoute: () => environment, path: '/agents', component: AgentsPage });
const facts = createRoute({ getParentRoute: () => environment, path: '/facts', component: FactsPage });
const settings = createRoute({ getParentRoute: () => environment, path: '/settings', component: SettingsPage });
const notifications = createRoute({
  getParentRoute: () => environment,
  path: '/notifications',
  component: NotificationsPage,
});

const tree = root.addChildren([
  index,
  environments,
  repositories,
  server,
  environment.addChildren([
    journeys,
    resources,
    resource,
    versions,
    version,
    compiles,
    compile,
    agents,
    facts,
    settings,
    notifications,
  ]),
]);

/** The console's routes; tests bring a history of their own. */
export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: tree,
    basepath: '/console',
    scrollRestoration: true,
    ...(history ? { history } : {}),
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
