import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider, createMemoryHistory } from '@tanstack/react-router';
import { render, screen, type RenderResult } from '@testing-library/react';
import axe from 'axe-core';
import type { HttpHandler } from 'msw';
import { describe, expect, test } from 'vitest';

import { makeRouter } from '../app/router';
import { environmentId, hang, refuse, server } from './server';

/** Shows the whole console at an address below /console. */
export function visit(path: string): RenderResult {
  const router = makeRouter(createMemoryHistory({ initialEntries: [`/console${path}`] }));
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
}

/** The address of a page of the test's environment. */
export function inEnvironment(rest = ''): string {
  return `/environments/${environmentId}${rest}`;
}

/** Fails with what axe finds. Contrast needs a real browser: the end-to-end tests look at it. */
export async function expectAccessible(): Promise<void> {
  const { violations } = await axe.run(document.body, {
    rules: { 'color-contrast': { enabled: false }, region: { enabled: false } },
  });
  expect(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' | ')}`)).toEqual([]);
}

interface PageStates {
  path: string;
  /** What the page needs to show something. */
  full: HttpHandler[];
  /** The endpoint whose answer the page waits for. */
  endpoint: string;
  /** What the full page shows. */
  shows: () => Promise<void>;
  /** The page without data, where there is such a thing. */
  empty?: { handlers: HttpHandler[]; title: string };
}

/** Tests the four states of a page, and that each is accessible. */
export function describePage(name: string, page: PageStates): void {
  describe(name, () => {
    test('loading', async () => {
      server.use(...page.full);
      server.use(hang(page.endpoint));
      visit(page.path);
      expect((await screen.findAllByRole('status', { name: 'Loading …' })).length).toBeGreaterThan(0);
      await expectAccessible();
    });
    test('failed', async () => {
      server.use(...page.full);
      server.use(refuse(page.endpoint, 503, 'The database is away'));
      visit(page.path);
      const alert = await screen.findByRole('alert');
      expect(alert.textContent).toContain('The database is away');
      expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy();
      await expectAccessible();
    });
    const { empty } = page;
    if (empty) {
      test('empty', async () => {
        server.use(...page.full);
        server.use(...empty.handlers);
        visit(page.path);
        expect(await screen.findByRole('heading', { name: empty.title })).toBeTruthy();
        await expectAccessible();
      });
    }
    test('full', async () => {
      server.use(...page.full);
      visit(page.path);
      await page.shows();
      await expectAccessible();
    });
  });
}
