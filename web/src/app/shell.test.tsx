import { act, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { expectAccessible, visit } from '../test/page';
import { answer, environment, server } from '../test/server';
import { lastEventSource } from '../test/setup';

test('an unknown address says so', async () => {
  visit('/nowhere');
  expect(await screen.findByRole('heading', { name: 'There is no such page' })).toBeTruthy();
  await expectAccessible();
});

test('a fault of a page is shown, and the frame survives', async () => {
  server.use(answer('/api/v3/environment', [{ name: 'no more than a name' }, null]));
  visit('/environments');
  expect((await screen.findByRole('alert')).textContent).toContain('This page has a fault');
});

test('the theme is chosen and remembered', async () => {
  server.use(answer('/api/v3/environment', []));
  const first = visit('/environments');
  await userEvent.click(await screen.findByRole('button', { name: 'Switch between light and dark' }));
  expect(document.documentElement.dataset['theme']).toBe('dark');
  first.unmount();
  delete document.documentElement.dataset['theme'];
  visit('/environments');
  await screen.findByRole('button', { name: 'Switch between light and dark' });
  expect(document.documentElement.dataset['theme']).toBe('dark');
});

test('news from the server is read at once, and a broken stream is told', async () => {
  let reads = 0;
  server.use(
    http.get('/api/v3/environment', () => {
      reads++;
      return HttpResponse.json({ data: reads === 1 ? [] : [environment] });
    }),
  );
  visit('/environments');
  await screen.findByRole('heading', { name: 'No environments yet' });
  const stream = lastEventSource();
  expect(stream?.url).toBe('/api/v3/events');
  act(() => stream?.onopen?.());
  expect(screen.getByText('Live')).toBeTruthy();
  act(() => stream?.onmessage?.(new MessageEvent('message', { data: '{"kind":"environment"}' })));
  expect(await screen.findByRole('link', { name: /production/ })).toBeTruthy();
  act(() => stream?.onerror?.());
  expect(screen.getByText('Reconnecting …')).toBeTruthy();
});
