import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { EnvironmentDetails } from '../../api/types';
import { text } from '../../i18n/en';
import { Icon } from '../../ui/icons';
import { Card, Empty, Notice, PageHead } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { SummaryBar } from '../../ui/status';
import { JourneyRow } from './journey';
import { useAct, useJourneys } from './queries';

export function JourneysPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const journeys = useJourneys(environment);
  const act = useAct(environment);
  const details = useQuery({
    queryKey: ['environments', environment],
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<EnvironmentDetails>>('GET', `/api/v3/environment/${segment(environment)}`, {
          signal,
          query: { deploy_summary: true },
        })
      ).data,
    refetchInterval: 15_000,
  });
  const e = details.data;
  const deployable = (e?.released_version ?? 0) > 0;
  return (
    <>
      <PageHead
        title={e?.name ?? text.journey.title}
        crumbs={e?.project_name ?? ' '}
        sub={
          e
            ? e.repo_url === ''
              ? text.environments.noRepo
              : `${e.repo_url}${e.repo_branch === '' ? '' : ` · ${e.repo_branch}`}${e.repo_path === '' ? '' : ` · ${e.repo_path}`}`
            : ' '
        }
        actions={
          <>
            {e?.repo_url !== '' && (
              <button type="button" className="primary" disabled={act.isPending} onClick={() => act.mutate('compile')}>
                <Icon name="hammer" /> {text.journey.compileNow}
              </button>
            )}
            <button type="button" disabled={act.isPending || !deployable} onClick={() => act.mutate('deploy')}>
              <Icon name="rocket" /> {text.journey.deploy}
            </button>
            <button type="button" disabled={act.isPending || !deployable} onClick={() => act.mutate('repair')}>
              <Icon name="refresh" /> {text.journey.repair}
            </button>
            <button
              type="button"
              disabled={act.isPending || e === undefined}
              onClick={() => act.mutate(e?.halted ? 'resume' : 'halt')}
            >
              <Icon name={e?.halted ? 'play' : 'pause'} /> {e?.halted ? text.journey.resume : text.journey.halt}
            </button>
          </>
        }
      />
      <div className="stack">
        {e?.halted && <Notice tone="warn">{text.environments.halted}</Notice>}
        <Refusal error={act.error} />
        <Card title={text.journey.resources}>
          <Loaded query={details} lines={1}>
            {(d) =>
              d.deploy_summary && d.released_version > 0 ? (
                <SummaryBar total={d.deploy_summary.total} byState={d.deploy_summary.by_state} />
              ) : (
                <span className="muted">{text.environments.neverDeployed}</span>
              )
            }
          </Loaded>
        </Card>
        <Card title={text.journey.title} bare>
          <Loaded query={journeys} lines={6}>
            {(data) => {
              const all = data.pages.flat();
              if (all.length === 0)
                return (
                  <Empty icon="commit" title={text.journey.empty}>
                    {e?.repo_url === '' ? text.journey.emptyUpload : text.journey.emptyHint}
                  </Empty>
                );
              return (
                <>
                  {all.map((j) => (
                    <JourneyRow key={j.compile_id} journey={j} environment={environment} />
                  ))}
                  {journeys.hasNextPage && (
                    <div className="card-body">
                      <button
                        type="button"
                        disabled={journeys.isFetchingNextPage}
                        onClick={() => void journeys.fetchNextPage()}
                      >
                        {text.journey.more}
                      </button>
                    </div>
                  )}
                </>
              );
            }}
          </Loaded>
        </Card>
      </div>
    </>
  );
}
