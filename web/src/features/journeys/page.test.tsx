import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, inEnvironment, visit } from '../../test/page';
import { answer, environment, environmentId, moment, revision, server } from '../../test/server';

const endpoint = '/api/v3/journey';

const converged = {
  environment: environmentId,
  revision,
  trace_id: 't',
  phase: 'converged',
  reason: 'push to refs/heads/main',
  received_at: '2026-03-01T10:00:00.000000+00:00',
  requested_at: '2026-03-01T10:00:00.100000+00:00',
  compile_id: 'c1',
  compile_status: 'succeeded',
  started_at: '2026-03-01T10:00:00.200000+00:00',
  finished_at: '2026-03-01T10:00:00.320000+00:00',
  version: 3,
  stored_at: moment,
  released_at: moment,
  total: 40,
  deployed: 40,
  failed: 0,
  waiting: 0,
  blocked: 0,
  first_deploy_at: '2026-03-01T10:00:01.000000+00:00',
  last_deploy_at: '2026-03-01T10:00:04.000000+00:00',
  converged_at: '2026-03-01T10:00:05.000000+00:00',
  error: '',
  seconds: 5,
};
const deploying = {
  ...converged,
  compile_id: 'c2',
  revision: { ...revision, message: 'Roll out' },
  phase: 'deploying',
  deployed: 37,
  waiting: 3,
  converged_at: null,
};
const stuck = { ...deploying, compile_id: 'c3', revision: { ...revision, message: 'Stuck' }, waiting: 0, failed: 3 };
const failed = {
  ...converged,
  compile_id: 'c4',
  revision: { ...revision, message: 'Broken' },
  phase: 'failed',
  compile_status: 'failed',
  version: 0,
  total: 0,
  deployed: 0,
  released_at: null,
  first_deploy_at: null,
  converged_at: null,
};

describePage('journey', {
  path: inEnvironment(),
  endpoint,
  full: [answer(endpoint, [deploying, stuck, failed, converged])],
  empty: { handlers: [answer(endpoint, [])], title: 'Nothing has been pushed yet' },
  shows: async () => {
    const done = await screen.findByRole('article', { name: 'Add a fourth web server' });
    expect(within(done).getByText('converged')).toBeTruthy();
    expect(within(done).getByText('Deployed 40/40')).toBeTruthy();
    expect(within(done).getByText('120 ms')).toBeTruthy();
    const going = screen.getByRole('article', { name: 'Roll out' });
    expect(within(going).getByText('Deployed 37/40')).toBeTruthy();
    expect(within(going).getByText('deploying', { selector: '.chip' })).toBeTruthy();
    const held = screen.getByRole('article', { name: 'Stuck' });
    expect(within(held).getByText('failed', { selector: '.chip' })).toBeTruthy();
    expect(within(held).getByRole('link', { name: 'Show the failed resources' })).toBeTruthy();
    const broken = screen.getByRole('article', { name: 'Broken' });
    expect(within(broken).getByRole('alert').textContent).toContain('The model does not compile');
    expect(within(broken).getByText('no version')).toBeTruthy();
  },
});

test('an environment without a repository is told how models arrive', async () => {
  server.use(
    answer(endpoint, []),
    answer('/api/v3/environment/:id', { ...environment, repo_url: '', released_version: 0 }),
  );
  visit(inEnvironment());
  expect(await screen.findByText(/run intendant export/)).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Compile now' })).toBeNull();
  expect(screen.getByRole('button', { name: 'Deploy' }).hasAttribute('disabled')).toBe(true);
});

test('operators compile, repair and halt', async () => {
  const asked: unknown[] = [];
  server.use(
    answer(endpoint, [converged]),
    http.post('/api/v1/notify/:id', async ({ request }) => {
      asked.push(await request.json());
      return new HttpResponse(null);
    }),
    http.post('/api/v3/deploy', async ({ request }) => {
      asked.push(await request.json());
      return HttpResponse.json({ message: 'the environment is halted' }, { status: 409 });
    }),
    http.post('/api/v2/actions/environment/halt', ({ request }) => {
      asked.push(request.headers.get('X-Inmanta-tid'));
      return new HttpResponse(null);
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment());
  await screen.findByRole('heading', { name: 'production', level: 1 });
  await user.click(screen.getByRole('button', { name: 'Compile now' }));
  await user.click(screen.getByRole('button', { name: 'Repair' }));
  expect((await screen.findByRole('alert')).textContent).toContain('the environment is halted');
  await user.click(screen.getByRole('button', { name: 'Halt' }));
  await expect.poll(() => asked).toHaveLength(3);
  expect(asked).toEqual([
    { update: true, metadata: { type: 'console', message: 'Requested in the console' } },
    { repair: true, message: 'Requested in the console' },
    environmentId,
  ]);
});
