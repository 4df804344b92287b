import { useEffect, useState, type ReactElement } from 'react';

import { locale, text } from '../i18n/en';

const absolute = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'long' });
const number = new Intl.NumberFormat(locale);

export function formatNumber(n: number): string {
  return number.format(n);
}

/** Seconds in two units, the smaller one only when it says something. */
function two(s: number, big: number, bigName: string, small: number, smallName: string): string {
  const rest = Math.floor((s % big) / small);
  return `${Math.floor(s / big)} ${bigName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}

/** A span of time in words, from milliseconds to days: 12 ms, 3.4 s, 2 min 5 s. */
export function formatDuration(ms: number): string {
  if (ms < 0) return formatDuration(0);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const s = Math.round(ms / 1000);
  if (s < 3600) return two(s, 60, 'min', 1, 's');
  if (s < 86_400) return two(s, 3600, 'h', 60, 'min');
  return two(s, 86_400, 'd', 3600, 'h');
}

export function formatBytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MiB`;
  return `${(n / 1024 ** 3).toFixed(2)} GiB`;
}

export function formatRelative(at: Date, now: Date): string {
  const s = (at.getTime() - now.getTime()) / 1000;
  const a = Math.abs(s);
  if (a < 5) return text.common.justNow;
  if (a < 60) return relative.format(Math.round(s), 'second');
  if (a < 3600) return relative.format(Math.round(s / 60), 'minute');
  if (a < 86_400) return relative.format(Math.round(s / 3600), 'hour');
  if (a < 30 * 86_400) return relative.format(Math.round(s / 86_400), 'day');
  return absolute.format(at);
}

/** The present, renewed every few milliseconds, for what counts while somebody looks. */
export function useNow(every: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** A moment as people say it, with the exact time on hover. */
export function When({ at }: { at: string | null | undefined }): ReactElement {
  const now = useNow(10_000);
  if (!at) return <span className="muted">—</span>;
  const d = new Date(at);
  return (
    <time dateTime={at} title={absolute.format(d)} className="nowrap">
      {formatRelative(d, now)}
    </time>
  );
}

/** The time between two moments; it counts on while the second is not there. */
export function Took({
  from,
  to,
}: {
  from: string | null | undefined;
  to: string | null | undefined;
}): ReactElement | null {
  const running = Boolean(from) && !to;
  const now = useNow(running ? 200 : 60_000);
  if (!from) return null;
  const end = to ? new Date(to) : now;
  return <span className="nowrap">{formatDuration(end.getTime() - new Date(from).getTime())}</span>;
}
