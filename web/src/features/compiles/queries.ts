import { useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';

import { call, segment, type Envelope } from '../../api/client';
import type { CompileAnalysis, CompileReport } from '../../api/types';

export const compileKeys = {
  list: (environment: string) => ['compiles', environment, 'list'] as const,
  one: (environment: string, id: string) => ['compiles', environment, id] as const,
};

export function useCompiles(environment: string): UseQueryResult<CompileReport[]> {
  return useQuery({
    queryKey: compileKeys.list(environment),
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<CompileReport[]>>('GET', '/api/v2/compilereport', {
          environment,
          signal,
          query: { limit: 100 },
        })
      ).data,
    refetchInterval: 15_000,
  });
}

export function useCompile(environment: string, id: string): UseQueryResult<CompileAnalysis> {
  return useQuery({
    queryKey: compileKeys.one(environment, id),
    queryFn: async ({ signal }) =>
      (await call<Envelope<CompileAnalysis>>('GET', `/api/v3/compile/${segment(id)}`, { environment, signal })).data,
    refetchInterval: (q) => (q.state.data?.completed ? false : 2_000),
  });
}

export function useCancelCompile(environment: string, id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call<undefined>('POST', `/api/v3/compile/${segment(id)}/cancel`, { environment }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['compiles'] }),
  });
}
