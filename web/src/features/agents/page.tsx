import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState, type ReactElement } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { Agent, AgentProcess, IssuedToken } from '../../api/types';
import { text } from '../../i18n/en';
import { Icon } from '../../ui/icons';
import { Card, Dialog, Empty, PageHead, Scroll } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { When } from '../../ui/time';
import { shortId } from '../../ui/value';

const agentKeys = {
  list: (environment: string) => ['agents', environment, 'list'] as const,
  sessions: (environment: string) => ['agents', environment, 'sessions'] as const,
};

function TokenDialog({ environment, onClose }: { environment: string; onClose: () => void }): ReactElement {
  const [copied, setCopied] = useState(false);
  const issue = useMutation({
    mutationFn: async () =>
      (
        await call<Envelope<IssuedToken>>('POST', '/api/v3/agent-token', {
          environment,
          body: { description: 'Made in the console', one_time: true },
        })
      ).data,
  });
  const command = issue.data
    ? `intendant agent --server ${location.origin} --environment ${environment} --name "$(hostname)" --enroll - <<< '${issue.data.token}'`
    : '';
  return (
    <Dialog title={text.agents.token} onClose={onClose}>
      <p>{text.agents.tokenHint}</p>
      <Refusal error={issue.error} />
      {issue.data ? (
        <>
          <pre className="log">{command}</pre>
          <button
            type="button"
            onClick={() => {
              void navigator.clipboard.writeText(command).then(() => setCopied(true));
            }}
          >
            {copied ? text.common.copied : text.common.copy}
          </button>
        </>
      ) : (
        <button type="button" className="primary" disabled={issue.isPending} onClick={() => issue.mutate()}>
          {text.agents.issue}
        </button>
      )}
    </Dialog>
  );
}

export function AgentsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const client = useQueryClient();
  const [token, setToken] = useState(false);
  const agents = useQuery({
    queryKey: agentKeys.list(environment),
    queryFn: async ({ signal }) =>
      (await call<Envelope<Agent[]>>('GET', '/api/v2/agents', { environment, signal })).data,
    refetchInterval: 15_000,
  });
  const sessions = useQuery({
    queryKey: agentKeys.sessions(environment),
    queryFn: async ({ signal }) =>
      (await call<Envelope<AgentProcess[]>>('GET', '/api/v3/agent-process', { environment, signal })).data,
    refetchInterval: 15_000,
  });
  const act = useMutation({
    mutationFn: ({ name, action }: { name: string; action: 'pause' | 'unpause' }) =>
      call<undefined>('POST', `/api/v2/agent/${segment(name)}/${action}`, { environment }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['agents'] }),
  });
  return (
    <>
      <PageHead
        title={text.agents.title}
        sub={text.agents.sub}
        actions={
          <button type="button" onClick={() => setToken(true)}>
            <Icon name="plus" /> {text.agents.token}
          </button>
        }
      />
      <div className="stack">
        <Refusal error={act.error} />
        <Card bare>
          <Loaded query={agents}>
            {(all) =>
              all.length === 0 ? (
                <Empty icon="server" title={text.agents.empty}>
                  {text.agents.emptyHint}
                </Empty>
              ) : (
                <Scroll>
                  <table>
                    <thead>
                      <tr>
                        <th>{text.agents.name}</th>
                        <th>{text.agents.status}</th>
                        <th className="hide-narrow">{text.agents.host}</th>
                        <th className="hide-narrow">{text.agents.since}</th>
                        <th>
                          <span className="visually-hidden">{text.agents.pause}</span>
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {all.map((a) => (
                        <tr key={a.name}>
                          <td>
                            <b>{a.name}</b>
                          </td>
                          <td>
                            <StatusChip status={a.status} />
                          </td>
                          <td className="hide-narrow">{a.hostname || '—'}</td>
                          <td className="hide-narrow">
                            <When at={a.since} />
                          </td>
                          <td className="num">
                            <button
                              type="button"
                              disabled={act.isPending}
                              onClick={() => act.mutate({ name: a.name, action: a.paused ? 'unpause' : 'pause' })}
                            >
                              <Icon name={a.paused ? 'play' : 'pause'} />{' '}
                              {a.paused ? text.agents.unpause : text.agents.pause}
                            </button>
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </Scroll>
              )
            }
          </Loaded>
        </Card>
        <Card title={text.agents.sessions} bare>
          <Loaded query={sessions} lines={2}>
            {(all) =>
              all.length === 0 ? (
                <Empty icon="server" title={text.agents.noSessions} />
              ) : (
                <Scroll>
                  <table>
                    <thead>
                      <tr>
                        <th>{text.agents.process}</th>
                        <th>{text.agents.host}</th>
                        <th>{text.agents.agents}</th>
                        <th>{text.agents.version}</th>
                        <th>{text.agents.since}</th>
                      </tr>
                    </thead>
                    <tbody>
                      {all.map((s) => (
                        <tr key={s.sid}>
                          <td className="mono" title={s.process || s.sid}>
                            {shortId(s.process || s.sid)}
                          </td>
                          <td>{s.hostname}</td>
                          <td>{s.agents.join(', ')}</td>
                          <td className="nowrap">
                            {s.version}{' '}
                            {s.autostarted && <span className="muted small">{text.agents.autostarted}</span>}
                          </td>
                          <td>
                            <When at={s.first_seen} />
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </Scroll>
              )
            }
          </Loaded>
        </Card>
      </div>
      {token && <TokenDialog environment={environment} onClose={() => setToken(false)} />}
    </>
  );
}
