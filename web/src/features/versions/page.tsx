import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Card, Empty, PageHead, Scroll } from '../../ui/layout';
import { Delta } from '../../ui/delta';
import { Loaded } from '../../ui/query';
import { StatusChip } from '../../ui/status';
import { When, formatNumber } from '../../ui/time';
import { useVersions } from './queries';

export function VersionsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const versions = useVersions(environment);
  return (
    <>
      <PageHead title={text.versions.title} sub={text.versions.sub} />
      <Card bare>
        <Loaded query={versions} lines={8}>
          {(page) =>
            page.data.length === 0 ? (
              <Empty icon="layers" title={text.versions.empty}>
                {text.versions.emptyHint}
              </Empty>
            ) : (
              <Scroll>
                <table>
                  <thead>
                    <tr>
                      <th>{text.versions.number}</th>
                      <th>{text.versions.status}</th>
                      <th>{text.versions.commit}</th>
                      <th className="num">{text.versions.resources}</th>
                      <th className="num">{text.versions.changes}</th>
                      <th>{text.versions.date}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {page.data.map((v) => (
                      <tr key={v.version}>
                        <td>
                          <Link
                            to="/environments/$environment/versions/$version"
                            params={{ environment, version: String(v.version) }}
                          >
                            <b>{v.version}</b>
                          </Link>
                        </td>
                        <td>
                          <StatusChip status={v.status} />
                        </td>
                        <td style={{ maxWidth: 420 }}>
                          <Commit revision={v.revision} />
                        </td>
                        <td className="num">{formatNumber(v.total)}</td>
                        <td className="num nowrap">
                          <Delta added={v.added} changed={v.changed} removed={v.removed} />
                        </td>
                        <td>
                          <When at={v.date} />
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
    </>
  );
}
