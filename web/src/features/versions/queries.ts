import { keepPreviousData, useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';

import { call, segment, type Envelope } from '../../api/client';
import type { DryRun, DryRunReport, ResourceDiff, VersionDetails } from '../../api/types';

export const versionKeys = {
  list: (environment: string) => ['versions', environment, 'list'] as const,
  one: (environment: string, version: string) => ['versions', environment, version] as const,
  diff: (environment: string, from: number, to: number) => ['versions', environment, 'diff', from, to] as const,
  dryRuns: (environment: string, version: string) => ['dryruns', environment, version] as const,
  dryRun: (environment: string, version: string, id: string) => ['dryruns', environment, version, id] as const,
};

export function useVersions(environment: string): UseQueryResult<Envelope<VersionDetails[]>> {
  return useQuery({
    queryKey: versionKeys.list(environment),
    queryFn: ({ signal }) =>
      call<Envelope<VersionDetails[]>>('GET', '/api/v3/version', { environment, signal, query: { limit: 100 } }),
    refetchInterval: 30_000,
  });
}

export function useVersion(environment: string, version: string): UseQueryResult<VersionDetails> {
  return useQuery({
    queryKey: versionKeys.one(environment, version),
    queryFn: async ({ signal }) =>
      (await call<Envelope<VersionDetails>>('GET', `/api/v3/version/${segment(version)}`, { environment, signal }))
        .data,
  });
}

export function useDiff(environment: string, from: number, to: number): UseQueryResult<ResourceDiff[]> {
  return useQuery({
    queryKey: versionKeys.diff(environment, from, to),
    queryFn: async ({ signal }) =>
      (await call<Envelope<ResourceDiff[]>>('GET', `/api/v2/desiredstate/diff/${from}/${to}`, { environment, signal }))
        .data,
    enabled: from > 0 && from < to,
    placeholderData: keepPreviousData,
  });
}

export function useDryRuns(environment: string, version: string): UseQueryResult<DryRun[]> {
  return useQuery({
    queryKey: versionKeys.dryRuns(environment, version),
    queryFn: async ({ signal }) =>
      (await call<Envelope<DryRun[]>>('GET', `/api/v2/dryrun/${segment(version)}`, { environment, signal })).data,
    refetchInterval: 10_000,
  });
}

export function useDryRun(environment: string, version: string, id: string): UseQueryResult<DryRunReport> {
  return useQuery({
    queryKey: versionKeys.dryRun(environment, version, id),
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<DryRunReport>>('GET', `/api/v2/dryrun/${segment(version)}/${segment(id)}`, {
          environment,
          signal,
        })
      ).data,
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
}

export function useVersionAct(environment: string, version: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (act: 'release' | 'dryrun') =>
      act === 'release'
        ? call<unknown>('POST', `/api/v2/desiredstate/${segment(version)}/promote`, { environment })
        : call<unknown>('POST', `/api/v2/dryrun/${segment(version)}`, { environment }),
    onSuccess: () => client.invalidateQueries(),
  });
}
