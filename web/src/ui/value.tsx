import type { ReactElement } from 'react';

import { text } from '../i18n/en';
import { Scroll } from './layout';

/** A JSON value as people read it: text as it is, lists of texts line by line, structures indented. */
export function showValue(v: unknown): string {
  if (v === null || v === undefined) return '—';
  if (v === '') return '""';
  if (typeof v === 'string') return v;
  if (Array.isArray(v) && v.length > 0 && v.every((x) => typeof x === 'string')) return v.join('\n');
  const short = JSON.stringify(v);
  return short.length <= 60 ? short : JSON.stringify(v, null, 2);
}

/** The beginning of an id that is made of hexadecimal digits; other names stay whole. */
export function shortId(id: string): string {
  return /^[0-9a-f]{8}-?[0-9a-f-]{8,}$/.test(id) ? id.slice(0, 8) : id;
}

/** A phrase of the server as the start of a sentence. */
export function sentence(phrase: string): string {
  return phrase.charAt(0).toUpperCase() + phrase.slice(1);
}

/** A value, muted when there is nothing to read in it. */
export function Value({ value }: { value: unknown }): ReactElement {
  const nothing = value === null || value === undefined || value === '';
  return <span className={nothing ? 'value muted' : 'value'}>{showValue(value)}</span>;
}

interface Change {
  name: string;
  from: unknown;
  to: unknown;
}

function Side({ value, className }: { value: unknown; className: string }): ReactElement {
  const there = value !== null && value !== undefined;
  return (
    <td className={there ? className : undefined}>
      <Value value={value} />
    </td>
  );
}

/** Attributes that differ, each before and after. */
export function Changes({ changes, from, to }: { changes: readonly Change[]; from: string; to: string }): ReactElement {
  return (
    <Scroll className="table-wrap framed">
      <table className="changes">
        <thead>
          <tr>
            <th>{text.resources.attribute}</th>
            <th>{from}</th>
            <th>{to}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((c) => (
            <tr key={c.name}>
              <td className="mono nowrap">{c.name}</td>
              <Side value={c.from} className="change-from" />
              <Side value={c.to} className="change-to" />
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
