import type { ReactElement } from 'react';

/** The icons of the console: 24 × 24 outlines in the current colour. They are decoration; the text beside them is the meaning. */
const paths = {
  check: 'M5 12.5 10 17.5 19 7',
  cross: 'M6 6 18 18M18 6 6 18',
  warn: 'M12 4 2.8 20h18.4zM12 10v4.5M12 17.2v.3',
  busy: 'M12 3a9 9 0 1 0 9 9',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  skip: 'M5 5l8 7-8 7zM17 5v14',
  stop: 'M6 6h12v12H6z',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4.5 19 12 7 19.5z',
  question: 'M9 9a3 3 0 1 1 4.2 2.8c-.8.4-1.2 1-1.2 2.2M12 17.5v.3M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  ghost: 'M5 20V10a7 7 0 0 1 14 0v10l-2.5-2-2.3 2-2.2-2-2.2 2-2.3-2zM9.5 10v.2M14.5 10v.2',
  commit: 'M12 15.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 12h5.5M15.5 12H21',
  layers: 'M12 3 3 8l9 5 9-5zM3 12.5l9 5 9-5M3 16.5l9 5 9-5',
  box: 'M12 3 4 7.2v9.6L12 21l8-4.2V7.2zM4 7.2l8 4.3 8-4.3M12 11.5V21',
  hammer: 'M14 6l4 4M3 20l9-9M11 5l4-2 6 6-2 4-3-3-3 1-3-3z',
  server: 'M4 4h16v6H4zM4 14h16v6H4zM8 7v.1M8 17v.1',
  git: 'M6 4v16M6 9c9 0 6 5 12 5M6 4v.1M18 14v.1',
  gear: 'M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM12 2.8v3M12 18.2v3M2.8 12h3M18.2 12h3M5.5 5.5l2.1 2.1M16.4 16.4l2.1 2.1M5.5 18.5l2.1-2.1M16.4 7.6l2.1-2.1',
  home: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M4.9 19.1l1.8-1.8M17.3 6.7l1.8-1.8',
  moon: 'M20 14.5A8.5 8.5 0 1 1 9.5 4 7 7 0 0 0 20 14.5z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  refresh: 'M20 11a8 8 0 0 0-14.5-4L4 8.5M4 4v4.5h4.5M4 13a8 8 0 0 0 14.5 4l1.5-1.5M20 20v-4.5h-4.5',
  plus: 'M12 5v14M5 12h14',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  bell: 'M6 17V11a6 6 0 0 1 12 0v6l1.5 2h-15zM10 21h4',
  dry: 'M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11z',
  circle: 'M12 18a6 6 0 1 0 0-12 6 6 0 0 0 0 12z',
  pulse: 'M3 12h4l3 8 4-16 3 8h4',
  tag: 'M4 4h7l9 9-7 7-9-9zM8 8v.1',
  rocket:
    'M5 15c-1 1-1.5 4-1.5 5.5C5 20.500 8 20 9 19M8 14l2 2c6-2 9.500-6.500 10-12-5.500.5-10 4-12 10zM8 14l-3-.5 2.500-4 3 .2M10 16l.5 3 4-2.500-.2-3M15 9v.1',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, spin = false }: { name: IconName; spin?: boolean }): ReactElement {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      {...(spin ? { className: 'spin' } : {})}
    >
      <path d={paths[name]} />
    </svg>
  );
}
