/** The one way to the server. */

export interface Envelope<T> {
  data: T;
  links?: { self?: string; next?: string; prev?: string; first?: string };
  metadata?: {
    total?: number;
    before?: number;
    after?: number;
    page_size?: number;
    deploy_summary?: { total: number; by_state: Record<string, number> };
    warnings?: string[];
  };
}

/** What the server says when it refuses: its message is meant for people. */
export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
  }
}

export interface Call {
  environment?: string | undefined;
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

function address(path: string, query: Call['query']): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === '') continue;
    for (const v of Array.isArray(value) ? (value as readonly string[]) : [String(value)]) params.append(name, v);
  }
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Calls the server and returns the body of its answer. Throws ApiError when it refuses or can not be reached. */
export async function call<T>(method: string, path: string, c: Call = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (c.environment !== undefined) headers['X-Inmanta-tid'] = c.environment;
  if (c.body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = { method, headers };
  if (c.body !== undefined) init.body = JSON.stringify(c.body);
  if (c.signal !== undefined) init.signal = c.signal;
  let answer: Response;
  try {
    answer = await fetch(address(path, c.query), init);
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new ApiError(0, 'The server can not be reached.');
  }
  const text = await answer.text();
  if (!answer.ok) {
    let message = `The server answered ${answer.status}.`;
    try {
      const body: unknown = JSON.parse(text);
      if (typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string')
        message = body.message;
    } catch {
      // not one of the API's own answers: the status says what there is to say
    }
    throw new ApiError(answer.status, message);
  }
  // an answer without content has no type to check; the caller asked for void
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** One segment of a path, for ids with slashes and brackets in them. */
export function segment(id: string | number): string {
  return encodeURIComponent(String(id));
}
