import { cleanup } from '@testing-library/react';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

import { server } from './server';

/** A stream of events that never says anything; tests that need news call onmessage themselves. */
class SilentEventSource {
  static last: SilentEventSource | undefined;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  onmessage: ((m: MessageEvent<string>) => void) | null = null;
  closed = false;
  constructor(readonly url: string) {
    SilentEventSource.last = this;
  }
  close(): void {
    this.closed = true;
  }
}

// What jsdom lacks of a browser.
Object.assign(globalThis, {
  EventSource: SilentEventSource,
  matchMedia: () => ({ matches: false }),
  scrollTo: () => undefined,
});
HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
  this.open = true;
};
HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
  this.open = false;
};

beforeAll(() => server.listen({ onUnhandledRequest: 'error' }));
beforeEach(() => localStorage.clear());
afterEach(() => {
  cleanup();
  server.resetHandlers();
});
afterAll(() => server.close());

export type FakeEventSource = SilentEventSource;
/** The stream that was opened last. */
export function lastEventSource(): SilentEventSource | undefined {
  return SilentEventSource.last;
}
