import { useQuery } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';

import { call, type Envelope } from '../../api/client';
import type { ServerStatus } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, PageHead } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { formatDuration, formatNumber } from '../../ui/time';
import { Value, sentence } from '../../ui/value';

/** A fact of a part: yes and no in words, spans of time in units. */
function fact(name: string, value: unknown): ReactNode {
  if (typeof value === 'boolean') return value ? text.common.yes : text.common.no;
  if (name === 'uptime' && typeof value === 'number') return formatDuration(value * 1000);
  if (typeof value === 'number') return formatNumber(value);
  return <Value value={value} />;
}

export function ServerPage(): ReactElement {
  const status = useQuery({
    queryKey: ['server'],
    queryFn: async ({ signal }) => (await call<Envelope<ServerStatus>>('GET', '/api/v1/serverstatus', { signal })).data,
    refetchInterval: 10_000,
  });
  return (
    <>
      <PageHead title={text.server.title} sub={text.server.sub} />
      <Loaded query={status}>
        {(s) => (
          <div className="stack">
            <Card>
              <dl className="strip">
                <div>
                  <dt>{text.server.status}</dt>
                  <dd>
                    <StatusChip status={s.status} />
                  </dd>
                </div>
                <div>
                  <dt>{text.server.version}</dt>
                  <dd>
                    {s.product} {s.version}
                  </dd>
                </div>
                <div>
                  <dt>{text.server.database}</dt>
                  <dd>PostgreSQL {s.postgresql_version ?? '—'}</dd>
                </div>
                <div>
                  <dt>{text.server.api}</dt>
                  <dd>
                    <a href="/api/v2/docs">{text.server.docs}</a> · <a href="/api/v2/docs?format=openapi">OpenAPI</a> ·{' '}
                    <a href="/metrics">{text.server.metrics}</a>
                  </dd>
                </div>
              </dl>
            </Card>
            <div className="grid">
              {s.slices.map((slice) => (
                <Card
                  key={slice.name}
                  title={sentence(slice.name)}
                  actions={<StatusChip status={slice.reported_status} />}
                >
                  <dl className="facts">
                    {Object.entries(slice.status).map(([name, value]) => (
                      <div key={name} style={{ display: 'contents' }}>
                        <dt>{sentence(name.replaceAll('_', ' '))}</dt>
                        <dd>{fact(name, value)}</dd>
                      </div>
                    ))}
                  </dl>
                </Card>
              ))}
            </div>
          </div>
        )}
      </Loaded>
    </>
  );
}
