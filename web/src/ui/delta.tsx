import type { ReactElement } from 'react';

import { text } from '../i18n/en';
import { formatNumber } from './time';

/** How many resources a version added, changed and removed. */
export function Delta({ added, changed, removed }: { added: number; changed: number; removed: number }): ReactElement {
  const parts = [
    { sign: '+', n: added, word: text.versions.added, tone: 'ok' },
    { sign: '~', n: changed, word: text.versions.changed, tone: 'busy' },
    { sign: '−', n: removed, word: text.versions.removed, tone: 'bad' },
  ];
  return (
    <span className="delta">
      {parts.map((p) => (
        <span key={p.sign} className={`tone-${p.n === 0 ? 'idle' : p.tone}`} title={`${p.n} ${p.word}`}>
          {p.sign}
          {formatNumber(p.n)}
          <span className="visually-hidden"> {p.word}</span>
        </span>
      ))}
    </span>
  );
}
