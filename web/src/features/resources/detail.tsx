import { Link, useParams } from '@tanstack/react-router';
import { useState, type ReactElement } from 'react';

import type { ResourceAction, ResourceView } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, Empty, Notice, PageHead, Tabs } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { StatusChip, look } from '../../ui/status';
import { Took, When } from '../../ui/time';
import { Changes, Value } from '../../ui/value';
import { useExplanation, useResource, useResourceHistory, useResourceLogs, useResourceRuns } from './queries';

const tabs = [
  { id: 'desired', text: text.resources.desired },
  { id: 'runs', text: text.resources.actions },
  { id: 'history', text: text.resources.history },
  { id: 'logs', text: text.resources.logs },
] as const;

type Tab = (typeof tabs)[number]['id'];

const levels = ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR'];

function Attributes({ attributes }: { attributes: unknown }): ReactElement {
  const entries = typeof attributes === 'object' && attributes !== null ? Object.entries(attributes) : [];
  return (
    <dl className="facts card-body">
      {entries.map(([name, value]) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt className="mono">{name}</dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Neighbours({ environment, of }: { environment: string; of: Record<string, string> | null | undefined }): ReactElement {
  const all = Object.entries(of ?? {});
  if (all.length === 0) return <span className="muted">{text.resources.noRequires}</span>;
  return (
    <div className="stack" style={{ gap: 8 }}>
      {all.slice(0, 40).map(([id, status]) => (
        <div key={id} className="row wrap">
          <StatusChip status={status} />
          <Link to="/environments/$environment/resources/$id" params={{ environment, id }} style={{ overflowWrap: 'anywhere' }}>
            {id}
          </Link>
        </div>
      ))}
      {all.length > 40 && <span className="muted">+ {all.length - 40}</span>}
    </div>
  );
}

function Run({ run }: { run: ResourceAction }): ReactElement {
  const changes = Object.values(run.changes ?? {}).flatMap((c) => Object.entries(c).map(([name, v]) => ({ name, from: v.current, to: v.desired })));
  return (
    <article className="journey">
      <div className="row wrap">
        {run.status ? <StatusChip status={run.status} /> : <StatusChip status="running" />}
        <b>{run.reason || run.action}</b>
        <span className="muted small">
          <When at={run.started} /> · <Took from={run.started} to={run.finished} /> · {run.change === 'nochange' || !run.change ? text.resources.noChange : run.change}
        </span>
      </div>
      {changes.length > 0 && <Changes changes={changes} from={text.resources.current} to={text.resources.wanted} />}
      {(run.messages ?? []).some((m) => m.level === 'ERROR' || m.level === 'CRITICAL') && (
        <pre className="log">{(run.messages ?? []).filter((m) => m.level === 'ERROR' || m.level === 'CRITICAL').map((m) => m.msg).join('\n')}</pre>
      )}
    </article>
  );
}

function Runs({ environment, id }: { environment: string; id: string }): ReactElement {
  const runs = useResourceRuns(environment, id);
  return (
    <Loaded query={runs}>
      {(all) => (all.length === 0 ? <Empty icon="clock" title={text.resources.noActions} /> : <>{all.map((r) => <Run key={r.action_id} run={r} />)}</>)}
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
            const now = (h.attributes ?? {}) as Record<string, unknown>; // attributes are a JSON object by contract
            const before = (all[i + 1]?.attributes ?? {}) as Record<string, unknown>;
            const names = [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((n) => JSON.stringify(now[n]) !== JSON.stringify(before[n]));
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
                {i + 1 < all.length && <Changes changes={names.map((name) => ({ name, from: before[name], to: now[name] }))} from={text.resources.current} to={text.resources.wanted} />}
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
            <div className="table-wrap">
              <table>
                <tbody>
                  {all.map((l, i) => (
                    <tr key={`${l.action_id} ${i}`}>
                      <td className="nowrap small">
                        <When at={l.timestamp} />
                      </td>
                      <td className={`small mono tone-${l.level === 'ERROR' || l.level === 'CRITICAL' ? 'bad' : l.level === 'WARNING' ? 'warn' : 'idle'}`} style={{ color: 'var(--tone)' }}>
                        {l.level}
                      </td>
                      <td className="value" style={{ width: '100%' }}>
                        {l.msg}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </>
  );
}

function Why({ environment, id }: { environment: string; id: string }): ReactElement | null {
  const why = useExplanation(environment, id);
  if (!why.data || why.data.summary === '') return null;
  return (
    <Card title={text.resources.why}>
      <div className="stack" style={{ gap: 8 }}>
        <p>{why.data.summary}</p>
        {(why.data.reasons ?? []).map((r) => (
          <p key={`${r.code} ${r.resource_id ?? ''}`} className="muted small">
            {r.text} {r.until ? <When at={r.until} /> : null}
          </p>
        ))}
      </div>
    </Card>
  );
}

function Side({ environment, r }: { environment: string; r: ResourceView }): ReactElement {
  return (
    <div className="stack">
      <Why environment={environment} id={r.resource_id} />
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
      <Loaded query={resource}>
        {(data) => (
          <div className="split">
            <Card bare>
              {look(data.status).tone === 'bad' && (
                <div className="card-body">
                  <Notice tone="bad">{data.failures_in_a_row > 1 ? `${text.status['failed']} ×${data.failures_in_a_row}` : (text.status[data.status] ?? data.status)}</Notice>
                </div>
              )}
              <Tabs label={text.resources.title} tabs={tabs} value={tab} onChange={setTab} />
              {tab === 'desired' && <Attributes attributes={data.attributes} />}
              {tab === 'runs' && <Runs environment={environment} id={id} />}
              {tab === 'history' && <History environment={environment} id={id} />}
              {tab === 'logs' && <Logs environment={environment} id={id} />}
            </Card>
            <Side environment={environment} r={data} />
          </div>
        )}
      </Loaded>
    </>
  );
}
