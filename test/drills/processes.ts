/** Store members as processes that can be killed, suspended, run out of disk space and disconnected. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import { createEtcdStore } from '../../src/store/client/etcd-store.ts';
import { createPeerDialer } from '../../src/store/client/peer-dialer.ts';
import type { Store } from '../../src/store/port.ts';
import { Reader, Writer } from '../../src/wire/protobuf/protobuf.ts';
import { freePorts } from '../support/ports.ts';

export const executable = fileURLToPath(new URL(`../../dist/hyperedge-linux-${process.arch}`, import.meta.url));

export const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface MemberOptions {
  /** Listen address. Default: 127.0.0.1. */
  readonly host?: string;
  /** Command prefix that starts the executable. Default: none. */
  readonly through?: readonly string[];
  readonly flags?: readonly string[];
  /** Data directory. Default: below the cluster's directory. */
  readonly data?: string;
}

export interface MemberStatus {
  readonly id: bigint;
  readonly leader: bigint;
  readonly term: number;
  readonly revision: number;
  readonly applied: number;
  readonly learner: boolean;
}

export class Member {
  readonly name: string;
  readonly data: string;
  readonly endpoint: string;
  readonly peerUrl: string;
  readonly logFile: string;
  readonly #options: MemberOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<number | null> = Promise.resolve(null);

  constructor(name: string, directory: string, ports: readonly [number, number], options: MemberOptions) {
    const host = options.host ?? '127.0.0.1';
    this.name = name;
    this.data = options.data ?? join(directory, name);
    this.logFile = join(directory, `${name}.log`);
    this.endpoint = `http://${host}:${ports[0]}`;
    this.peerUrl = `http://${host}:${ports[1]}`;
    this.#options = options;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.name} does not run`);
    return pid;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** Exit code of the current or last process; null if a signal ended it. */
  get exited(): Promise<number | null> {
    return this.#exited;
  }

  /** Starts the process. `ready` resolves when it serves. */
  start(all: readonly Member[], state: 'new' | 'existing' = 'new'): void {
    const { through = [], flags = [] } = this.#options;
    const [file, ...args] = [
      ...through,
      executable,
      'etcd',
      `--name=${this.name}`,
      `--data-dir=${this.data}`,
      `--listen-client-urls=${this.endpoint}`,
      `--advertise-client-urls=${this.endpoint}`,
      `--listen-peer-urls=${this.peerUrl}`,
      `--initial-advertise-peer-urls=${this.peerUrl}`,
      `--initial-cluster=${all.map((each) => `${each.name}=${each.peerUrl}`).join()}`,
      `--initial-cluster-state=${state}`,
      ...flags,
    ] as [string, ...string[]];
    const log = createWriteStream(this.logFile, { flags: 'a' });
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    this.#child = child;
    this.#exited = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        if (this.#child === child) this.#child = undefined;
        log.end();
        resolve(code);
      });
    });
    this.#exited.catch(() => {});
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** Sends a signal that ends the process and waits for it. Resolves with the exit code. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    if (this.#child === undefined) return null;
    this.signal(signal);
    return this.#exited;
  }

  /** Calls `etcdserverpb.Maintenance/Status`. Rejects if there is no response. */
  async status(timeoutMs = 1000): Promise<MemberStatus> {
    const answer = await this.call('/etcdserverpb.Maintenance/Status', Buffer.alloc(0), timeoutMs);
    const found = { id: 0n, leader: 0n, term: 0, revision: 0, applied: 0, learner: false };
    const reader = new Reader(answer);
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 1) Object.assign(found, headerOf(reader.bytes()));
      else if (field === 4) found.leader = BigInt.asUintN(64, reader.big());
      else if (field === 6) found.term = reader.int();
      else if (field === 7) found.applied = reader.int();
      else if (field === 10) found.learner = reader.bool();
      else reader.skip();
    }
    return found;
  }

  /** Calls `etcdserverpb.Maintenance/HashKV` at `revision`. The result includes the compaction revision. */
  async hash(revision: number): Promise<string> {
    const request = new Writer(16).int(1, revision).finish();
    const reader = new Reader(await this.call('/etcdserverpb.Maintenance/HashKV', request, 30_000));
    const found = { hash: 0, compacted: 0 };
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2) found.hash = reader.int();
      else if (field === 3) found.compacted = reader.int();
      else reader.skip();
    }
    return `${found.hash}/${found.compacted}`;
  }

  /** One call over a new connection. */
  async call(path: string, message: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const channel = createPeerDialer({ log: silentLog, clock })([this.endpoint], () => {});
    try {
      return await channel.unary(path, message, timeoutMs);
    } finally {
      channel.close();
    }
  }

  connect(requestTimeoutMs = 10_000): Store {
    return connect([this], requestTimeoutMs);
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }
}

function headerOf(bytes: Uint8Array): { readonly id: bigint; readonly revision: number } {
  const found = { id: 0n, revision: 0 };
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) found.id = BigInt.asUintN(64, reader.big());
    else if (field === 3) found.revision = reader.int();
    else reader.skip();
  }
  return found;
}

/** A client that uses any member that responds. */
export function connect(members: readonly Member[], requestTimeoutMs = 10_000): Store {
  return createEtcdStore({
    endpoints: members.map((member) => member.endpoint),
    log: silentLog,
    clock,
    requestTimeoutMs,
    lastRetryMs: 50,
  });
}

/** Creates a directory with members, without starting them. `options` may differ per member. */
export class Members implements AsyncDisposable {
  readonly directory: string;
  readonly all: Member[] = [];

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(count: number, options: (index: number) => MemberOptions = () => ({})): Promise<Members> {
    const members = new Members(await mkdtemp(join(tmpdir(), 'hyperedge-drill-')));
    for (let i = 0; i < count; i += 1) await members.add(options(i));
    return members;
  }

  async add(options: MemberOptions = {}): Promise<Member> {
    const [client = 0, peer = 0] = await freePorts(2);
    const member = new Member(`m${this.all.length}`, this.directory, [client, peer], options);
    await mkdir(member.data, { recursive: true });
    this.all.push(member);
    return member;
  }

  start(): void {
    for (const member of this.all) if (!member.running) member.start(this.all);
  }

  /** Resolves with the leader when all running members agree. */
  async leader(timeoutMs = 20_000): Promise<Member> {
    return eventually('a leader', timeoutMs, async () => {
      const running = this.all.filter((member) => member.running);
      const states = await Promise.all(running.map((member) => member.status()));
      const [first] = states;
      if (first === undefined || first.leader === 0n) return undefined;
      if (states.some((state) => state.leader !== first.leader || state.term !== first.term)) return undefined;
      return running.find((_, i) => states[i]?.id === first.leader);
    });
  }

  /** Resolves with the revision when all running members have the same data. */
  async equal(timeoutMs = 30_000): Promise<number> {
    return eventually('equal members', timeoutMs, async () => {
      const running = this.all.filter((member) => member.running);
      const states = await Promise.all(running.map((member) => member.status()));
      const revision = Math.max(...states.map((state) => state.revision));
      if (states.some((state) => state.revision !== revision)) return undefined;
      const hashes = await Promise.all(running.map((member) => member.hash(revision)));
      if (new Set(hashes).size !== 1) throw new Error(`members differ at revision ${revision}: ${hashes.join(' ')}`);
      return revision;
    });
  }

  /** Stops all members and removes everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.all.map(async (member) => {
        if (!member.running) return;
        // A suspended member would not end otherwise.
        member.signal('SIGCONT');
        await member.end('SIGKILL');
      }),
    );
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Polls until the result is not undefined. Rejects with the last failure. */
export async function eventually<T>(what: string, timeoutMs: number, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let failure: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found !== undefined) return found;
      failure = undefined;
    } catch (error) {
      failure = error;
    }
    if (performance.now() > deadline) throw new Error(`no ${what} in ${timeoutMs} ms`, { cause: failure });
    await sleep(25);
  }
}
