import type { ReactElement } from 'react';

import { text } from '../i18n/en';

/** A JSON value as people read it: text as it is, structures indented. */
export function showValue(v: unknown): string {
  if (v === null || v === undefined) return '—';
  if (typeof v === 'string') return v;
  return JSON.stringify(v, null, 2);
}

export function Value({ value }: { value: unknown }): ReactElement {
  return <span className="value">{showValue(value)}</span>;
}

/** Attributes that differ, each before and after. */
export function Changes({ changes, from, to }: { changes: readonly { name: string; from: unknown; to: unknown }[]; from: string; to: string }): ReactElement {
  return (
    <div className="table-wrap">
      <table>
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
              <td className="change-from">
                <Value value={c.from} />
              </td>
              <td className="change-to">
                <Value value={c.to} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
