import { Link, useParams } from '@tanstack/react-router';
import { useState, type ReactElement } from 'react';

import type { ResourceAction, ResourceView } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, Empty, Notice, PageHead, Scroll, TabPanel, Tabs } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { StatusChip, StatusIcon, look } from '../../ui/status';
import { Took, When, formatNumber } from '../../ui/time';
import { Changes, Value, sentence } from '../../ui/value';

import { useExplanation, useResource, useResourceHistory, useResourceLogs, useResourceRuns } from './queries';

const tabs = [
  { id: 'desired', text: text.resources.desired },
  { id: 'runs', text: text.resources.actions },
  { id: 'history', text: text.resources.history },
  { id: 'logs', text: text.resources.logs },
] as const;

type Tab = (typeof tabs)[number]['id'];

const levels = ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR'];

/** What the sidebar shows better than a list of attributes would. */
const elsewhere = new Set(['requires']);

function asObject(v: unknown): Record<string, unknown> {
  return typeof v === 'object' && v !== null ? (v as Record<string, unknown>) : {}; // an object by its JSON type
}

function Attributes({ attributes }: { attributes: unknown }): ReactElement {
  const entries = Object.entries(asObject(attributes)).filter(([name]) => !elsewhere.has(name));
  return (
    <dl className="facts lines card-body">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt className="mono">{name}</dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const neighboursShown = 40;

function Neighbours({ environment, of }: { environment: string; of: Record<string, string> }): ReactElement {
  const all = Object.entries(of);
  if (all.length === 0) return <span className="muted">{text.resources.noRequires}</span>;
  return (
    <ul className="plain">
      {all.slice(0, neighboursShown).map(([id, status]) => (
        <li key={id} className="row top">
          <StatusIcon status={status} />
          <Link className="small anywhere" to="/environments/$environment/resources/$id" params={{ environment, id }}>
            {id}
          </Link>
        </li>
      ))}
      {all.length > neighboursShown && (
        <li className="muted small">
          + {formatNumber(all.length - neighboursShown)} {text.resources.moreNeighbours}
        </li>
      )}
    </ul>
  );
}

function errorsOf(run: ResourceAction): string {
  return run.messages
    .filter((m) => m.level === 'ERROR' || m.level === 'CRITICAL')
    .map((m) => m.msg)
    .join('\n');
}

function Run({ run }: { run: ResourceAction }): ReactElement {
  const changes = Object.values(run.changes).flatMap((c) =>
    Object.entries(c).map(([name, v]) => ({ name, from: v.current, to: v.desired })),
  );
  const errors = errorsOf(run);
  return (
    <article className="journey">
      <div className="row wrap">
        <StatusChip status={run.status ?? 'running'} />
        <b className="grow">{sentence(run.reason || run.action)}</b>
        <span className="muted small">
          {run.change && run.change !== 'nochange' ? run.change : text.resources.noChange} ·{' '}
          <Took from={run.started} to={run.finished} /> · <When at={run.started} />
        </span>
      </div>
      {changes.length > 0 && <Changes changes={changes} from={text.resources.current} to={text.resources.wanted} />}
      {errors !== '' && <pre className="log">{errors}</pre>}
    </article>
  );
}

/** What was done with the resource itself; that a version was stored is no run. */
function isRun(a: ResourceAction): boolean {
  return a.status !== null || a.finished === null;
}

function Runs({ environment, id }: { environment: string; id: string }): ReactElement {
  const runs = useResourceRuns(environment, id);
  return (
    <Loaded query={runs}>
      {(all) =>
        !all.some(isRun) ? (
          <Empty icon="clock" title={text.resources.noActions} />
        ) : (
          <>
            {all.filter(isRun).map((r) => (
              <Run key={r.action_id} run={r} />
            ))}
          </>
        )
      }
    </Loaded>
  );
}

function History({ environment, id }: { environment: string; id: string }): ReactElement {
  const history = useResourceHistory(environment, id);
  return (
    <Loaded query={history}>
      {(all) => (
        <>
          {all.map((h, i) => {
            const now = asObject(h.attributes);
            const before = asObject(all[i + 1]?.attributes);
            const names = [...new Set([...Object.keys(now), ...Object.keys(before)])].filter(
              (n) => JSON.stringify(now[n]) !== JSON.stringify(before[n]),
            );
            return (
              <article key={`${h.version} ${h.attribute_hash}`} className="journey">
                <div className="row wrap">
                  <b>
                    {text.resources.version} {h.version}
                  </b>
                  <span className="muted small">
                    <When at={h.date} />
                  </span>
                </div>
                {i + 1 < all.length && (
                  <Changes
                    changes={names.map((name) => ({ name, from: before[name], to: now[name] }))}
                    from={text.resources.current}
                    to={text.resources.wanted}
                  />
                )}
              </article>
            );
          })}
        </>
      )}
    </Loaded>
  );
}

function Logs({ environment, id }: { environment: string; id: string }): ReactElement {
  const [level, setLevel] = useState('DEBUG');
  const logs = useResourceLogs(environment, id, level);
  return (
    <>
      <div className="toolbar">
        <label className="row small">
          {text.resources.level}
          <select value={level} onChange={(e) => setLevel(e.target.value)}>
            {levels.map((l) => (
              <option key={l}>{l}</option>
            ))}
          </select>
        </label>
      </div>
      <Loaded query={logs}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon="clock" title={text.resources.noLogs} />
          ) : (
            <Scroll>
              <table>
                <tbody>
                  {all.map((l, i) => (
                    <tr key={`${l.action_id} ${i}`}>
                      <td className="nowrap small">
                        <When at={l.timestamp} />
                      </td>
                      <td
                        className={`small mono tone-${l.level === 'ERROR' || l.level === 'CRITICAL' ? 'bad' : l.level === 'WARNING' ? 'warn' : 'idle'}`}
                        style={{ color: 'var(--tone)' }}
                      >
                        {l.level}
                      </td>
                      <td className="value" style={{ width: '100%' }}>
                        {l.msg}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Loaded>
    </>
  );
}

/** Why the resource is as it is: the summary, what adds to it, and what the last failed run said. */
function Why({ environment, id, status }: { environment: string; id: string; status: string }): ReactElement | null {
  const why = useExplanation(environment, id);
  const runs = useResourceRuns(environment, id);
  if (!why.data || why.data.summary === '') return null;
  const { tone } = look(status);
  const { summary } = why.data;
  const reasons = why.data.reasons.filter((r) => r.text !== summary);
  const last = runs.data?.find(isRun);
  const errors = tone === 'bad' && last ? errorsOf(last) : '';
  return (
    <Notice tone={tone}>
      <div className="stack tight">
        <b>{summary}</b>
        {reasons.map((r) => (
          <p key={`${r.code} ${r.resource_id ?? ''}`} className="small">
            {r.resource_id ? (
              <Link to="/environments/$environment/resources/$id" params={{ environment, id: r.resource_id }}>
                {r.text}
              </Link>
            ) : (
              r.text.replace(/\.$/, '')
            )}
            {r.until ? (
              <>
                {': '}
                <When at={r.until} />
              </>
            ) : null}
          </p>
        ))}
        {errors !== '' && <pre className="log">{errors}</pre>}
      </div>
    </Notice>
  );
}

function Side({ environment, r }: { environment: string; r: ResourceView }): ReactElement {
  return (
    <div className="stack">
      <Card>
        <dl className="facts">
          <dt>{text.resources.lastDeploy}</dt>
          <dd>
            <When at={r.last_deploy} />
          </dd>
          <dt>{text.resources.lastSuccess}</dt>
          <dd>
            <When at={r.last_success} />
          </dd>
          <dt>{text.resources.firstSeen}</dt>
          <dd>
            <When at={r.first_generated_time} />
          </dd>
          <dt>{text.resources.version}</dt>
          <dd>{r.version}</dd>
          <dt>{text.resources.hash}</dt>
          <dd className="mono">{r.attribute_hash}</dd>
        </dl>
      </Card>
      <Card title={text.resources.requires}>
        <Neighbours environment={environment} of={r.requires_status} />
      </Card>
      <Card title={text.resources.provides}>
        <Neighbours environment={environment} of={r.provides_status} />
      </Card>
    </div>
  );
}

export function ResourcePage(): ReactElement {
  const { environment, id } = useParams({ from: '/environments/$environment/resources/$id' });
  const resource = useResource(environment, id);
  const [tab, setTab] = useState<Tab>('desired');
  const r = resource.data;
  return (
    <>
      <PageHead
        crumbs={
          <Link to="/environments/$environment/resources" params={{ environment }}>
            {text.resources.title}
          </Link>
        }
        title={r ? r.id_attribute_value : id}
        sub={r ? `${r.resource_type} · ${r.agent}` : ' '}
        actions={r ? <StatusChip status={r.status} /> : undefined}
      />
      <Loaded query={resource} lines={8}>
        {(data) => (
          <div className="split">
            <div className="stack">
              <Why environment={environment} id={id} status={data.status} />
              <Card bare>
                <Tabs label={text.resources.title} tabs={tabs} value={tab} onChange={setTab} />
                <TabPanel id={tab}>
                  {tab === 'desired' && <Attributes attributes={data.attributes} />}
                  {tab === 'runs' && <Runs environment={environment} id={id} />}
                  {tab === 'history' && <History environment={environment} id={id} />}
                  {tab === 'logs' && <Logs environment={environment} id={id} />}
                </TabPanel>
              </Card>
            </div>
            <Side environment={environment} r={data} />
          </div>
        )}
      </Loaded>
    </>
  );
}
