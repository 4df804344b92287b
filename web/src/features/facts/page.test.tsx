import { screen } from '@testing-library/react';
import { expect } from 'vitest';

import { describePage, inEnvironment } from '../../test/page';
import { answer, environmentId, moment } from '../../test/server';

const parameter = {
  id: 'p1',
  name: 'license',
  value: 'gold',
  environment: environmentId,
  source: 'user',
  updated: moment,
  metadata: {},
};
const fact = {
  ...parameter,
  id: 'f1',
  name: 'serial',
  value: '42',
  resource_id: 'net::Switch[a,name=b]',
  expires: true,
};

describePage('facts and parameters', {
  path: inEnvironment('/facts'),
  endpoint: '/api/v2/facts',
  full: [answer('/api/v2/facts', [fact]), answer('/api/v2/parameters', [parameter])],
  empty: {
    handlers: [answer('/api/v2/facts', []), answer('/api/v2/parameters', [])],
    title: 'No facts are known',
  },
  shows: async () => {
    expect(await screen.findByRole('row', { name: /license gold user/ })).toBeTruthy();
    expect(await screen.findByRole('link', { name: 'net::Switch[a,name=b]' })).toBeTruthy();
  },
});
