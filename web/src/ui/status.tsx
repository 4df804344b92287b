import type { ReactElement } from 'react';

import { text } from '../i18n/en';
import { Icon, type IconName } from './icons';

export type Tone = 'ok' | 'bad' | 'warn' | 'busy' | 'idle';

interface Look {
  tone: Tone;
  icon: IconName;
}

/** How each status of the API looks. Unknown ones look idle and keep their own word. */
const looks: Record<string, Look> = {
  deployed: { tone: 'ok', icon: 'check' },
  deploying: { tone: 'busy', icon: 'busy' },
  available: { tone: 'idle', icon: 'clock' },
  failed: { tone: 'bad', icon: 'cross' },
  skipped: { tone: 'warn', icon: 'skip' },
  unavailable: { tone: 'bad', icon: 'question' },
  undefined: { tone: 'warn', icon: 'question' },
  skipped_for_undefined: { tone: 'warn', icon: 'skip' },
  non_compliant: { tone: 'warn', icon: 'warn' },
  orphaned: { tone: 'idle', icon: 'ghost' },
  queued: { tone: 'idle', icon: 'clock' },
  running: { tone: 'busy', icon: 'busy' },
  succeeded: { tone: 'ok', icon: 'check' },
  cancelled: { tone: 'idle', icon: 'stop' },
  merged: { tone: 'idle', icon: 'layers' },
  active: { tone: 'ok', icon: 'check' },
  candidate: { tone: 'busy', icon: 'clock' },
  retired: { tone: 'idle', icon: 'layers' },
  skipped_candidate: { tone: 'idle', icon: 'skip' },
  up: { tone: 'ok', icon: 'check' },
  down: { tone: 'bad', icon: 'cross' },
  paused: { tone: 'warn', icon: 'pause' },
  halted: { tone: 'warn', icon: 'pause' },
  received: { tone: 'busy', icon: 'clock' },
  synced: { tone: 'ok', icon: 'check' },
  ignored: { tone: 'idle', icon: 'skip' },
  added: { tone: 'ok', icon: 'plus' },
  modified: { tone: 'busy', icon: 'refresh' },
  deleted: { tone: 'bad', icon: 'cross' },
  unmodified: { tone: 'idle', icon: 'check' },
  agent_down: { tone: 'warn', icon: 'server' },
  converged: { tone: 'ok', icon: 'check' },
  compiling: { tone: 'busy', icon: 'busy' },
  pushed: { tone: 'idle', icon: 'clock' },
  OK: { tone: 'ok', icon: 'check' },
  WARNING: { tone: 'warn', icon: 'warn' },
  ERROR: { tone: 'bad', icon: 'cross' },
  superseded: { tone: 'idle', icon: 'layers' },
};

export function look(status: string): Look {
  return looks[status] ?? { tone: 'idle', icon: 'question' };
}

export function statusText(status: string): string {
  return text.status[status] ?? status.replaceAll('_', ' ');
}

/** A status as icon and word, never as colour alone. */
export function StatusChip({ status }: { status: string }): ReactElement {
  const { tone, icon } = look(status);
  return (
    <span className={`chip tone-${tone}`}>
      <Icon name={icon} spin={icon === 'busy'} />
      {statusText(status)}
    </span>
  );
}

/** A status where there is no room for its word: the word is there for those who hover or listen. */
export function StatusIcon({ status }: { status: string }): ReactElement {
  const { tone, icon } = look(status);
  return (
    <span className={`status-icon tone-${tone}`} title={statusText(status)}>
      <Icon name={icon} spin={icon === 'busy'} />
      <span className="visually-hidden">{statusText(status)}</span>
    </span>
  );
}

const barOrder = [
  'deployed',
  'deploying',
  'available',
  'skipped',
  'non_compliant',
  'undefined',
  'skipped_for_undefined',
  'unavailable',
  'failed',
];

/** How many resources are in which status: a bar with its legend. */
export function SummaryBar({
  total,
  byState,
  legend = true,
}: {
  total: number;
  byState: Record<string, number>;
  legend?: boolean;
}): ReactElement {
  const parts = barOrder.map((s) => ({ status: s, n: byState[s] ?? 0 })).filter((p) => p.n > 0);
  const words = parts.map((p) => `${p.n} ${statusText(p.status)}`).join(', ') || text.common.noResources;
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="bar" role="img" aria-label={words}>
        {parts.map((p) => (
          <span
            key={p.status}
            className={`tone-${look(p.status).tone}`}
            style={{ width: `${(100 * p.n) / Math.max(1, total)}%` }}
          />
        ))}
      </div>
      {legend && (
        <div className="legend">
          {parts.map((p) => (
            <span key={p.status}>
              <i className={`dot tone-${look(p.status).tone}`} />
              <b>{p.n}</b> {statusText(p.status)}
            </span>
          ))}
          {parts.length === 0 && <span>{text.common.noResources}</span>}
        </div>
      )}
    </div>
  );
}
