import type { ReactElement } from 'react';

import { text } from '../i18n/en';
import { formatNumber } from './time';

interface PageInfo {
  links?: { next?: string; prev?: string; first?: string };
  metadata?: { total?: number; before?: number };
}

/** Which bounds a link of the API asks for: what the page's address keeps. */
function bounds(link: string): Record<string, string> {
  const params = new URL(link, 'http://console').searchParams;
  const out: Record<string, string> = {};
  for (const name of ['start', 'first_id', 'end', 'last_id']) {
    const value = params.get(name);
    if (value !== null) out[name] = value;
  }
  return out;
}

/** Where a page stands in its list, and the way to the next. */
export function Pager(props: {
  page: PageInfo;
  shown: number;
  go: (bounds: Record<string, string>) => void;
}): ReactElement | null {
  const { links, metadata } = props.page;
  const total = metadata?.total ?? props.shown;
  const before = metadata?.before ?? 0;
  if (total <= props.shown && before === 0) return null;
  return (
    <div className="toolbar" style={{ borderBottom: 0, borderTop: '1px solid var(--border)' }}>
      <span className="muted small grow">
        {formatNumber(before + 1)}–{formatNumber(before + props.shown)} {text.common.of} {formatNumber(total)}
      </span>
      <button type="button" disabled={!links?.prev} onClick={() => links?.prev && props.go(bounds(links.prev))}>
        {text.common.previous}
      </button>
      <button type="button" disabled={!links?.next} onClick={() => links?.next && props.go(bounds(links.next))}>
        {text.common.next}
      </button>
    </div>
  );
}
