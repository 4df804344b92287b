import {
  useInfiniteQuery,
  useMutation,
  useQueryClient,
  type InfiniteData,
  type UseInfiniteQueryResult,
} from '@tanstack/react-query';

import { call, segment, type Envelope } from '../../api/client';
import type { Journey } from '../../api/types';

export const journeyKeys = { list: (environment: string) => ['journeys', environment] as const };

const page = 15;

export function useJourneys(environment: string): UseInfiniteQueryResult<InfiniteData<Journey[]>> {
  return useInfiniteQuery({
    queryKey: journeyKeys.list(environment),
    queryFn: async ({ pageParam, signal }) =>
      (
        await call<Envelope<Journey[]>>('GET', '/api/v3/journey', {
          environment,
          query: { limit: page, before: pageParam },
          signal,
        })
      ).data,
    initialPageParam: '',
    getNextPageParam: (last) => (last.length < page ? undefined : (last.at(-1)?.requested_at ?? undefined)),
    refetchInterval: 10_000,
  });
}

type Act = 'compile' | 'deploy' | 'repair' | 'halt' | 'resume';

/** What an operator may ask of a whole environment. */
export function useAct(environment: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (act: Act) => {
      switch (act) {
        case 'compile':
          return call<undefined>('POST', `/api/v1/notify/${segment(environment)}`, {
            environment,
            body: { update: true, metadata: { type: 'console', message: 'Requested in the console' } },
          });
        case 'deploy':
          return call<unknown>('POST', '/api/v3/deploy', {
            environment,
            body: { message: 'Requested in the console' },
          });
        case 'repair':
          return call<unknown>('POST', '/api/v3/deploy', {
            environment,
            body: { repair: true, message: 'Requested in the console' },
          });
        case 'halt':
        case 'resume':
          return call<unknown>('POST', `/api/v2/actions/environment/${act}`, { environment });
      }
    },
    onSuccess: () => client.invalidateQueries(),
  });
}
