import { HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';

import { server } from '../test/server';
import { call, segment } from './client';

describe('call', () => {
  test('sends the environment, the query and the body', async () => {
    server.use(
      http.post('/api/x', async ({ request }) =>
        HttpResponse.json({
          environment: request.headers.get('X-Inmanta-tid'),
          query: new URL(request.url).search,
          body: await request.json(),
        }),
      ),
    );
    const query = { a: 1, none: undefined, empty: '', many: ['x', 'y'] };
    expect(await call('POST', '/api/x', { environment: 'e', query, body: { b: true } })).toEqual({
      environment: 'e',
      query: '?a=1&many=x&many=y',
      body: { b: true },
    });
  });
  test('an answer without content is nothing', async () => {
    server.use(http.delete('/api/x', () => new HttpResponse(null)));
    expect(await call('DELETE', '/api/x')).toBeUndefined();
  });
  test('a refusal carries status and message', async () => {
    server.use(http.get('/api/x', () => HttpResponse.json({ message: 'no such thing' }, { status: 404 })));
    await expect(call('GET', '/api/x')).rejects.toMatchObject({ status: 404, message: 'no such thing' });
  });
  test('an answer that is not ours says its status', async () => {
    server.use(http.get('/api/x', () => new HttpResponse('<html>', { status: 502 })));
    await expect(call('GET', '/api/x')).rejects.toThrow('The server answered 502.');
  });
  test('a server that is away is told from one that refuses', async () => {
    server.use(http.get('/api/x', () => HttpResponse.error()));
    await expect(call('GET', '/api/x')).rejects.toMatchObject({ status: 0 });
  });
});

test('ids are one segment of a path', () => {
  expect(segment('std::File[a,path=/b]')).toBe('std%3A%3AFile%5Ba%2Cpath%3D%2Fb%5D');
});
