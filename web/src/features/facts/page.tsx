import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';

import { call, type Envelope } from '../../api/client';
import type { Fact, Parameter } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, Empty, PageHead, Scroll } from '../../ui/layout';
import { Loaded } from '../../ui/query';
import { When } from '../../ui/time';
import { Value } from '../../ui/value';

const factKeys = {
  facts: (environment: string) => ['parameters', environment, 'facts'] as const,
  parameters: (environment: string) => ['parameters', environment, 'parameters'] as const,
};

const limit = 200;

function Parameters({ all }: { all: Parameter[] }): ReactElement {
  if (all.length === 0) return <Empty icon="tag" title={text.facts.noParameters} />;
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            <th>{text.facts.name}</th>
            <th>{text.facts.value}</th>
            <th>{text.facts.source}</th>
            <th>{text.facts.updated}</th>
          </tr>
        </thead>
        <tbody>
          {all.map((p) => (
            <tr key={p.id}>
              <td className="mono">{p.name}</td>
              <td>
                <Value value={p.value} />
              </td>
              <td>{p.source}</td>
              <td>
                <When at={p.updated} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Facts({ environment, all }: { environment: string; all: Fact[] }): ReactElement {
  if (all.length === 0) return <Empty icon="tag" title={text.facts.noFacts} />;
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            <th>{text.facts.resource}</th>
            <th>{text.facts.name}</th>
            <th>{text.facts.value}</th>
            <th>{text.facts.updated}</th>
          </tr>
        </thead>
        <tbody>
          {all.map((f) => (
            <tr key={f.id}>
              <td className="anywhere">
                <Link to="/environments/$environment/resources/$id" params={{ environment, id: f.resource_id }}>
                  {f.resource_id}
                </Link>
              </td>
              <td className="mono">{f.name}</td>
              <td>
                <Value value={f.value} />
              </td>
              <td>
                <When at={f.updated} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

export function FactsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const parameters = useQuery({
    queryKey: factKeys.parameters(environment),
    queryFn: async ({ signal }) =>
      (await call<Envelope<Parameter[]>>('GET', '/api/v2/parameters', { environment, signal, query: { limit } })).data,
    refetchInterval: 30_000,
  });
  const facts = useQuery({
    queryKey: factKeys.facts(environment),
    queryFn: async ({ signal }) =>
      (await call<Envelope<Fact[]>>('GET', '/api/v2/facts', { environment, signal, query: { limit } })).data,
    refetchInterval: 30_000,
  });
  return (
    <>
      <PageHead title={text.facts.title} sub={text.facts.sub} />
      <div className="stack">
        <Card title={text.facts.parameters} bare>
          <Loaded query={parameters}>{(all) => <Parameters all={all} />}</Loaded>
        </Card>
        <Card title={text.facts.facts} bare>
          <Loaded query={facts}>{(all) => <Facts environment={environment} all={all} />}</Loaded>
        </Card>
      </div>
    </>
  );
}
