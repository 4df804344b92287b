import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, expectAccessible, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, server } from '../../test/server';

function definition(name: string, type: string, preset: unknown, more: Record<string, unknown> = {}): unknown {
  return {
    name,
    type,
    default: preset,
    doc: `What ${name} does.`,
    recompile: false,
    update_model: false,
    agent_restart: false,
    allowed_values: null,
    section: 'deploy',
    protected: false,
    protected_by: null,
    ...more,
  };
}

const endpoint = '/api/v2/environment_settings';
const full = [
  answer(endpoint, {
    settings: { interval: '600' },
    definition: {
      auto_deploy: definition('auto_deploy', 'bool', true),
      interval: definition('interval', 'str', '60'),
      limit: definition('limit', 'int', 5),
      mode: definition('mode', 'enum', 'all', { allowed_values: ['all', 'none'] }),
      fixed: definition('fixed', 'str', 'x', { protected: true }),
    },
  }),
];

describePage('settings', {
  path: inEnvironment('/settings'),
  endpoint,
  full,
  shows: async () => {
    const flag = await screen.findByRole('checkbox', { name: 'auto_deploy' });
    expect((flag as HTMLInputElement).checked).toBe(true); // a checkbox is an input
    expect(screen.getByRole('textbox', { name: 'fixed' }).hasAttribute('disabled')).toBe(true);
    expect(screen.getAllByRole('button', { name: 'Back to the default' })).toHaveLength(1);
  },
});

test('values are saved with their type, and reset', async () => {
  const asked: unknown[] = [];
  server.use(
    ...full,
    http.post(`${endpoint}/:name`, async ({ request, params }) => {
      asked.push([params['name'], await request.json()]);
      return new HttpResponse(null);
    }),
    http.delete(`${endpoint}/:name`, ({ params }) => {
      asked.push([params['name'], 'reset']);
      return new HttpResponse(null);
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/settings'));
  await user.click(await screen.findByRole('checkbox', { name: 'auto_deploy' }));
  await user.clear(screen.getByRole('textbox', { name: 'limit' }));
  await user.type(screen.getByRole('textbox', { name: 'limit' }), '7{Enter}');
  await user.selectOptions(screen.getByRole('combobox', { name: 'mode' }), 'none');
  await user.click(screen.getByRole('button', { name: 'Back to the default' }));
  await expect
    .poll(() => asked)
    .toEqual([
      ['auto_deploy', { value: false }],
      ['limit', { value: 7 }],
      ['mode', { value: 'none' }],
      ['interval', 'reset'],
    ]);
});

test('an environment is deleted only when its name was typed', async () => {
  const deleted: string[] = [];
  server.use(
    ...full,
    answer('/api/v3/environment', []),
    http.delete('/api/v2/environment/:id', ({ params }) => {
      deleted.push(String(params['id']));
      return new HttpResponse(null);
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/settings'));
  await user.click(await screen.findByRole('button', { name: 'Delete this environment' }));
  const dialog = screen.getByRole('dialog');
  const confirm = within(dialog).getByRole('button', { name: 'Delete this environment' });
  expect(confirm.hasAttribute('disabled')).toBe(true);
  await expectAccessible();
  await user.type(within(dialog).getByRole('textbox'), 'production');
  await user.click(confirm);
  expect(await screen.findByRole('heading', { name: 'No environments yet' })).toBeTruthy();
  expect(deleted).toEqual([environmentId]);
});
