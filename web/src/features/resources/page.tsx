import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useState, type ReactElement } from 'react';

import { text } from '../../i18n/en';
import { Card, Empty, PageHead, Scroll } from '../../ui/layout';
import { Pager } from '../../ui/pager';
import { Loaded } from '../../ui/query';
import { StatusChip, SummaryBar, statusText } from '../../ui/status';
import { useResources, type ResourceSearch } from './queries';

const fields = ['type', 'agent', 'value', 'status', 'sort', 'start', 'first_id', 'end', 'last_id'] as const;

/** Keeps what this page understands of an address, as text. */
export function resourceSearch(search: Record<string, unknown>): ResourceSearch {
  const out: ResourceSearch = {};
  for (const f of fields) {
    const v = search[f];
    if (typeof v === 'string' && v !== '') out[f] = v;
    else if (typeof v === 'number') out[f] = String(v);
  }
  return out;
}

const statuses = [
  'deployed',
  'deploying',
  'available',
  'failed',
  'skipped',
  'unavailable',
  'undefined',
  'skipped_for_undefined',
  'non_compliant',
  'orphaned',
];

const columns = [
  { id: 'resource_type', title: text.resources.type, narrow: false },
  { id: 'agent', title: text.resources.agent, narrow: false },
  { id: 'resource_id_value', title: text.resources.value, narrow: true },
  { id: 'status', title: text.resources.status, narrow: true },
];

/** A filter that waits until the typing pauses. */
function Filter(props: { label: string; value: string; onChange: (v: string) => void }): ReactElement {
  const [draft, setDraft] = useState(props.value);
  const { value, onChange } = props;
  useEffect(() => setDraft(value), [value]);
  useEffect(() => {
    if (draft === value) return;
    const timer = setTimeout(() => onChange(draft), 300);
    return () => clearTimeout(timer);
  }, [draft, value, onChange]);
  return (
    <input
      type="search"
      aria-label={props.label}
      placeholder={props.label}
      value={draft}
      onChange={(e) => setDraft(e.target.value)}
    />
  );
}

export function ResourcesPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const search = useSearch({ from: '/environments/$environment/resources' });
  const navigate = useNavigate({ from: '/environments/$environment/resources' });
  const resources = useResources(environment, search);
  const change = (patch: ResourceSearch): void => {
    const { type, agent, value, status, sort } = { ...search, ...patch };
    void navigate({ search: resourceSearch({ type, agent, value, status, sort }), replace: true });
  };
  const sorted = search.sort ?? 'resource_type.asc';
  const filtered = [search.type, search.agent, search.value, search.status].some((f) => f !== undefined);
  const summary = resources.data?.metadata?.deploy_summary;
  return (
    <>
      <PageHead title={text.resources.title} sub={text.resources.sub} />
      <div className="stack">
        {summary && (
          <Card>
            <SummaryBar total={summary.total} byState={summary.by_state} />
          </Card>
        )}
        <Card bare>
          <div className="toolbar" role="search">
            <Filter label={text.resources.type} value={search.type ?? ''} onChange={(type) => change({ type })} />
            <Filter label={text.resources.agent} value={search.agent ?? ''} onChange={(agent) => change({ agent })} />
            <Filter label={text.resources.value} value={search.value ?? ''} onChange={(value) => change({ value })} />
            <select
              aria-label={text.resources.status}
              value={search.status ?? ''}
              onChange={(e) => change({ status: e.target.value })}
            >
              <option value="">{text.common.anyStatus}</option>
              {statuses.map((s) => (
                <option key={s} value={s}>
                  {statusText(s)}
                </option>
              ))}
            </select>
            {filtered && (
              <button
                type="button"
                className="quiet"
                onClick={() => change({ type: '', agent: '', value: '', status: '' })}
              >
                {text.common.clear}
              </button>
            )}
          </div>
          <Loaded query={resources} lines={8}>
            {(page) =>
              page.data.length === 0 ? (
                <Empty icon="box" title={filtered ? text.resources.emptyFilter : text.resources.empty}>
                  {filtered ? null : text.resources.emptyHint}
                </Empty>
              ) : (
                <>
                  <Scroll>
                    <table>
                      <thead>
                        <tr>
                          {columns.map((c) => {
                            const asc = sorted === `${c.id}.asc`;
                            const mine = sorted.startsWith(`${c.id}.`);
                            return (
                              <th
                                key={c.id}
                                className={c.narrow ? undefined : 'hide-narrow'}
                                aria-sort={mine ? (asc ? 'ascending' : 'descending') : 'none'}
                              >
                                <button
                                  type="button"
                                  onClick={() => change({ sort: `${c.id}.${asc ? 'desc' : 'asc'}` })}
                                >
                                  {c.title} {mine ? (asc ? '↑' : '↓') : ''}
                                </button>
                              </th>
                            );
                          })}
                          <th className="num hide-narrow">{text.resources.requires}</th>
                        </tr>
                      </thead>
                      <tbody>
                        {page.data.map((r) => (
                          <tr key={r.resource_id}>
                            <td className="mono nowrap hide-narrow">{r.id_details.resource_type}</td>
                            <td className="truncate agent hide-narrow" title={r.id_details.agent}>
                              {r.id_details.agent}
                            </td>
                            <td style={{ overflowWrap: 'anywhere', minWidth: 160 }}>
                              <Link
                                to="/environments/$environment/resources/$id"
                                params={{ environment, id: r.resource_id }}
                              >
                                {r.id_details.resource_id_value}
                              </Link>
                              <div className="only-narrow muted small">
                                {r.id_details.resource_type} · {r.id_details.agent}
                              </div>
                            </td>
                            <td>
                              <StatusChip status={r.status} />
                            </td>
                            <td className="num hide-narrow">{r.requires.length}</td>
                          </tr>
                        ))}
                      </tbody>
                    </table>
                  </Scroll>
                  <Pager
                    page={page}
                    shown={page.data.length}
                    go={(bounds) =>
                      void navigate({
                        search: {
                          ...resourceSearch({ ...search, start: '', first_id: '', end: '', last_id: '' }),
                          ...bounds,
                        },
                      })
                    }
                  />
                </>
              )
            }
          </Loaded>
        </Card>
      </div>
    </>
  );
}
