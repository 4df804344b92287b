import { useEffect, useId, useRef, type KeyboardEvent, type ReactElement, type ReactNode } from 'react';

import { text } from '../i18n/en';
import { Icon, type IconName } from './icons';
import type { Tone } from './status';

export function PageHead(props: {
  title: ReactNode;
  crumbs?: ReactNode;
  sub?: ReactNode;
  actions?: ReactNode;
}): ReactElement {
  return (
    <header className="page-head">
      <div className="titles">
        {props.crumbs !== undefined && <div className="crumbs">{props.crumbs}</div>}
        <h1>{props.title}</h1>
        {props.sub !== undefined && <div className="muted">{props.sub}</div>}
      </div>
      {props.actions !== undefined && <div className="row wrap">{props.actions}</div>}
    </header>
  );
}

export function Card(props: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  bare?: boolean;
}): ReactElement {
  return (
    <section className="card">
      {props.title !== undefined && (
        <div className="card-head">
          <h2 className="grow">{props.title}</h2>
          {props.actions}
        </div>
      )}
      {props.bare === true ? props.children : <div className="card-body">{props.children}</div>}
    </section>
  );
}

/** What may be wider than the page: it scrolls by itself, with the keyboard too. */
export function Scroll(props: { children: ReactNode; className?: string }): ReactElement {
  return (
    <div className={props.className ?? 'table-wrap'} tabIndex={0}>
      {props.children}
    </div>
  );
}

export function Empty(props: { icon: IconName; title: string; children?: ReactNode }): ReactElement {
  return (
    <div className="empty">
      <Icon name={props.icon} />
      <h2>{props.title}</h2>
      {props.children !== undefined && <div className="muted">{props.children}</div>}
    </div>
  );
}

const noticeIcons: Record<Tone, IconName> = { ok: 'check', bad: 'cross', warn: 'warn', busy: 'busy', idle: 'question' };

export function Notice({ tone, children }: { tone: Tone; children: ReactNode }): ReactElement {
  return (
    <div className={`notice tone-${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon name={noticeIcons[tone]} />
      <div className="grow">{children}</div>
    </div>
  );
}

export function Skeleton({ lines = 4 }: { lines?: number }): ReactElement {
  return (
    <div className="card-body stack" role="status" aria-label={text.common.loading}>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} className="skeleton" style={{ width: `${88 - ((i * 17) % 45)}%` }} />
      ))}
    </div>
  );
}

/** A modal dialog of the platform: focus is kept inside, Escape closes it. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
}): ReactElement {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  const { onClose } = props;
  useEffect(() => {
    const d = ref.current;
    if (d && !d.open) d.showModal();
    return () => d?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
    >
      <div className="card-head">
        <h2 id={id} className="grow">
          {props.title}
        </h2>
        <button type="button" className="quiet icon" aria-label={text.common.close} onClick={onClose}>
          <Icon name="cross" />
        </button>
      </div>
      <div className="card-body stack">{props.children}</div>
      {props.foot !== undefined && <div className="foot">{props.foot}</div>}
    </dialog>
  );
}

/** Tabs of a card: the arrow keys move between them, and the panel is named by the one that is open. */
export function Tabs<T extends string>(props: {
  label: string;
  tabs: readonly { id: T; text: string }[];
  value: T;
  onChange: (id: T) => void;
}): ReactElement {
  const bar = useRef<HTMLDivElement>(null);
  const move = (e: KeyboardEvent<HTMLDivElement>): void => {
    const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    e.preventDefault();
    const at = props.tabs.findIndex((t) => t.id === props.value);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (next === undefined) return;
    props.onChange(next.id);
    bar.current?.querySelector<HTMLButtonElement>(`#tab-${next.id}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={props.label} ref={bar} onKeyDown={move}>
      {props.tabs.map((t) => (
        <button
          key={t.id}
          id={`tab-${t.id}`}
          type="button"
          role="tab"
          aria-selected={t.id === props.value}
          aria-controls="tab-panel"
          tabIndex={t.id === props.value ? 0 : -1}
          onClick={() => props.onChange(t.id)}
        >
          {t.text}
        </button>
      ))}
    </div>
  );
}

/** What the open one of a card's tabs shows. */
export function TabPanel({ id, children }: { id: string; children: ReactNode }): ReactElement {
  return (
    <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${id}`}>
      {children}
    </div>
  );
}
