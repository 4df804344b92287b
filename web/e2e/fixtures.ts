import { test as base } from '@playwright/test';

import { System } from './system';

export { expect } from '@playwright/test';

/** Tests with a system of their own, which is gone when the worker ends, however it ends. */
export const test = base.extend<object, { system: System }>({
  system: [
    // The first argument must be a pattern, by Playwright's rules.
    async ({}, provide) => {
      const system = await System.start();
      try {
        await provide(system);
      } finally {
        await system.stop();
      }
    },
    { scope: 'worker', timeout: 120_000 },
  ],
});
