/**
 * The measured appliance with the packaged executable, and the measuring clients in its network: `wrk` and the clients
 * of `client.ts`.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Appliance } from '../../e2e/harness.ts';

const CLIENT = fileURLToPath(new URL('./client.ts', import.meta.url));
const BARE_PORT = 19_443;
export const NAMESPACE = 'bench';
export const LIST = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
/** Content of an object, which has about 1 KB together with the metadata that the server sets. */
export const FILLER = 'x'.repeat(700);

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

export interface Wrk {
  readonly method?: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Lua code that sets `path` for each request from the request counter `n`. */
  readonly path?: string;
  readonly clients: number;
  readonly seconds: number;
}

export class Target implements AsyncDisposable {
  readonly appliance: Appliance;
  readonly #scratch: string;
  readonly #children = new Set<ChildProcess>();
  server = '';
  token = '';
  missed = 0;

  private constructor(appliance: Appliance, scratch: string) {
    this.appliance = appliance;
    this.#scratch = scratch;
  }

  static async start(): Promise<Target> {
    const target = new Target(await Appliance.create(), await mkdtemp(join(tmpdir(), 'he-bench-')));
    try {
      await target.#prepare();
    } catch (error) {
      await target[Symbol.asyncDispose]();
      throw error;
    }
    return target;
  }

  async #prepare(): Promise<void> {
    const { appliance } = this;
    await appliance.start();
    await appliance.must(['create', 'namespace', NAMESPACE]);
    await appliance.must(['create', 'serviceaccount', 'bench', '-n', NAMESPACE]);
    const account = `--serviceaccount=${NAMESPACE}:bench`;
    await appliance.must(['create', 'clusterrolebinding', 'bench', '--clusterrole=cluster-admin', account]);
    this.token = (await appliance.must(['create', 'token', 'bench', '-n', NAMESPACE, '--duration=3h'])).trim();
    this.server = await appliance.must(['config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}']);
  }

  file(name: string): string {
    return join(this.#scratch, name);
  }

  /** Path of a file in the master's directory. */
  master(name: string): string {
    return join(this.appliance.root, 'etc/origin/master', name);
  }

  async wrk(url: string, options: Wrk): Promise<{ readonly perSecond: number; readonly errors: number }> {
    const script = this.file(`wrk-${Math.random().toString(36).slice(2)}.lua`);
    const lines = [
      `wrk.method = "${options.method ?? 'GET'}"`,
      `wrk.headers["Authorization"] = "Bearer ${this.token}"`,
      ...(options.contentType === undefined ? [] : [`wrk.headers["Content-Type"] = "${options.contentType}"`]),
      ...(options.body === undefined ? [] : [`wrk.body = [[${options.body}]]`]),
      ...(options.path === undefined
        ? []
        : [`local n = 0\nrequest = function()\n  n = n + 1\n  return wrk.format(nil, ${options.path})\nend`]),
    ];
    await writeFile(script, lines.join('\n'));
    const ran = await this.appliance.inside(
      'wrk',
      ['-t1', `-c${options.clients}`, `-d${options.seconds}s`, '-s', script, url],
      { timeoutMs: (options.seconds + 30) * 1000 },
    );
    const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(ran.stdout)?.[1] ?? Number.NaN);
    if (Number.isNaN(perSecond)) throw new Error(`wrk: ${ran.stdout}${ran.stderr}`);
    return { perSecond, errors: Number(/Non-2xx or 3xx responses: (\d+)/.exec(ran.stdout)?.[1] ?? 0) };
  }

  /** Like `wrk`, but fails unless every request succeeds. */
  async rate(path: string, options: Wrk): Promise<number> {
    const load = await this.wrk(`${this.server}${path}`, options);
    if (load.errors > 0) throw new Error(`${options.method ?? 'GET'} ${path}: ${load.errors} requests were refused`);
    return load.perSecond;
  }

  /** Starts a bare `node:https` server that returns `bodies` by path from memory, with the API server's certificate. */
  async startBare(bodies: Readonly<Record<string, string>>): Promise<{ readonly url: string; stop(): void }> {
    const bodiesFile = this.file('bodies.json');
    await writeFile(bodiesFile, JSON.stringify(bodies));
    const program = this.file('bare.mjs');
    await writeFile(
      program,
      `import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
const bodies = new Map(Object.entries(JSON.parse(readFileSync(${JSON.stringify(bodiesFile)}, 'utf8'))).map(([path, text]) => [path, Buffer.from(text)]));
const key = readFileSync(${JSON.stringify(this.master('master.server.key'))});
const cert = readFileSync(${JSON.stringify(this.master('master.server.crt'))});
createServer({ key, cert }, (request, response) => {
  const body = bodies.get(request.url);
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json', 'content-length': body?.length ?? 0 });
  response.end(body);
}).listen(${BARE_PORT}, '127.0.0.1', () => console.log('ready'));
`,
    );
    const child = this.#spawn([program]);
    if (child.stdout === null) throw new Error('no output of the bare server');
    await once(child.stdout, 'data');
    return { url: `https://127.0.0.1:${BARE_PORT}`, stop: () => child.kill('SIGKILL') };
  }

  #spawn(args: readonly string[]): ChildProcess {
    const child = this.appliance.spawnInside(process.execPath, args);
    this.#children.add(child);
    child.once('close', () => this.#children.delete(child));
    child.stderr?.pipe(process.stderr);
    return child;
  }

  /** Starts a client of `client.ts`, which prints JSON lines. */
  client(what: string, options: Readonly<Record<string, unknown>>): Client {
    const { server, token } = this;
    const files = {
      ca: this.master('ca.crt'),
      etcdCa: this.master('master.etcd-ca.crt'),
      etcdCert: this.master('master.etcd-client.crt'),
      etcdKey: this.master('master.etcd-client.key'),
    };
    return new Client(this.#spawn([CLIENT, what, JSON.stringify({ server, token, ...files, ...options })]));
  }

  /** Creates the objects `from` to `to` in the benchmark's namespace, or in `namespace`. */
  async fill(options: { from: number; to: number; namespace?: string; namespaces?: number }): Promise<void> {
    await this.client('fill', { namespace: NAMESPACE, filler: FILLER, ...options }).result();
  }

  /** PID of the API server. */
  async apiPid(): Promise<number> {
    for (let tries = 0; tries < 400; tries++) {
      const found = (await this.appliance.processes()).find(
        ({ command }) => / api /.test(` ${command} `) && !/conmon|runc/.test(command),
      );
      if (found !== undefined) return found.pid;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('the API server has no process');
  }

  report(what: string, value: number, goal: number, better: 'more' | 'less', detail = ''): void {
    const met = better === 'more' ? value >= goal : value <= goal;
    if (!met) this.missed += 1;
    const sign = better === 'more' ? '≥' : '≤';
    console.log(
      `${met ? 'met   ' : 'MISSED'} ${what}: ${shown(value)} (goal ${sign} ${shown(goal)})  ${detail}`.trimEnd(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await this.appliance.stop();
    await rm(this.#scratch, { recursive: true, force: true });
  }
}

export const shown = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);

export class Client {
  readonly #child: ChildProcess;
  readonly #lines: unknown[] = [];
  #rest = '';
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      this.#lines.push(...lines.map((line) => JSON.parse(line)));
      this.#wake?.();
    });
    child.once('close', () => {
      this.#ended = true;
      this.#wake?.();
    });
  }

  /** Resolves with the next line of output, parsed as JSON. */
  async next<T>(): Promise<T> {
    while (this.#lines.length === 0) {
      if (this.#ended) throw new Error('the client ended without a result');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#lines.shift() as T;
  }

  /** Sends a command to the client. */
  say(word: string): void {
    this.#child.stdin?.write(`${word}\n`);
  }

  async result<T>(): Promise<T> {
    const found = await this.next<T>();
    this.say('end');
    return found;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** Proportional memory (PSS) of a process in bytes. `rss` is cheaper, for frequent measurements. */
export async function pss(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1]) * 1024;
}

/** Like `pss`, after garbage was collected and the value no longer changes. */
export async function settled(pid: number): Promise<number> {
  let last = await pss(pid);
  for (let tries = 0; tries < 15; tries++) {
    await wait(3000);
    const now = await pss(pid);
    if (Math.abs(now - last) < last * 0.01 && tries >= 4) return now;
    last = now;
  }
  return last;
}

export async function rss(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]) * 4096;
}

/** CPU time of a process in ms. */
export async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * GETs per second over HTTP/1.1 of a bare server on the reference machine, on which Kubernetes' own API server was
 * measured.
 */
export const MARK_BARE = 34_500;

/** GETs per second of a bare server on this machine, for an object of 1 KB. */
export async function bareGets(target: Target): Promise<number> {
  const bare = await target.startBare({ '/object': JSON.stringify({ data: FILLER, metadata: 'y'.repeat(300) }) });
  const { perSecond } = await target.wrk(`${bare.url}/object`, { clients: 32, seconds: 3 });
  bare.stop();
  return perSecond;
}
