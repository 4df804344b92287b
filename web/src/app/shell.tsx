import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useParams } from '@tanstack/react-router';
import { useEffect, useState, type ReactElement } from 'react';

import { call, segment, type Envelope } from '../api/client';
import { useServerEvents } from '../api/events';
import type { EnvironmentDetails, Notification } from '../api/types';
import { text } from '../i18n/en';
import { Icon } from '../ui/icons';
import { Empty, Notice } from '../ui/layout';

const themeKey = 'intendant.theme';

function Mark(): ReactElement {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#2f5fde" />
      <path
        d="M9 23V9m0 7c8 0 5-7 14-7M9 23c8 0 5-5 14-5"
        fill="none"
        stroke="#fff"
        strokeWidth="2.6"
        strokeLinecap="round"
      />
      <g fill="#fff">
        <circle cx="9" cy="9" r="2.6" />
        <circle cx="9" cy="23" r="2.6" />
        <circle cx="23" cy="9" r="2.6" />
        <circle cx="23" cy="18" r="2.6" />
      </g>
    </svg>
  );
}

function ThemeButton(): ReactElement {
  const [theme, setTheme] = useState(() => localStorage.getItem(themeKey) ?? '');
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme;
  }, [theme]);
  const dark = theme === 'dark' || (theme === '' && globalThis.matchMedia('(prefers-color-scheme: dark)').matches);
  return (
    <button
      type="button"
      className="quiet icon"
      aria-label={text.app.theme}
      title={text.app.theme}
      onClick={() => {
        const next = dark ? 'light' : 'dark';
        localStorage.setItem(themeKey, next);
        setTheme(next);
      }}
    >
      <Icon name={dark ? 'sun' : 'moon'} />
    </button>
  );
}

const badgeLimit = 99;

/** How many notifications nobody has read yet. */
function Unread({ environment }: { environment: string }): ReactElement | null {
  const unread = useQuery({
    queryKey: ['notifications', environment, 'unread'],
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<Notification[]>>('GET', '/api/v2/notification', {
          environment,
          signal,
          query: { limit: badgeLimit, 'filter.read': false, 'filter.cleared': false },
        })
      ).data,
    refetchInterval: 60_000,
  });
  const n = unread.data?.length ?? 0;
  if (n === 0) return null;
  return (
    <span className="badge">
      {n}
      <span className="visually-hidden"> {text.nav.unread}</span>
    </span>
  );
}

function EnvironmentLinks({ environment }: { environment: string }): ReactElement {
  const details = useQuery({
    queryKey: ['environments', environment],
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<EnvironmentDetails>>('GET', `/api/v3/environment/${segment(environment)}`, {
          signal,
          query: { deploy_summary: true },
        })
      ).data,
  });
  const params = { environment };
  return (
    <>
      <div className="side-title truncate">{details.data?.name ?? '…'}</div>
      <Link className="side-link" to="/environments/$environment" params={params} activeOptions={{ exact: true }}>
        <Icon name="commit" /> {text.nav.journey}
      </Link>
      <Link className="side-link" to="/environments/$environment/resources" params={params}>
        <Icon name="box" /> {text.nav.resources}
      </Link>
      <Link className="side-link" to="/environments/$environment/versions" params={params}>
        <Icon name="layers" /> {text.nav.versions}
      </Link>
      <Link className="side-link" to="/environments/$environment/compiles" params={params}>
        <Icon name="hammer" /> {text.nav.compiles}
      </Link>
      <Link className="side-link" to="/environments/$environment/agents" params={params}>
        <Icon name="server" /> {text.nav.agents}
      </Link>
      <Link className="side-link" to="/environments/$environment/facts" params={params}>
        <Icon name="tag" /> {text.nav.facts}
      </Link>
      <Link className="side-link" to="/environments/$environment/notifications" params={params}>
        <Icon name="bell" /> {text.nav.notifications} <Unread environment={environment} />
      </Link>
      <Link className="side-link" to="/environments/$environment/settings" params={params}>
        <Icon name="gear" /> {text.nav.settings}
      </Link>
    </>
  );
}

/** The frame around every page: navigation, the state of the live connection, the theme. */
export function Shell(): ReactElement {
  const live = useServerEvents();
  const [open, setOpen] = useState(false);
  const { pathname } = useLocation();
  const { environment } = useParams({ strict: false });
  useEffect(() => setOpen(false), [pathname]);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        {text.app.skip}
      </a>
      <header className="topbar">
        <button
          type="button"
          className="quiet icon"
          aria-label={text.app.menu}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          <Icon name="menu" />
        </button>
        <Link to="/environments" className="brand">
          <Mark /> {text.app.name}
        </Link>
      </header>
      <nav className={open ? 'side open' : 'side'} aria-label={text.nav.main}>
        <Link to="/environments" className="brand">
          <Mark /> {text.app.name}
        </Link>
        <Link className="side-link" to="/environments" activeOptions={{ exact: true }}>
          <Icon name="home" /> {text.nav.environments}
        </Link>
        <Link className="side-link" to="/repositories">
          <Icon name="git" /> {text.nav.repositories}
        </Link>
        <Link className="side-link" to="/server">
          <Icon name="pulse" /> {text.nav.status}
        </Link>
        {environment !== undefined && <EnvironmentLinks environment={environment} />}
        <div className="side-foot">
          <span className={`chip tone-${live ? 'ok' : 'warn'}`} role="status">
            <Icon name={live ? 'check' : 'busy'} spin={!live} />
            {live ? text.app.live : text.app.offline}
          </span>
          <span className="grow" />
          <ThemeButton />
        </div>
      </nav>
      {open && (
        <button type="button" className="backdrop" aria-label={text.app.closeMenu} onClick={() => setOpen(false)} />
      )}
      <main className="main" id="main">
        <Outlet />
      </main>
    </div>
  );
}

/** What is shown when a page has a fault of its own: the rest of the console goes on. */
export function Broken({ error }: { error: unknown }): ReactElement {
  return (
    <main className="main">
      <Notice tone="bad">
        <b>{text.app.broken}</b>
        <p className="value">{error instanceof Error ? error.message : String(error)}</p>
        <a href="/console/">{text.app.toStart}</a>
      </Notice>
    </main>
  );
}

export function NotFound(): ReactElement {
  return (
    <Empty icon="question" title={text.app.notFound}>
      <Link to="/environments">{text.app.toStart}</Link>
    </Empty>
  );
}
