import { useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

/** News from the server: what kind of thing changed, where. */
export interface ServerEvent {
  kind: string;
  environment?: string;
  id?: string;
}

/** Which query keys each kind of news concerns. The first element of every key is the name used here. */
const concerns: Record<string, readonly string[]> = {
  compile: ['compiles', 'journeys', 'environments'],
  version: ['versions', 'journeys', 'environments', 'resources', 'agents'],
  resource: ['resources', 'journeys', 'environments'],
  agent: ['agents', 'resources'],
  environment: ['environments', 'settings', 'journeys', 'agents'],
  repository: ['repositories', 'environments'],
  delivery: ['repositories', 'journeys'],
  dryrun: ['dryruns'],
  notification: ['notifications'],
  parameter: ['parameters'],
  command: [],
};

export function invalidate(client: QueryClient, event: ServerEvent): void {
  const names = concerns[event.kind];
  if (names === undefined) {
    void client.invalidateQueries(); // "resync" and kinds that a newer server knows
    return;
  }
  for (const name of names) void client.invalidateQueries({ queryKey: [name] });
}

/** How long bursts of news are gathered before anything is read again. */
const gather = 150;

/** Keeps one event stream open and the cache fresh; says whether the stream stands. */
export function useServerEvents(): boolean {
  const client = useQueryClient();
  const [live, setLive] = useState(false);
  useEffect(() => {
    const source = new EventSource('/api/v3/events');
    const pending = new Map<string, ServerEvent>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lost = false;
    const take = (event: ServerEvent): void => {
      pending.set(event.kind, event);
      timer ??= setTimeout(() => {
        timer = undefined;
        for (const e of pending.values()) invalidate(client, e);
        pending.clear();
      }, gather);
    };
    source.onopen = () => {
      setLive(true);
      if (lost) take({ kind: 'resync' });
      lost = false;
    };
    source.onerror = () => {
      setLive(false);
      lost = true;
    };
    source.onmessage = (m: MessageEvent<string>) => {
      try {
        take(JSON.parse(m.data) as ServerEvent); // our own server's event
      } catch {
        take({ kind: 'resync' });
      }
    };
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [client]);
  return live;
}
