import { HttpResponse, http, type HttpHandler } from 'msw';
import { setupServer } from 'msw/node';

/** The environment that all page tests are about. */
export const environmentId = '5f2d3c1e-8a44-4f0e-9a53-1b7c00000001';

export const moment = '2026-03-01T10:00:00.000000+00:00';

export const revision = {
  repository: 'shop',
  ref: 'refs/heads/main',
  commit: '8e8441a7d7204fd91e16adc7f38dd41083787778',
  author: 'Ada Lovelace <ada@example.org>',
  message: 'Add a fourth web server',
  committed_at: moment,
};

export const environment = {
  id: environmentId,
  name: 'production',
  project_id: '5f2d3c1e-8a44-4f0e-9a53-1b7c00000002',
  project_name: 'shop',
  repo_url: 'https://git.example.org/shop/infra.git',
  repo_branch: 'main',
  repo_path: '',
  repository: 'shop',
  settings: {},
  halted: false,
  is_marked_for_deletion: false,
  description: null,
  icon: null,
  revision,
  last_version: 3,
  released_version: 3,
  compiling: false,
  deploy_summary: { total: 3, by_state: { deployed: 2, failed: 1 } },
};

/** Answers a GET with data in the API's envelope. */
export function answer(path: string, data: unknown, more: Record<string, unknown> = {}): HttpHandler {
  return http.get(path, () => HttpResponse.json({ data, ...more }));
}

/** Answers a GET with a refusal. */
export function refuse(path: string, status: number, message: string): HttpHandler {
  return http.get(path, () => HttpResponse.json({ message }, { status }));
}

/** Never answers a GET. */
export function hang(path: string): HttpHandler {
  return http.get(path, () => new Promise<never>(() => undefined));
}

/** What the frame around every page reads. */
export const server = setupServer(
  answer('/api/v3/environment/:id', environment),
  answer('/api/v2/notification', []),
  answer('/api/v2/project', [{ id: environment.project_id, name: 'shop', environments: [] }]),
);
