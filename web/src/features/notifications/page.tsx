import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { Notification } from '../../api/types';
import { text } from '../../i18n/en';
import { Icon } from '../../ui/icons';
import { Card, Empty, PageHead } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import type { Tone } from '../../ui/status';
import { When } from '../../ui/time';

const tones: Record<string, Tone> = { error: 'bad', warning: 'warn', success: 'ok', info: 'busy' };

export function NotificationsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const client = useQueryClient();
  const list = useQuery({
    queryKey: ['notifications', environment],
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<Notification[]>>('GET', '/api/v2/notification', {
          environment,
          signal,
          query: { limit: 100, 'filter.cleared': false },
        })
      ).data,
    refetchInterval: 30_000,
  });
  const update = useMutation({
    mutationFn: ({ id, ...flags }: { id: string; read?: boolean; cleared?: boolean }) =>
      call<unknown>('PATCH', `/api/v2/notification/${segment(id)}`, { environment, body: flags }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['notifications'] }),
  });
  return (
    <>
      <PageHead title={text.notifications.title} />
      <Card bare>
        <Loaded query={list}>
          {(all) =>
            all.length === 0 ? (
              <Empty icon="bell" title={text.notifications.empty} />
            ) : (
              all.map((n) => {
                const tone = tones[n.severity] ?? 'idle';
                return (
                  <article key={n.id} className="journey">
                    <div className="row wrap">
                      <span className={`chip tone-${tone}`}>
                        <Icon name={tone === 'bad' ? 'cross' : tone === 'ok' ? 'check' : 'bell'} /> {n.severity}
                      </span>
                      <b className="grow" style={n.read ? { fontWeight: 400 } : undefined}>
                        {n.title}
                      </b>
                      <span className="muted small">
                        <When at={n.created} />
                      </span>
                    </div>
                    <p>
                      {n.message}{' '}
                      {n.compile_id && (
                        <Link to="/environments/$environment/compiles/$id" params={{ environment, id: n.compile_id }}>
                          {text.nav.compiles}
                        </Link>
                      )}
                    </p>
                    <div className="row">
                      {!n.read && (
                        <button type="button" onClick={() => update.mutate({ id: n.id, read: true })}>
                          {text.notifications.markRead}
                        </button>
                      )}
                      <button
                        type="button"
                        className="quiet"
                        onClick={() => update.mutate({ id: n.id, cleared: true })}
                      >
                        {text.notifications.clear}
                      </button>
                    </div>
                  </article>
                );
              })
            )
          }
        </Loaded>
      </Card>
    </>
  );
}
