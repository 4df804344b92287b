import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, expectAccessible, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, moment, server } from '../../test/server';

const agent = {
  environment: environmentId,
  name: 'web1',
  paused: false,
  process_id: 'p',
  process_name: 'p',
  unpause_on_resume: null,
  status: 'up',
  hostname: 'host1',
  since: moment,
};
const process = {
  sid: '3091f370-313a-4f37-be64-da019c72eb87',
  hostname: 'host1',
  environment: environmentId,
  first_seen: moment,
  expired: null,
  process: '3091f370-313a-4f37-be64-da019c72eb87',
  agents: ['web1', 'web2'],
  version: '1.0',
  autostarted: true,
};
const endpoint = '/api/v2/agents';
const full = [
  answer(endpoint, [agent, { ...agent, name: 'web2', paused: true, status: 'paused' }]),
  answer('/api/v3/agent-process', [process]),
];

describePage('agents', {
  path: inEnvironment('/agents'),
  endpoint,
  full,
  empty: {
    handlers: [answer(endpoint, []), answer('/api/v3/agent-process', [])],
    title: 'No agents yet',
  },
  shows: async () => {
    const row = await screen.findByRole('row', { name: /web2 paused/ });
    expect(within(row).getByRole('button', { name: 'Resume' })).toBeTruthy();
    expect(await screen.findByRole('cell', { name: '3091f370' })).toBeTruthy();
  },
});

test('an agent is paused, and a token is shown once', async () => {
  const asked: string[] = [];
  server.use(
    ...full,
    http.post('/api/v2/agent/:name/:action', ({ params }) => {
      asked.push(`${String(params['name'])} ${String(params['action'])}`);
      return new HttpResponse(null);
    }),
    http.post('/api/v3/agent-token', () => HttpResponse.json({ data: { token: 'iat_SECRET' } })),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/agents'));
  await user.click(await screen.findByRole('button', { name: 'Pause' }));
  await expect.poll(() => asked).toEqual(['web1 pause']);
  await user.click(screen.getByRole('button', { name: 'Connect another host' }));
  const dialog = screen.getByRole('dialog', { name: 'Connect another host' });
  await user.click(within(dialog).getByRole('button', { name: 'Make a token' }));
  expect(await within(dialog).findByText(/--enroll - <<< 'iat_SECRET'/)).toBeTruthy();
  await expectAccessible();
  await user.click(within(dialog).getByRole('button', { name: 'Close' }));
  expect(screen.queryByText(/iat_SECRET/)).toBeNull();
});
