import { expect, test } from './fixtures';
import type { System } from './system';

function model(system: System, greeting: string): string {
  return `
host = std::Host(name="here", os=std::linux)
dir = std::Directory(host=host, path="${system.target}", mode=755, owner="${system.user}", group="${system.group}")
for name in ["one", "two", "three"]:
    std::File(host=host, path="${system.target}/{{name}}.txt", mode=644, owner="${system.user}", group="${system.group}",
        content="${greeting} from {{name}}\\n", requires=dir)
end
`;
}

test('a push is followed from commit to deployed, and a broken model to its line', async ({ page, system }) => {
  system.makeRepository();
  system.push('The first model', { 'project.yml': 'name: infra\n', 'main.cf': model(system, 'hello') });

  await page.goto(`${system.url}/`);
  await expect(page).toHaveTitle('Intendant');
  await expect(page.getByRole('heading', { name: 'No environments yet' })).toBeVisible();

  await page.getByRole('button', { name: 'New environment' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox').selectOption({ label: 'a new project …' });
  await dialog.getByLabel('Name of the project').fill('shop');
  await dialog.getByLabel('Name', { exact: true }).fill('production');
  await dialog.getByLabel('Repository', { exact: false }).first().fill(`file://${system.bare}`);
  await dialog.getByLabel('Branch').fill('main');
  await dialog.getByRole('button', { name: 'Create' }).click();

  await page.getByRole('link', { name: /production/ }).click();
  const first = page.getByRole('article').filter({ hasText: 'The first model' });
  await expect(first.getByText('converged', { exact: true })).toBeVisible();
  await expect(first.getByText('Deployed 4/4')).toBeVisible();
  expect(system.read('two.txt')).toBe('hello from two\n');

  // a second push appears by itself once the repository is looked at
  system.push('Change the greeting', { 'main.cf': model(system, 'good morning') });
  await page.getByRole('button', { name: 'Compile now' }).click();
  const second = page.getByRole('article').filter({ hasText: 'Change the greeting' });
  await expect(second.getByText('converged', { exact: true })).toBeVisible();
  expect(system.read('two.txt')).toBe('good morning from two\n');

  // what the version changed
  await second
    .getByRole('link', { name: /ago|now/ })
    .first()
    .click();
  await expect(page.getByRole('heading', { name: 'Version 2' })).toBeVisible();
  await expect(page.getByText('modified').first()).toBeVisible();

  // a resource with its runs
  await page.getByRole('link', { name: 'Resources', exact: true }).click();
  await page.getByRole('link', { name: /two\.txt/ }).click();
  await expect(page.getByText('deployed').first()).toBeVisible();
  await page.getByRole('tab', { name: 'Runs' }).click();
  await expect(page.getByText('updated').first()).toBeVisible();

  // a broken model names its place and leaves what is deployed alone
  system.push('Break it', { 'main.cf': model(system, 'x') + '\nfile = std::Fiel(host=host)\n' });
  await page.getByRole('link', { name: 'Journey' }).click();
  await page.getByRole('button', { name: 'Compile now' }).click();
  const broken = page.getByRole('article').filter({ hasText: 'Break it' });
  await expect(broken.getByText('failed', { exact: true }).first()).toBeVisible();
  await broken.getByRole('link', { name: 'Open the compile report' }).click();
  await expect(page.getByText('main.cf:9', { exact: false }).first()).toBeVisible();
  await expect(page.getByText('TypeNotFoundException', { exact: true })).toBeVisible();
  await expect(page.locator('mark')).toHaveText('std::Fiel');
  expect(system.read('two.txt')).toBe('good morning from two\n');
});
