import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { Delivery, Repository } from '../../api/types';
import { text } from '../../i18n/en';
import { Icon } from '../../ui/icons';
import { Card, Empty, Notice, PageHead, Scroll } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { When, formatDuration } from '../../ui/time';
import { sentence } from '../../ui/value';

const repositoryKeys = {
  list: ['repositories', 'list'] as const,
  deliveries: ['repositories', 'deliveries'] as const,
};

/** How often a repository is looked at: a number of seconds, a cron expression, or never. */
function rhythm(poll: string): string {
  const seconds = Number(poll);
  if (poll === '' || Number.isNaN(seconds)) return poll === '' ? '—' : poll;
  return seconds === 0 ? text.repositories.never : `${text.repositories.every} ${formatDuration(seconds * 1000)}`;
}

export function RepositoriesPage(): ReactElement {
  const client = useQueryClient();
  const repositories = useQuery({
    queryKey: repositoryKeys.list,
    queryFn: async ({ signal }) => (await call<Envelope<Repository[]>>('GET', '/api/v3/repository', { signal })).data,
    refetchInterval: 15_000,
  });
  const deliveries = useQuery({
    queryKey: repositoryKeys.deliveries,
    queryFn: async ({ signal }) =>
      (await call<Envelope<Delivery[]>>('GET', '/api/v3/delivery', { signal, query: { limit: 100 } })).data,
    refetchInterval: 15_000,
  });
  const again = (): Promise<void> => client.invalidateQueries({ queryKey: ['repositories'] });
  const sync = useMutation({
    mutationFn: (name: string) => call<undefined>('POST', `/api/v3/repository/${segment(name)}/sync`),
    onSuccess: again,
  });
  const replay = useMutation({
    mutationFn: (d: Delivery) =>
      call<undefined>('POST', `/api/v3/delivery/${segment(d.repository)}/${segment(d.key)}/replay`),
    onSuccess: again,
  });
  return (
    <>
      <PageHead title={text.repositories.title} sub={text.repositories.sub} />
      <div className="stack">
        <Refusal error={sync.error ?? replay.error} />
        <Loaded query={repositories}>
          {(all) =>
            all.length === 0 ? (
              <Card bare>
                <Empty icon="git" title={text.repositories.empty}>
                  {text.repositories.emptyHint}
                </Empty>
              </Card>
            ) : (
              <div className="grid">
                {all.map((r) => (
                  <Card
                    key={r.name}
                    title={r.name}
                    actions={
                      <button type="button" disabled={sync.isPending} onClick={() => sync.mutate(r.name)}>
                        <Icon name="refresh" /> {text.repositories.sync}
                      </button>
                    }
                  >
                    <div className="stack" style={{ gap: 10 }}>
                      <dl className="facts">
                        <dt>{text.repositories.url}</dt>
                        <dd className="mono">{r.url}</dd>
                        <dt>{text.repositories.provider}</dt>
                        <dd>
                          {r.provider === '' ? (
                            text.repositories.noProvider
                          ) : (
                            <>
                              {sentence(r.provider)} → <code>{`${location.origin}${r.webhook_path}`}</code>
                            </>
                          )}
                        </dd>
                        <dt>{text.repositories.poll}</dt>
                        <dd>{rhythm(r.poll)}</dd>
                        <dt>{text.repositories.last}</dt>
                        <dd>
                          <When at={r.last_synced} />
                        </dd>
                      </dl>
                      {r.last_error !== '' && <Notice tone="bad">{r.last_error}</Notice>}
                    </div>
                  </Card>
                ))}
              </div>
            )
          }
        </Loaded>
        <Card title={text.repositories.deliveries} bare>
          <Loaded query={deliveries}>
            {(all) =>
              all.length === 0 ? (
                <Empty icon="git" title={text.repositories.noDeliveries}>
                  {text.repositories.noDeliveriesHint} <code>{`${location.origin}/hooks/…`}</code>
                </Empty>
              ) : (
                <Scroll>
                  <table>
                    <thead>
                      <tr>
                        <th>{text.repositories.received}</th>
                        <th>{text.repositories.name}</th>
                        <th>{text.repositories.event}</th>
                        <th className="hide-narrow">{text.repositories.ref}</th>
                        <th>{text.repositories.result}</th>
                        <th>
                          <span className="visually-hidden">{text.repositories.replay}</span>
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {all.map((d) => (
                        <tr key={`${d.repository} ${d.key}`}>
                          <td>
                            <When at={d.received_at} />
                          </td>
                          <td>{d.repository}</td>
                          <td>{d.event}</td>
                          <td className="hide-narrow mono">{d.ref.replace(/^refs\/heads\//, '')}</td>
                          <td>
                            <StatusChip status={d.status} /> <div className="muted small anywhere">{d.detail}</div>
                          </td>
                          <td className="num">
                            <button
                              type="button"
                              disabled={replay.isPending || d.status === 'received'}
                              onClick={() => replay.mutate(d)}
                            >
                              {text.repositories.replay}
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
      </div>
    </>
  );
}
