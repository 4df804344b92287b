import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';

import { text } from '../i18n/en';
import { Notice, Skeleton } from './layout';

/** The states of a page's data: loading, failed, and what the page makes of it, also while it is being read again. */
export function Loaded<T>(props: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}): ReactElement {
  const { query } = props;
  if (query.data !== undefined) return <>{props.children(query.data)}</>;
  if (query.isError) {
    return (
      <div className="card-body">
        <Notice tone="bad">
          <b>{text.common.failed}</b>
          <p>{query.error.message}</p>
          <button type="button" onClick={() => void query.refetch()} style={{ marginTop: 8 }}>
            {text.common.retry}
          </button>
        </Notice>
      </div>
    );
  }
  return <Skeleton lines={props.lines ?? 4} />;
}

/** What a failed request of the user says; nothing while all is well. */
export function Refusal({ error }: { error: Error | null }): ReactElement | null {
  if (error === null) return null;
  return <Notice tone="bad">{error.message}</Notice>;
}
