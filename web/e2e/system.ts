import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const s = createServer();
    s.once('error', fail);
    s.listen(0, '127.0.0.1', () => {
      const a = s.address();
      s.close(() => (typeof a === 'object' && a !== null ? done(a.port) : fail(new Error('no port'))));
    });
  });
}

/** The real binary with its own PostgreSQL, a git repository to push to, and a directory that is deployed to. */
export class System {
  private constructor(
    readonly dir: string,
    readonly url: string,
    private readonly process: ChildProcess,
    private readonly output: string[],
  ) {}

  static async start(): Promise<System> {
    const binary = process.env['INTENDANT_BINARY'] ?? resolve(import.meta.dirname, '../../bin/intendant');
    if (!existsSync(binary)) throw new Error(`${binary} is missing: run make build`);
    const dir = mkdtempSync(join(tmpdir(), 'intendant-e2e-'));
    chmodSync(dir, 0o755); // PostgreSQL's account must pass through
    const port = await freePort();
    const child = spawn(
      binary,
      ['server', '--state-dir', join(dir, 'state'), '--port', String(port), '--log-format', 'text'],
      {
        cwd: dir,
        env: { PATH: process.env['PATH'], HOME: dir },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const output: string[] = [];
    child.stdout.on('data', (d: Buffer) => output.push(d.toString()));
    child.stderr.on('data', (d: Buffer) => output.push(d.toString()));
    const s = new System(dir, `http://127.0.0.1:${port}`, child, output);
    await s.until('the server is ready', async () => (await fetch(`${s.url}/readyz`).catch(() => null))?.ok === true);
    return s;
  }

  /** Asks until the answer is yes; fails with the server's output when it is not in time. */
  async until(what: string, ask: () => Promise<boolean>, seconds = 60): Promise<void> {
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      if (this.process.exitCode !== null) break;
      if (await ask()) return;
      await new Promise((r) => setTimeout(r, 50));
    }
    throw new Error(`not in time: ${what}\n${this.output.join('').slice(-4000)}`);
  }

  async call<T>(method: string, path: string, body?: unknown, environment?: string): Promise<T> {
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (environment !== undefined) headers['X-Inmanta-tid'] = environment;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const r = await fetch(this.url + path, init);
    const text = await r.text();
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T; // the caller knows the endpoint
  }

  private git(cwd: string, ...args: string[]): string {
    return execFileSync('git', ['-c', 'user.name=E2E', '-c', 'user.email=e2e@localhost', ...args], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: this.dir },
    });
  }

  get target(): string {
    return join(this.dir, 'target');
  }

  get bare(): string {
    return join(this.dir, 'infra.git');
  }

  makeRepository(): void {
    this.git(this.dir, 'init', '--quiet', '--bare', '--initial-branch=main', this.bare);
    this.git(this.dir, 'clone', '--quiet', this.bare, 'work');
  }

  /** Commits files and pushes them. */
  push(message: string, files: Record<string, string>): void {
    const work = join(this.dir, 'work');
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(work, name)), { recursive: true });
      writeFileSync(join(work, name), content);
    }
    this.git(work, 'add', '-A');
    this.git(work, 'commit', '--quiet', '-m', message);
    this.git(work, 'push', '--quiet', 'origin', 'HEAD:main');
  }

  read(name: string): string {
    return readFileSync(join(this.target, name), 'utf8');
  }

  get user(): string {
    return userInfo().username;
  }

  get group(): string {
    return execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim();
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null) {
      const ended = new Promise((r) => this.process.once('exit', r));
      this.process.kill('SIGTERM');
      const hurry = setTimeout(() => this.process.kill('SIGKILL'), 30_000);
      await ended;
      clearTimeout(hurry);
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}
