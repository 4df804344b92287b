import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';

import { call, segment, type Envelope } from '../../api/client';
import type {
  Explanation,
  Resource,
  ResourceAction,
  ResourceHistory,
  ResourceLog,
  ResourceView,
} from '../../api/types';

export interface ResourceSearch {
  type?: string;
  agent?: string;
  value?: string;
  status?: string;
  sort?: string;
  start?: string;
  first_id?: string;
  end?: string;
  last_id?: string;
}

export const resourceKeys = {
  list: (environment: string, search: ResourceSearch) => ['resources', environment, 'list', search] as const,
  one: (environment: string, id: string, what: string) => ['resources', environment, 'one', id, what] as const,
};

export const pageSize = 50;

export function useResources(environment: string, s: ResourceSearch): UseQueryResult<Envelope<Resource[]>> {
  return useQuery({
    queryKey: resourceKeys.list(environment, s),
    queryFn: ({ signal }) =>
      call<Envelope<Resource[]>>('GET', '/api/v2/resource', {
        environment,
        signal,
        query: {
          limit: pageSize,
          deploy_summary: true,
          sort: s.sort ?? 'resource_type.asc',
          'filter.resource_type': s.type,
          'filter.agent': s.agent,
          'filter.resource_id_value': s.value,
          'filter.status': s.status ?? '!orphaned',
          start: s.start,
          first_id: s.first_id,
          end: s.end,
          last_id: s.last_id,
        },
      }),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
}

function useOne<T>(
  environment: string,
  id: string,
  what: string,
  path: string,
  query: Record<string, string | number | undefined> = {},
): UseQueryResult<T> {
  return useQuery({
    queryKey: [...resourceKeys.one(environment, id, what), query],
    queryFn: async ({ signal }) => (await call<Envelope<T>>('GET', path, { environment, signal, query })).data,
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
}

export function useResource(environment: string, id: string): UseQueryResult<ResourceView> {
  return useOne(environment, id, 'view', `/api/v3/resource/${segment(id)}`);
}

export function useExplanation(environment: string, id: string): UseQueryResult<Explanation> {
  return useOne(environment, id, 'explain', `/api/v3/resource/${segment(id)}/explain`);
}

export function useResourceHistory(environment: string, id: string): UseQueryResult<ResourceHistory[]> {
  return useOne(environment, id, 'history', `/api/v2/resource/${segment(id)}/history`);
}

export function useResourceLogs(environment: string, id: string, level: string): UseQueryResult<ResourceLog[]> {
  return useOne(environment, id, 'logs', `/api/v2/resource/${segment(id)}/logs`, {
    limit: 200,
    'filter.minimal_log_level': level,
  });
}

export function useResourceRuns(environment: string, id: string): UseQueryResult<ResourceAction[]> {
  return useOne(environment, id, 'runs', `/api/v3/resource/${segment(id)}/actions`, { limit: 50 });
}
