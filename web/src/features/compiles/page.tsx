import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Card, Empty, PageHead, Scroll } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { Took, When } from '../../ui/time';
import { sentence } from '../../ui/value';
import { useCompiles } from './queries';

export function CompilesPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const compiles = useCompiles(environment);
  return (
    <>
      <PageHead title={text.compiles.title} sub={text.compiles.sub} />
      <Card bare>
        <Loaded query={compiles} lines={8}>
          {(all) =>
            all.length === 0 ? (
              <Empty icon="hammer" title={text.compiles.empty}>
                {text.compiles.emptyHint}
              </Empty>
            ) : (
              <Scroll>
                <table>
                  <thead>
                    <tr>
                      <th>{text.compiles.requested}</th>
                      <th>{text.compiles.status}</th>
                      <th>{text.versions.commit}</th>
                      <th className="hide-narrow">{text.compiles.reason}</th>
                      <th>{text.compiles.took}</th>
                      <th className="num">{text.compiles.version}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {all.map((c) => (
                      <tr key={c.id}>
                        <td>
                          <Link to="/environments/$environment/compiles/$id" params={{ environment, id: c.id }}>
                            <When at={c.requested} />
                          </Link>
                        </td>
                        <td>
                          <StatusChip status={c.status} />
                        </td>
                        <td style={{ maxWidth: 380 }}>
                          <Commit revision={c.revision} />
                        </td>
                        <td className="hide-narrow muted">{sentence(c.reason)}</td>
                        <td>
                          <Took from={c.started} to={c.completed} />
                        </td>
                        <td className="num">{c.version ?? '—'}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Scroll>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}
