import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, moment, revision, server } from '../../test/server';

function version(n: number, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    version: n,
    date: moment,
    total: 16,
    labels: [],
    status: 'active',
    released: true,
    released_at: moment,
    added: 3,
    changed: 1,
    removed: 0,
    digest: 'e8258541f381aabb',
    compile_id: 'c1',
    revision,
    trace_id: 't',
    undeployable: [],
    skipped_for_undeployable: [],
    ...more,
  };
}

const list = '/api/v3/version';
const versions = answer(list, [version(3), version(2, { status: 'retired' })], { metadata: { total: 2 } });
describePage('versions', {
  path: inEnvironment('/versions'),
  endpoint: list,
  full: [versions],
  empty: { handlers: [answer(list, [])], title: 'No versions yet' },
  shows: async () => {
    expect(await screen.findByRole('link', { name: '3' })).toBeTruthy();
    expect(screen.getByText('retired')).toBeTruthy();
    expect(screen.getAllByTitle('3 added')).toHaveLength(2);
  },
});

const id = 'std::File[web1,path=/etc/site.conf]';
const one = '/api/v3/version/:version';
const diff = [
  {
    resource_id: id,
    status: 'modified',
    attributes: {
      permissions: { from_value: 644, to_value: 640, from_value_compare: '644', to_value_compare: '640' },
      owner: { from_value: null, to_value: 'www', from_value_compare: '', to_value_compare: 'www' },
    },
  },
];
const dryRun = { id: 'd1', environment: environmentId, model: 3, date: moment, total: 16, todo: 0 };
const full = [
  versions,
  answer(one, version(3)),
  answer('/api/v2/desiredstate/diff/2/3', diff),
  answer('/api/v2/dryrun/3', [dryRun]),
  answer('/api/v2/dryrun/3/d1', {
    summary: dryRun,
    diff: [
      { resource_id: id, status: 'unmodified', attributes: {} },
      { ...diff[0], status: 'modified', resource_id: 'std::File[web2,path=/etc/site.conf]' },
    ],
  }),
];
describePage('a version', {
  path: inEnvironment('/versions/3'),
  endpoint: one,
  full,
  shows: async () => {
    expect(await screen.findByRole('heading', { name: 'Version 3', level: 1 })).toBeTruthy();
    expect(await screen.findByText(id)).toBeTruthy();
    expect(screen.getAllByRole('link', { name: 'Open the resource' })[0]?.getAttribute('href')).toContain(
      encodeURIComponent('path=/etc/site.conf'),
    );
    const table = screen.getAllByRole('table')[0];
    expect(table?.textContent).toContain('permissions644640');
    expect(await screen.findByText(/web2/)).toBeTruthy();
    expect(screen.getByText('Open the report').getAttribute('href')).toContain('/compiles/c1');
  },
});

test('a candidate is released, and a dry run asked for', async () => {
  const asked: string[] = [];
  server.use(
    answer(one, version(3, { released: false, status: 'candidate', released_at: null })),
    ...full,
    http.post('/api/v2/desiredstate/3/promote', () => {
      asked.push('promote');
      return new HttpResponse(null);
    }),
    http.post('/api/v2/dryrun/3', () => {
      asked.push('dryrun');
      return HttpResponse.json({ data: 'd2' });
    }),
  );
  const user = userEvent.setup();
  visit(inEnvironment('/versions/3'));
  await user.click(await screen.findByRole('button', { name: 'Release' }));
  await expect.poll(() => asked).toEqual(['promote']);
  await user.click(screen.getByRole('button', { name: 'Dry run' }));
  await expect.poll(() => asked).toEqual(['promote', 'dryrun']);
});

test('the first version has nothing to be compared with', async () => {
  server.use(answer(list, [version(1)]), answer(one, version(1)), answer('/api/v2/dryrun/1', []));
  visit(inEnvironment('/versions/1'));
  expect(await screen.findByRole('heading', { name: 'The first version' })).toBeTruthy();
  expect(within(document.body).getByRole('heading', { name: 'None yet' })).toBeTruthy();
});
