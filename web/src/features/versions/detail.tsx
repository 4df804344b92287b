import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import type { ResourceDiff } from '../../api/types';
import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Icon } from '../../ui/icons';
import { Card, Empty, PageHead } from '../../ui/layout';
import { Delta } from '../../ui/delta';
import { Loaded, Refusal } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { When, formatNumber } from '../../ui/time';
import { Changes } from '../../ui/value';
import { useDiff, useDryRun, useDryRuns, useVersion, useVersionAct, useVersions } from './queries';

export interface VersionSearch {
  from?: number;
  dryrun?: string;
}

/** Keeps what this page understands of an address. */
export function versionSearch(search: Record<string, unknown>): VersionSearch {
  const out: VersionSearch = {};
  const from = Number(search['from']);
  if (Number.isInteger(from) && from > 0) out.from = from;
  if (typeof search['dryrun'] === 'string') out.dryrun = search['dryrun'];
  return out;
}

function DiffList({
  diff,
  from,
  to,
  environment,
}: {
  diff: ResourceDiff[];
  from: string;
  to: string;
  environment: string;
}): ReactElement {
  return (
    <>
      {diff.map((d) => (
        <details key={d.resource_id} className="journey" open={diff.length <= 12 && d.status === 'modified'}>
          <summary>
            <StatusChip status={d.status} />
            <span className="anywhere">{d.resource_id}</span>
          </summary>
          <div className="stack tight">
            <Link
              className="small"
              to="/environments/$environment/resources/$id"
              params={{ environment, id: d.resource_id }}
            >
              {text.versions.toResource}
            </Link>
            <Changes
              changes={Object.entries(d.attributes).map(([name, a]) => ({
                name,
                from: a.from_value,
                to: a.to_value,
              }))}
              from={from}
              to={to}
            />
          </div>
        </details>
      ))}
    </>
  );
}

function DryRunView({ environment, version, id }: { environment: string; version: string; id: string }): ReactElement {
  const report = useDryRun(environment, version, id);
  return (
    <Loaded query={report}>
      {(r) => {
        const shown = r.diff.filter((d) => d.status !== 'unmodified');
        return (
          <>
            <div className="toolbar small muted">
              <When at={r.summary.date} /> · {formatNumber(r.summary.todo)} {text.versions.inWork} ·{' '}
              {formatNumber(r.diff.length - shown.length)} {text.versions.asWanted}
            </div>
            {shown.length === 0 ? (
              <Empty icon="check" title={text.resources.noChange} />
            ) : (
              <DiffList
                diff={shown}
                from={text.resources.current}
                to={text.resources.wanted}
                environment={environment}
              />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

export function VersionPage(): ReactElement {
  const { environment, version } = useParams({ from: '/environments/$environment/versions/$version' });
  const search = useSearch({ from: '/environments/$environment/versions/$version' });
  const navigate = useNavigate({ from: '/environments/$environment/versions/$version' });
  const details = useVersion(environment, version);
  const versions = useVersions(environment);
  const act = useVersionAct(environment, version);
  const dryRuns = useDryRuns(environment, version);
  const number = Number(version);
  const others = (versions.data?.data ?? []).map((v) => v.version).filter((n) => n < number);
  const from = search.from ?? others[0] ?? 0;
  const diff = useDiff(environment, from, number);
  const v = details.data;
  const dryRun = search.dryrun ?? dryRuns.data?.[0]?.id;
  return (
    <>
      <PageHead
        crumbs={
          <Link to="/environments/$environment/versions" params={{ environment }}>
            {text.versions.title}
          </Link>
        }
        title={`${text.versions.number} ${version}`}
        sub={v ? <Commit revision={v.revision} /> : ' '}
        actions={
          <>
            {v && <StatusChip status={v.status} />}
            {v && !v.released && (
              <button type="button" className="primary" disabled={act.isPending} onClick={() => act.mutate('release')}>
                <Icon name="rocket" /> {text.versions.release}
              </button>
            )}
            <button
              type="button"
              disabled={act.isPending}
              onClick={() => act.mutate('dryrun')}
              title={text.versions.dryRunHint}
            >
              <Icon name="dry" /> {text.versions.dryRun}
            </button>
          </>
        }
      />
      <div className="stack">
        <Refusal error={act.error} />
        <Loaded query={details} lines={2}>
          {(d) => (
            <Card>
              <dl className="strip">
                <div>
                  <dt>{text.versions.date}</dt>
                  <dd>
                    <When at={d.date} />
                  </dd>
                </div>
                <div>
                  <dt>{text.versions.released}</dt>
                  <dd>{d.released_at ? <When at={d.released_at} /> : text.versions.unreleased}</dd>
                </div>
                <div>
                  <dt>{text.versions.resources}</dt>
                  <dd>{formatNumber(d.total)}</dd>
                </div>
                <div>
                  <dt>{text.versions.changes}</dt>
                  <dd>
                    <Delta added={d.added} changed={d.changed} removed={d.removed} />
                  </dd>
                </div>
                {d.compile_id && (
                  <div>
                    <dt>{text.versions.compile}</dt>
                    <dd>
                      <Link to="/environments/$environment/compiles/$id" params={{ environment, id: d.compile_id }}>
                        {text.versions.report}
                      </Link>
                    </dd>
                  </div>
                )}
                <div>
                  <dt>{text.compiles.digest}</dt>
                  <dd className="mono" title={d.digest}>
                    {d.digest.slice(0, 12)}
                  </dd>
                </div>
              </dl>
            </Card>
          )}
        </Loaded>
        <Card
          title={text.versions.diff}
          bare
          actions={
            others.length > 0 && (
              <label className="row small nowrap">
                {text.versions.compare}
                <select
                  value={from}
                  onChange={(e) =>
                    void navigate({ search: { ...search, from: Number(e.target.value) }, replace: true })
                  }
                >
                  {others.map((n) => (
                    <option key={n} value={n}>
                      {n}
                    </option>
                  ))}
                </select>
              </label>
            )
          }
        >
          {from === 0 ? (
            <Empty icon="layers" title={text.versions.first}>
              {text.versions.firstHint}
            </Empty>
          ) : (
            <Loaded query={diff}>
              {(d) =>
                d.length === 0 ? (
                  <Empty icon="check" title={text.versions.noDiff} />
                ) : (
                  <DiffList
                    diff={d}
                    from={`${text.versions.number} ${from}`}
                    to={`${text.versions.number} ${version}`}
                    environment={environment}
                  />
                )
              }
            </Loaded>
          )}
        </Card>
        <Card
          title={text.versions.dryRuns}
          bare
          actions={
            (dryRuns.data?.length ?? 0) > 1 && (
              <select
                aria-label={text.versions.dryRuns}
                value={dryRun}
                onChange={(e) => void navigate({ search: { ...search, dryrun: e.target.value }, replace: true })}
              >
                {dryRuns.data?.map((d) => (
                  <option key={d.id} value={d.id}>
                    {d.date ? new Date(d.date).toLocaleString() : d.id}
                  </option>
                ))}
              </select>
            )
          }
        >
          {dryRun === undefined ? (
            <Empty icon="dry" title={text.versions.noDryRuns}>
              {text.versions.dryRunHint}
            </Empty>
          ) : (
            <DryRunView environment={environment} version={version} id={dryRun} />
          )}
        </Card>
      </div>
    </>
  );
}
