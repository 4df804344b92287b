import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, moment, refuse, server } from '../../test/server';

const id = 'std::File[web1,path=/etc/site.conf]';

const resource = {
  resource_id: id,
  resource_version_id: `${id},v=3`,
  id_details: {
    resource_type: 'std::File',
    agent: 'web1',
    attribute: 'path',
    resource_id_value: '/etc/site.conf',
  },
  requires: ['std::Directory[web1,path=/etc]'],
  status: 'failed',
};

const list = '/api/v2/resource';
const metadata = {
  total: 51,
  before: 0,
  after: 50,
  deploy_summary: { total: 51, by_state: { deployed: 50, failed: 1 } },
};
describePage('resources', {
  path: inEnvironment('/resources'),
  endpoint: list,
  full: [answer(list, [resource], { metadata, links: { next: '/api/v2/resource?start=b&first_id=x' } })],
  empty: { handlers: [answer(list, [])], title: 'No resources' },
  shows: async () => {
    expect(await screen.findByRole('link', { name: '/etc/site.conf' })).toBeTruthy();
    expect(screen.getByRole('img', { name: '50 deployed, 1 failed' })).toBeTruthy();
    expect(screen.getByText('1–1 of 51')).toBeTruthy();
    expect(screen.getByRole('columnheader', { name: /Type/ }).getAttribute('aria-sort')).toBe('ascending');
  },
});

test('filters, the order and the page are in the request and in the address', async () => {
  const asked: URLSearchParams[] = [];
  server.use(
    http.get(list, ({ request }) => {
      asked.push(new URL(request.url).searchParams);
      return HttpResponse.json({
        data: [resource],
        metadata,
        links: { next: '/api/v2/resource?limit=50&start=std%3A%3AFile&first_id=x' },
      });
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/resources?status=failed'));
  await screen.findByRole('link', { name: '/etc/site.conf' });
  expect(asked.at(-1)?.get('filter.status')).toBe('failed');
  await user.type(screen.getByRole('searchbox', { name: 'Agent' }), 'web');
  await expect.poll(() => asked.at(-1)?.get('filter.agent')).toBe('web');
  await user.click(within(screen.getByRole('columnheader', { name: /Value/ })).getByRole('button'));
  await expect.poll(() => asked.at(-1)?.get('sort')).toBe('resource_id_value.asc');
  await user.click(screen.getByRole('button', { name: 'Next' }));
  await expect.poll(() => asked.at(-1)?.get('first_id')).toBe('x');
  await user.click(screen.getByRole('button', { name: 'Clear filters' }));
  await expect.poll(() => asked.at(-1)?.get('filter.status')).toBe('!orphaned');
  expect(asked.at(-1)?.has('filter.agent')).toBe(false);
});

test('a filter that nothing passes says so', async () => {
  server.use(answer(list, []));
  visit(inEnvironment('/resources?value=nowhere'));
  expect(await screen.findByRole('heading', { name: 'No resource passes the filter' })).toBeTruthy();
});

const one = '/api/v3/resource/:id';
const view = {
  resource_id: id,
  resource_type: 'std::File',
  agent: 'web1',
  id_attribute: 'path',
  id_attribute_value: '/etc/site.conf',
  attributes: { path: '/etc/site.conf', owner: '', permissions: 644, requires: ['std::Directory[web1,path=/etc]'] },
  last_deploy: moment,
  first_generated_time: moment,
  status: 'failed',
  requires_status: { 'std::Directory[web1,path=/etc]': 'deployed' },
  provides_status: {},
  version: 3,
  compliance: 'non_compliant',
  last_handler_run: 'failed',
  blocked: 'not_blocked',
  last_success: null,
  deployed_version: 2,
  attribute_hash: '0ffd8aaf',
  failures_in_a_row: 2,
  orphaned_after: 0,
};
const run = {
  environment: environmentId,
  version: 3,
  resource_version_ids: [`${id},v=3`],
  action_id: 'a1',
  action: 'deploy',
  started: moment,
  finished: moment,
  messages: [{ level: 'ERROR', msg: 'permission denied', args: [], kwargs: {}, timestamp: moment }],
  status: 'failed',
  changes: { [`${id},v=3`]: { permissions: { current: 600, desired: 644 } } },
  change: 'nochange',
  send_event: false,
  reason: 'version 3 was released',
  trace_id: 't',
  code: 'handler',
};
const history = [
  { resource_id: id, date: moment, attributes: { permissions: 644 }, attribute_hash: 'b', requires: [], version: 3 },
  { resource_id: id, date: moment, attributes: { permissions: 640 }, attribute_hash: 'a', requires: [], version: 1 },
];
const log = {
  ...run.messages[0],
  level: 'INFO',
  msg: 'it was looked at',
  action_id: 'a1',
  action: 'deploy',
  version: 3,
};
const full = [
  answer(one, view),
  answer(`${one}/explain`, {
    resource_id: id,
    summary: 'Its last run failed (2 in a row).',
    reasons: [{ code: 'backoff', text: 'It is tried again after a delay.', until: moment }],
  }),
  answer(`${one}/actions`, [run, { ...run, action_id: 'a0', action: 'store', status: null, reason: 'stored' }]),
  answer('/api/v2/resource/:id/history', history),
  answer('/api/v2/resource/:id/logs', [log]),
];
describePage('a resource', {
  path: inEnvironment(`/resources/${encodeURIComponent(id)}`),
  endpoint: one,
  full,
  shows: async () => {
    expect(await screen.findByRole('heading', { name: '/etc/site.conf', level: 1 })).toBeTruthy();
    const why = await screen.findByRole('alert');
    expect(why.textContent).toContain('Its last run failed (2 in a row).');
    await expect.poll(() => why.textContent).toContain('permission denied');
    expect(screen.getByRole('link', { name: 'std::Directory[web1,path=/etc]' })).toBeTruthy();
    expect(screen.getByRole('tabpanel', { name: 'Desired state' }).textContent).toContain('permissions644');
  },
});

test('runs, history and log are a tab away, with the keyboard too', async () => {
  server.use(...full);
  const user = userEvent.setup();
  visit(inEnvironment(`/resources/${encodeURIComponent(id)}`));
  await user.click(await screen.findByRole('tab', { name: 'Runs' }));
  const runs = screen.getByRole('tabpanel', { name: 'Runs' });
  expect(await within(runs).findByText('Version 3 was released')).toBeTruthy();
  expect(within(runs).queryByText('Stored')).toBeNull(); // that a version was stored is no run
  expect(within(runs).getByRole('table').textContent).toContain('permissions600644');
  await user.keyboard('{ArrowRight}');
  const past = screen.getByRole('tabpanel', { name: 'History' });
  expect((await within(past).findByRole('table')).textContent).toContain('permissions640644');
  await user.keyboard('{ArrowRight}');
  expect(await screen.findByText('it was looked at')).toBeTruthy();
});

test('without an explanation the page is there all the same', async () => {
  server.use(refuse(`${one}/explain`, 404, 'unknown'), ...full);
  visit(inEnvironment(`/resources/${encodeURIComponent(id)}`));
  expect(await screen.findByRole('tab', { name: 'Runs' })).toBeTruthy();
  expect(screen.queryByRole('alert')).toBeNull();
});
