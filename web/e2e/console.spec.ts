import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { Page } from '@playwright/test';

import { expect, test } from './fixtures';
import type { System } from './system';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Fails with what axe finds on the page as it is shown, contrast included. */
async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const run = (globalThis as unknown as { axe: typeof import('axe-core') }).axe; // put there by the line above
    const { violations } = await run.run(document);
    return violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' | ')}`);
  });
  expect(found, page.url()).toEqual([]);
}

async function expectNoOverflow(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over, `${page.url()} is wider than the screen`).toBe(0);
}

/** An environment with one deployed version, made through the API. */
async function deployed(system: System): Promise<string> {
  system.makeRepository();
  system.push('A file', {
    'project.yml': 'name: small\n',
    'main.cf': `
host = std::Host(name="here", os=std::linux)
dir = std::Directory(host=host, path="${system.target}", mode=755, owner="${system.user}", group="${system.group}")
std::File(host=host, path="${system.target}/a-file-with-quite-a-long-name-for-a-small-screen.conf", mode=644,
    owner="${system.user}", group="${system.group}", content="x\\n", requires=dir)
`,
  });
  const { data } = await system.call<{ data: { id: string } }>('POST', '/api/v3/environment', {
    name: 'small',
    project: 'narrow',
    repo_url: `file://${system.bare}`,
    repo_branch: 'main',
  });
  await system.until('the environment has converged', async () => {
    const { data: all } = await system.call<{ data: { phase: string }[] }>(
      'GET',
      '/api/v3/journey',
      undefined,
      data.id,
    );
    return all[0]?.phase === 'converged';
  });
  return data.id;
}

test.describe('on a narrow screen, in the dark', () => {
  test.use({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' });

  test('every page is reached, fits, and is accessible', async ({ page, system }) => {
    const refused: string[] = [];
    page.on('console', (m) => {
      if (m.type() === 'error') refused.push(m.text()); // what the content security policy blocks is told here
    });
    page.on('pageerror', (e) => refused.push(e.message));
    const environment = await deployed(system);

    await page.goto(`${system.url}/console/environments/${environment}`); // a deep link
    await expect(page.getByText('converged', { exact: true })).toBeVisible();
    await expect(page.getByRole('navigation')).toBeHidden();
    await expectNoOverflow(page);
    await expectAccessible(page);

    await page.getByRole('button', { name: 'Menu', exact: true }).click();
    await page.getByRole('button', { name: 'Close the menu' }).click({ position: { x: 380, y: 400 } });
    await expect(page.getByRole('navigation')).toBeHidden();

    for (const [link, heading] of [
      ['Resources', 'Resources'],
      ['Versions', 'Versions'],
      ['Compile reports', 'Compile reports'],
      ['Agents', 'Agents'],
      ['Facts', 'Facts and parameters'],
      ['Notifications', 'Notifications'],
      ['Settings', 'Settings'],
      ['Repositories', 'Repositories'],
      ['Server', 'Server'],
      ['Environments', 'Environments'],
    ] as const) {
      await page.getByRole('button', { name: 'Menu', exact: true }).click();
      await expect(page.getByText('Live', { exact: true })).toBeVisible();
      await page.getByRole('navigation').getByRole('link', { name: link, exact: true }).click();
      await expect(page.getByRole('heading', { name: heading, level: 1 })).toBeVisible();
      await expect(page.getByRole('navigation')).toBeHidden();
      await expect(page.getByRole('status', { name: 'Loading …' })).toHaveCount(0);
      await expectNoOverflow(page);
      await expectAccessible(page);
      if (link !== 'Environments') continue;
      await page.reload();
      await expect(page.getByRole('link', { name: /small/ })).toBeVisible();
    }

    const resource = `std::File[here,path=${system.target}/a-file-with-quite-a-long-name-for-a-small-screen.conf]`;
    for (const rest of [`/resources/${encodeURIComponent(resource)}`, '/versions/1']) {
      await page.goto(`${system.url}/console/environments/${environment}${rest}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await expect(page.getByRole('status', { name: 'Loading …' })).toHaveCount(0);
      await expectNoOverflow(page);
      await expectAccessible(page);
    }
    expect(refused).toEqual([]);
  });
});

test('the theme is chosen by hand and remembered', async ({ page, system }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(`${system.url}/console/environments`);
  const body = page.locator('body');
  const background = (): Promise<string> => body.evaluate((e) => getComputedStyle(e).backgroundColor);
  const light = await background();
  await page.getByRole('button', { name: 'Switch between light and dark' }).click();
  await expect.poll(background).not.toBe(light);
  await expectAccessible(page);
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Environments', level: 1 })).toBeVisible();
  expect(await background()).not.toBe(light);
});
