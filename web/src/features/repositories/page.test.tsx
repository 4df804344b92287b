import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, visit } from '../../test/page';
import { answer, moment, server } from '../../test/server';

const repository = {
  name: 'infra',
  url: 'https://git.example.org/infra.git',
  provider: 'github',
  webhook_secrets: 1,
  webhook_path: '/hooks/infra',
  username: '',
  has_password: false,
  has_ssh_key: false,
  known_hosts: '',
  poll: '3600',
  last_synced: moment,
  last_error: 'authentication required',
  environments: [],
};
const delivery = {
  key: 'k1',
  repository: 'infra',
  provider: 'github',
  event: 'push',
  ref: 'refs/heads/main',
  before: '',
  after: '',
  trace_id: 't',
  received_at: moment,
  status: 'synced',
  detail: 'compile c1',
  finished_at: moment,
};
const endpoint = '/api/v3/repository';
const full = [
  answer(endpoint, [repository, { ...repository, name: 'nightly', provider: '', poll: '0 3 * * *', last_error: '' }]),
  answer('/api/v3/delivery', [delivery]),
];

describePage('repositories', {
  path: '/repositories',
  endpoint,
  full,
  empty: { handlers: [answer(endpoint, []), answer('/api/v3/delivery', [])], title: 'No repositories yet' },
  shows: async () => {
    expect(await screen.findByRole('heading', { name: 'infra' })).toBeTruthy();
    expect(screen.getByText('every 1 h')).toBeTruthy();
    expect(screen.getByText('0 3 * * *')).toBeTruthy();
    expect(screen.getByText('authentication required')).toBeTruthy();
    expect(await screen.findByText('compile c1')).toBeTruthy();
  },
});

test('a delivery is replayed, and a repository looked at', async () => {
  const asked: string[] = [];
  server.use(
    ...full,
    http.post('/api/v3/*', ({ request }) => {
      asked.push(new URL(request.url).pathname);
      return new HttpResponse(null);
    }),
  );
  const user = userEvent.setup();
  visit('/repositories');
  await user.click(await screen.findByRole('button', { name: 'Replay' }));
  await user.click((await screen.findAllByRole('button', { name: 'Look now' }))[0] ?? document.body);
  await expect.poll(() => asked).toEqual(['/api/v3/delivery/infra/k1/replay', '/api/v3/repository/infra/sync']);
});
