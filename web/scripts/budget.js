// Fails when what a browser must load first has grown beyond the budget. Sizes are gzipped, as they travel.
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';

const budgets = { '.js': 220_000, '.css': 20_000 };

const assets = resolve(import.meta.dirname, '../dist/assets');
let failed = false;
for (const [ext, budget] of Object.entries(budgets)) {
  const size = readdirSync(assets)
    .filter((name) => name.endsWith(ext))
    .reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0);
  const line = `${ext.slice(1)}: ${(size / 1000).toFixed(1)} kB gzipped of ${budget / 1000} kB`;
  if (size > budget) {
    failed = true;
    console.error(`${line}: over the budget`);
  } else {
    console.log(line);
  }
}
process.exitCode = failed ? 1 : 0;
