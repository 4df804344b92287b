import { test as base } from '@playwright/test';

import { System } from './system';

export { expect } from '@playwright/test';

/** Each test has a system of its own, which is gone when the test ends, however it ends. */
export const test = base.extend<{ system: System }>({
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
    { timeout: 120_000 },
  ],
});
