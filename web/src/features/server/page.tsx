import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';

import { call, type Envelope } from '../../api/client';
import type { ServerStatus } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, PageHead } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { Value } from '../../ui/value';

export function ServerPage(): ReactElement {
  const status = useQuery({
    queryKey: ['server'],
    queryFn: async ({ signal }) => (await call<Envelope<ServerStatus>>('GET', '/api/v1/serverstatus', { signal })).data,
    refetchInterval: 10_000,
  });
  return (
    <>
      <PageHead title={text.server.title} />
      <Loaded query={status}>
        {(s) => (
          <div className="stack">
            <Card>
              <dl className="facts">
                <dt>{text.server.version}</dt>
                <dd>
                  {s.product} {s.version}
                </dd>
                <dt>{text.server.status}</dt>
                <dd>{s.status}</dd>
                <dt>{text.server.database}</dt>
                <dd>PostgreSQL {s.postgresql_version ?? '—'}</dd>
              </dl>
            </Card>
            <div className="grid">
              {(s.slices ?? []).map((slice) => (
                <Card key={slice.name} title={slice.name} actions={<span className="muted small">{slice.reported_status}</span>}>
                  <dl className="facts">
                    {Object.entries(slice.status ?? {}).map(([name, value]) => (
                      <div key={name} style={{ display: 'contents' }}>
                        <dt>{name.replaceAll('_', ' ')}</dt>
                        <dd>
                          <Value value={value} />
                        </dd>
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
