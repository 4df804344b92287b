import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, expectAccessible, visit } from '../../test/page';
import { answer, environment, server } from '../../test/server';

const endpoint = '/api/v3/environment';
const full = [answer(endpoint, [environment])];

describePage('environments', {
  path: '/environments',
  endpoint,
  full,
  empty: { handlers: [answer(endpoint, [])], title: 'No environments yet' },
  shows: async () => {
    const card = await screen.findByRole('link', { name: /production/ });
    expect(card.textContent).toContain('Add a fourth web server');
    expect(within(card).getByRole('img', { name: '2 deployed, 1 failed' })).toBeTruthy();
  },
});

test('an environment is created in a new project', async () => {
  const bodies: unknown[] = [];
  server.use(
    ...full,
    http.post(endpoint, async ({ request }) => {
      bodies.push(await request.json());
      return bodies.length === 1
        ? HttpResponse.json({ message: 'There is an environment of this name.' }, { status: 409 })
        : HttpResponse.json({ data: environment });
    }),
  );
  const user = userEvent.setup();
  visit('/environments');
  await user.click(await screen.findByRole('button', { name: 'New environment' }));
  const dialog = screen.getByRole('dialog', { name: 'New environment' });
  await user.selectOptions(within(dialog).getByLabelText('Project'), 'a new project …');
  await user.type(within(dialog).getByLabelText('Name of the project'), 'bank');
  await user.type(within(dialog).getByLabelText('Name'), 'staging');
  await user.type(within(dialog).getByLabelText(/^Repository/), ' https://git.example.org/bank.git ');
  await expectAccessible();
  await user.click(within(dialog).getByRole('button', { name: 'Create' }));
  expect((await within(dialog).findByRole('alert')).textContent).toContain('There is an environment of this name.');
  await user.click(within(dialog).getByRole('button', { name: 'Create' }));
  await expect.poll(() => screen.queryByRole('dialog')).toBeNull();
  expect(bodies[1]).toEqual({ name: 'staging', project: 'bank', repo_url: 'https://git.example.org/bank.git' });
});
