import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import type { CompileAnalysis, Diagnostic } from '../../api/types';
import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Icon } from '../../ui/icons';
import { Card, Empty, Notice, PageHead, Scroll } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { Took, When, formatBytes, formatDuration } from '../../ui/time';
import { sentence } from '../../ui/value';
import { useCancelCompile, useCompile } from './queries';

/** The source around a fault, with the faulty stretch marked. */
function Excerpt({ d }: { d: Diagnostic }): ReactElement | null {
  const { excerpt } = d;
  if (!excerpt) return null;
  return (
    <Scroll className="source">
      <table>
        <tbody>
          {excerpt.lines.map((line, i) => {
            const n = excerpt.first_line + i;
            const at = n >= d.line && n <= Math.max(d.line, d.end_line);
            const from = at && n === d.line && d.column > 0 ? d.column - 1 : 0;
            const to = at && n === d.end_line && d.end_column > 0 ? d.end_column - 1 : line.length;
            const marked = at && d.column > 0 && to > from;
            return (
              <tr key={n} className={at ? 'at' : undefined}>
                <td className="ln">{n}</td>
                <td>
                  {marked ? (
                    <>
                      {line.slice(0, from)}
                      <mark>{line.slice(from, to)}</mark>
                      {line.slice(to)}
                    </>
                  ) : (
                    line
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}

function DiagnosticView({ d }: { d: Diagnostic }): ReactElement {
  return (
    <article className="journey">
      <div className="row wrap">
        <span className={`chip tone-${d.severity === 'error' ? 'bad' : 'warn'}`}>
          <Icon name={d.severity === 'error' ? 'cross' : 'warn'} /> {d.severity}
        </span>
        {d.file !== '' && (
          <code>
            {d.file}:{d.line}
            {d.column > 0 ? `:${d.column}` : ''}
          </code>
        )}
        <span className="muted small mono">{d.code}</span>
      </div>
      <p className="value">{d.message}</p>
      {d.hint && <p className="muted">{sentence(d.hint)}</p>}
      <Excerpt d={d} />
      {d.related.length > 0 && (
        <div className="muted small">
          {text.compiles.also}:
          {d.related.map((r) => (
            <div key={`${r.file}:${r.line}:${r.message}`}>
              <code>
                {r.file}:{r.line}
              </code>{' '}
              {r.message}
            </div>
          ))}
        </div>
      )}
    </article>
  );
}

function Stages({ c }: { c: CompileAnalysis }): ReactElement {
  return (
    <>
      {c.reports.map((s) => {
        const status = s.returncode === null ? 'running' : s.returncode === 0 ? 'succeeded' : 'failed';
        const output = [s.outstream, s.errstream].filter((o) => o !== '').join('\n');
        return (
          <details key={s.id} className="journey" open={status === 'failed' && c.diagnostics.length === 0}>
            <summary>
              <StatusChip status={status} /> <b className="grow">{sentence(s.name)}</b>
              <span className="muted small">
                <Took from={s.started} to={s.completed} />
              </span>
            </summary>
            <div className="stack tight">
              {s.command !== '' && <code className="value muted">{s.command}</code>}
              {output === '' ? (
                <span className="muted small">{text.compiles.noOutput}</span>
              ) : (
                <pre className="log" tabIndex={0}>
                  {output}
                </pre>
              )}
            </div>
          </details>
        );
      })}
    </>
  );
}

/** What became of a compile, as the title of its report. */
function outcome(c: CompileAnalysis): string {
  if (c.version !== null) return `${text.compiles.toVersion} ${c.version}`;
  return text.compiles.outcome[c.status] ?? sentence(c.reason);
}

/** Errors first; otherwise in the order in which the compiler found them. */
function bySeverity(all: readonly Diagnostic[]): Diagnostic[] {
  return [...all].sort((a, b) => Number(b.severity === 'error') - Number(a.severity === 'error'));
}

export function CompilePage(): ReactElement {
  const { environment, id } = useParams({ from: '/environments/$environment/compiles/$id' });
  const compile = useCompile(environment, id);
  const cancel = useCancelCompile(environment, id);
  const c = compile.data;
  return (
    <>
      <PageHead
        crumbs={
          <Link to="/environments/$environment/compiles" params={{ environment }}>
            {text.compiles.title}
          </Link>
        }
        title={c ? outcome(c) : text.common.loading}
        sub={c ? <Commit revision={c.revision} /> : ' '}
        actions={
          <>
            {c && <StatusChip status={c.status} />}
            {c && !c.completed && (
              <button type="button" className="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
                <Icon name="stop" /> {text.compiles.cancel}
              </button>
            )}
          </>
        }
      />
      <div className="stack">
        <Refusal error={cancel.error} />
        <Loaded query={compile}>
          {(data) => (
            <div className="split">
              <div className="stack">
                {data.error !== '' && (
                  <Notice tone="bad">
                    <span className="value">{data.error}</span>
                  </Notice>
                )}
                <Card title={text.compiles.diagnostics} bare>
                  {data.diagnostics.length === 0 ? (
                    <Empty icon="check" title={text.compiles.noDiagnostics} />
                  ) : (
                    bySeverity(data.diagnostics).map((d, i) => <DiagnosticView key={i} d={d} />)
                  )}
                </Card>
                <Card title={text.compiles.stages} bare>
                  <Stages c={data} />
                </Card>
              </div>
              <Card>
                <dl className="facts">
                  <dt>{text.compiles.reason}</dt>
                  <dd>{sentence(data.reason)}</dd>
                  <dt>{text.compiles.requested}</dt>
                  <dd>
                    <When at={data.requested} />
                  </dd>
                  <dt>{text.compiles.took}</dt>
                  <dd>
                    <Took from={data.started} to={data.completed} />
                  </dd>
                  <dt>{text.compiles.version}</dt>
                  <dd>
                    {data.version ? (
                      <Link
                        to="/environments/$environment/versions/$version"
                        params={{ environment, version: String(data.version) }}
                      >
                        {data.version}
                      </Link>
                    ) : (
                      '—'
                    )}
                  </dd>
                  <dt>{text.compiles.memory}</dt>
                  <dd>{formatBytes(data.peak_memory)}</dd>
                  <dt>{text.compiles.cpu}</dt>
                  <dd>{formatDuration(data.cpu_time * 1000)}</dd>
                  <dt>{text.compiles.attempt}</dt>
                  <dd>{data.attempt}</dd>
                  <dt>{text.compiles.digest}</dt>
                  <dd className="mono">{data.digest || '—'}</dd>
                  <dt>{text.compiles.trace}</dt>
                  <dd className="mono">{data.trace_id}</dd>
                </dl>
              </Card>
            </div>
          )}
        </Loaded>
      </div>
    </>
  );
}
