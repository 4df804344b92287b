import { screen } from '@testing-library/react';
import { expect } from 'vitest';

import { describePage } from '../../test/page';
import { answer } from '../../test/server';

const endpoint = '/api/v1/serverstatus';

describePage('server', {
  path: '/server',
  endpoint,
  full: [
    answer(endpoint, {
      product: 'Intendant',
      edition: '',
      version: '1.2.3',
      license: 'Apache-2.0',
      extensions: [],
      slices: [
        {
          name: 'transport',
          status: { running: true, uptime: 3700, event_streams: 1200 },
          reported_status: 'OK',
          message: null,
        },
      ],
      features: [],
      status: 'OK',
      python_version: '',
      postgresql_version: '15.18',
    }),
  ],
  shows: async () => {
    expect(await screen.findByText('Intendant 1.2.3')).toBeTruthy();
    expect(screen.getByText('PostgreSQL 15.18')).toBeTruthy();
    expect(screen.getByText('1 h 1 min')).toBeTruthy();
    expect(screen.getByText('1,200')).toBeTruthy();
  },
});
