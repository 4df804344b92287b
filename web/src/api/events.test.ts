import { QueryClient } from '@tanstack/react-query';
import { describe, expect, test } from 'vitest';

import { invalidate } from './events';

const names = ['compiles', 'journeys', 'environments', 'versions', 'resources', 'agents', 'dryruns', 'server'];

function stale(kind: string): string[] {
  const client = new QueryClient();
  for (const name of names) client.setQueryData([name, 'e'], 1);
  invalidate(client, { kind });
  return names.filter((name) => client.getQueryState([name, 'e'])?.isInvalidated);
}

describe('invalidate', () => {
  test.each([
    ['compile', ['compiles', 'journeys', 'environments']],
    ['version', ['journeys', 'environments', 'versions', 'resources', 'agents']],
    ['agent', ['resources', 'agents']],
    ['dryrun', ['dryruns']],
    ['command', []],
    ['resync', names],
    ['something newer', names],
  ])('%s', (kind, want) => expect(stale(kind)).toEqual(want));
});
