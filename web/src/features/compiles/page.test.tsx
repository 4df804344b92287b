import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';

import { describePage, inEnvironment, visit } from '../../test/page';
import { answer, environmentId, moment, revision, server } from '../../test/server';

const report = {
  id: 'c1',
  remote_id: null,
  environment: environmentId,
  requested: moment,
  started: '2026-03-01T10:00:00.000000+00:00',
  completed: '2026-03-01T10:00:02.500000+00:00',
  do_export: true,
  force_update: false,
  metadata: {},
  environment_variables: {},
  requested_environment_variables: {},
  mergeable_environment_variables: {},
  partial: false,
  removed_resource_sets: [],
  exporter_plugin: null,
  notify_failed_compile: null,
  failed_compile_message: null,
  links: {},
  compile_data: null,
  success: false,
  version: null as number | null,
  status: 'failed',
  revision,
  reason: 'push to refs/heads/main',
  trace_id: 't',
  error: '',
};

const list = '/api/v2/compilereport';
describePage('compile reports', {
  path: inEnvironment('/compiles'),
  endpoint: list,
  full: [answer(list, [report, { ...report, id: 'c0', status: 'succeeded', success: true, version: 3 }])],
  empty: { handlers: [answer(list, [])], title: 'No compiles yet' },
  shows: async () => {
    expect(await screen.findByText('succeeded')).toBeTruthy();
    expect(screen.getByText('failed')).toBeTruthy();
    expect(screen.getAllByText('2.5 s')).toHaveLength(2);
  },
});

const analysis = {
  ...report,
  reports: [
    {
      id: 's1',
      started: moment,
      completed: moment,
      command: 'intendant compile',
      name: 'compile',
      errstream: 'error: could not find type',
      outstream: '',
      returncode: 1,
    },
  ],
  diagnostics: [
    {
      severity: 'warning',
      code: 'TypeDeprecationWarning',
      message: 'an old type',
      file: 'main.cf',
      line: 1,
      column: 0,
      end_line: 1,
      end_column: 0,
      related: [],
    },
    {
      severity: 'error',
      code: 'TypeNotFoundException',
      message: 'could not find type std::Fiel',
      hint: 'did you mean std::File?',
      file: 'main.cf',
      line: 9,
      column: 8,
      end_line: 9,
      end_column: 17,
      related: [{ file: 'libs/a.cf', line: 3, column: 1, end_line: 3, end_column: 2, message: 'imported here' }],
      excerpt: { file: 'main.cf', first_line: 8, lines: ['', 'file = std::Fiel(host=host)', 'end'] },
    },
  ],
  substitute_id: null,
  digest: '',
  actor: '',
  attempt: 1,
  peak_memory: 51_380_224,
  cpu_time: 0.014,
};

const one = '/api/v3/compile/:id';
describePage('a compile report', {
  path: inEnvironment('/compiles/c1'),
  endpoint: one,
  full: [answer(one, analysis)],
  shows: async () => {
    expect(await screen.findByRole('heading', { name: 'Compile failed', level: 1 })).toBeTruthy();
    const faults = screen.getAllByRole('article');
    expect(faults[0]?.textContent).toContain('could not find type std::Fiel'); // errors before warnings
    expect(faults[0]?.textContent).toContain('main.cf:9:8');
    expect(faults[0]?.textContent).toContain('libs/a.cf:3 imported here');
    expect(faults[0]?.querySelector('mark')?.textContent).toBe('std::Fiel');
    expect(screen.getByText('49.0 MiB')).toBeTruthy();
  },
});

test('a running compile is cancelled', async () => {
  let cancelled = false;
  server.use(
    answer(one, { ...analysis, status: 'running', completed: null, diagnostics: [], reports: [] }),
    http.post('/api/v3/compile/c1/cancel', () => {
      cancelled = true;
      return new HttpResponse(null);
    }),
  );
  visit(inEnvironment('/compiles/c1'));
  await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
  await expect.poll(() => cancelled).toBe(true);
});
