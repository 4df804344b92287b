import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, moment, server } from '../../test/server';

const notification = {
  id: 'n1',
  environment: environmentId,
  created: moment,
  title: 'Compilation failed',
  message: 'An exporting compile has failed',
  severity: 'error',
  uri: null,
  compile_id: 'c1',
  read: false,
  cleared: false,
};
const endpoint = '/api/v2/notification';

describePage('notifications', {
  path: inEnvironment('/notifications'),
  endpoint,
  full: [answer(endpoint, [notification])],
  empty: { handlers: [answer(endpoint, [])], title: 'Nothing to report' },
  shows: async () => {
    expect(await screen.findByText('Compilation failed')).toBeTruthy();
    expect(await screen.findByRole('link', { name: /Notifications 1 unread/ })).toBeTruthy();
  },
});

test('a notification is marked and cleared', async () => {
  const bodies: unknown[] = [];
  server.use(
    answer(endpoint, [notification]),
    http.patch(`${endpoint}/n1`, async ({ request }) => {
      bodies.push(await request.json());
      return HttpResponse.json({ data: notification });
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/notifications'));
  await user.click(await screen.findByRole('button', { name: 'Mark as read' }));
  await user.click(screen.getByRole('button', { name: 'Clear' }));
  await expect.poll(() => bodies).toEqual([{ read: true }, { cleared: true }]);
});
