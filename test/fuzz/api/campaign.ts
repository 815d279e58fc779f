/**
 * A fuzz run: a single-member store in this process, the API server in another one, sixteen connections that send
 * inputs, and one that sends a simple request repeatedly. Every response is checked; the server's process is checked at
 * intervals and at the end.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Choices } from '../../apiserver/core/patch/choices.ts';
import { remove, startHere, temporaryDirectory } from '../../store/harness.ts';
import { slack } from '../../support/slack.ts';
import { abuse } from './abuse.ts';
import { fault } from './judge.ts';
import type { Observed, Stall } from './observer.ts';
import { type Input, inputOf } from './requests.ts';
import { checkRoundTrips, stored, tidy } from './state.ts';
import { Channel, type Identity, type Peer, type Reply } from './wire.ts';

const INDEX_HEADER = 'x-input';
const LANES = 16;
/** Inputs per thousand that are misbehaving connections. */
const ABUSIVE = 15;
/** Time limit on an idle machine. */
const ANSWER_MS = 10_000;
const OPEN_ENDED_MS = 300;
const TIDY_EVERY = 2_500;
const ASK_EVERY = 5_000;

export interface Report {
  readonly inputs: number;
  readonly seconds: number;
  readonly codes: ReadonlyMap<number, number>;
  /** Detected faults, with the number of the input if there is one. */
  readonly faults: readonly string[];
  readonly stalls: readonly Stall[];
  readonly longestWallMs: number;
  readonly longestGcMs: number;
  /** Heap size after a garbage collection at the start and at each check. */
  readonly heapMb: readonly number[];
  readonly residentMb: number;
  /** Latencies of the concurrent simple request in milliseconds. */
  readonly plain: { readonly requests: number; readonly p99: number; readonly max: number };
}

export interface CampaignOptions {
  readonly seed: number;
  readonly inputs: number;
  /** Number of the first input, to repeat a single one. */
  readonly from?: number;
  readonly progress?: (line: string) => void;
}

type Reported = Observed & {
  readonly failed: readonly string[];
  readonly heapBytes: number;
  readonly residentBytes: number;
};

class Server {
  readonly #child: ChildProcess;
  stopped = false;
  ended: string | undefined;

  constructor(endpoint: string) {
    this.#child = fork(join(import.meta.dirname, 'server.child.ts'), [endpoint, INDEX_HEADER], {
      execArgv: ['--expose-gc'],
    });
    this.#child.once('exit', (code, signal) => {
      if (!this.stopped) this.ended = `the server's process ended with ${code ?? signal}`;
    });
  }

  async #message<T>(): Promise<T> {
    const reported = new AbortController();
    const { signal } = reported;
    const exit = once(this.#child, 'exit', { signal }).then(() => {
      throw new Error(this.ended ?? 'ended');
    });
    exit.catch(() => {});
    try {
      return (await Promise.race([once(this.#child, 'message', { signal }).then(([message]) => message), exit])) as T;
    } finally {
      reported.abort();
    }
  }

  ready(): Promise<{ port: number; ca: string; admin: Identity; user: Identity }> {
    return this.#message();
  }

  take(): Promise<Reported> {
    this.#child.send('take');
    return this.#message();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.send('stop');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}

export function bytesOf(input: Input): Buffer {
  const lines = [`${input.method} ${input.path} HTTP/1.1`, 'host: x', `${INDEX_HEADER}: ${input.index}`];
  for (const [name, held] of input.headers) lines.push(`${name}: ${held}`);
  if (input.body !== undefined) lines.push(`content-length: ${input.body.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return input.body === undefined ? head : Buffer.concat([head, input.body]);
}

export async function campaign(options: CampaignOptions): Promise<Report> {
  const directory = await temporaryDirectory();
  const store = await startHere(directory, undefined);
  const server = new Server(store.endpoint);
  try {
    return await new Run(options, server).run();
  } finally {
    await server.stop();
    await store.server.stop();
    await remove(directory);
  }
}

class Run {
  readonly #options: CampaignOptions;
  readonly #server: Server;
  readonly #faults: string[] = [];
  readonly #codes = new Map<number, number>();
  readonly #stalls: Stall[] = [];
  readonly #heapMb: number[] = [];
  readonly #waits: number[] = [];
  readonly #abuses: { readonly index: number; readonly what: string; readonly from: number; readonly to: number }[] =
    [];
  #longestWallMs = 0;
  #longestGcMs = 0;
  #residentMb = 0;
  #next: number;
  #done = false;
  #reported = 0;

  constructor(options: CampaignOptions, server: Server) {
    this.#options = options;
    this.#server = server;
    this.#next = options.from ?? 0;
  }

  async run(): Promise<Report> {
    const { port, ca, admin, user } = await this.#server.ready();
    const peer: Peer = { port, ca };
    const keeper = new Channel(peer, admin);
    const ask = async (method: string, path: string, body?: object): Promise<Reply> => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`;
      return keeper.exchange(Buffer.from(head + text), false, false, 30_000);
    };
    await tidy(ask);
    await this.#take();
    const began = performance.now();
    const plain = this.#askPlainly(new Channel(peer, admin));
    const end = this.#next + this.#options.inputs;
    while (this.#next < end && this.#server.ended === undefined && this.#faults.length < 100) {
      const until = Math.min(end, this.#next + TIDY_EVERY);
      await Promise.all(
        Array.from({ length: LANES }, () => this.#lane(peer, { admin, user, nobody: undefined }, until)),
      );
      if (this.#server.ended !== undefined) break;
      await tidy(ask);
      if (this.#next % ASK_EVERY === 0 || this.#next >= end) {
        await this.#take();
        this.#tell();
        const { objects, bytes } = await stored(ask);
        this.#options.progress?.(
          `${this.#next} inputs, ${this.#faults.length} faults, ${this.#heapMb.at(-1)?.toFixed(0)} MB, ${objects} objects of ${(bytes / 1e6).toFixed(1)} MB`,
        );
      }
    }
    this.#done = true;
    await plain;
    const seconds = (performance.now() - began) / 1000;
    if (this.#server.ended === undefined) {
      this.#faults.push(...(await checkRoundTrips(ask)));
      await this.#take();
    } else this.#faults.push(this.#server.ended);
    keeper.close();
    this.#tell();
    return this.#report(seconds);
  }

  #tell(): void {
    for (const line of this.#faults.slice(this.#reported)) this.#options.progress?.(`fault: ${line}`);
    this.#reported = this.#faults.length;
  }

  async #lane(
    peer: Peer,
    identities: Readonly<Record<Input['as'], Identity | undefined>>,
    until: number,
  ): Promise<void> {
    const channels = new Map<string, Channel>();
    while (this.#next < until && this.#server.ended === undefined) {
      const index = this.#next++;
      try {
        if (index % 1000 < ABUSIVE) await this.#misbehave(index, peer, identities.admin as Identity);
        else {
          const input = inputOf(this.#options.seed, index);
          const channel = channels.get(input.as) ?? new Channel(peer, identities[input.as]);
          channels.set(input.as, channel);
          await this.#send(channel, input);
        }
      } catch (error) {
        this.#faults.push(`${index}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    for (const channel of channels.values()) channel.close();
  }

  async #misbehave(index: number, peer: Peer, identity: Identity): Promise<void> {
    const from = performance.timeOrigin + performance.now();
    const what = await abuse(new Choices(this.#options.seed * 7919 + index), peer, identity);
    this.#abuses.push({ index, what, from, to: performance.timeOrigin + performance.now() });
  }

  async #send(channel: Channel, input: Input): Promise<void> {
    let reply: Reply;
    try {
      reply = await channel.exchange(
        bytesOf(input),
        input.method === 'HEAD',
        input.openEnded,
        input.openEnded ? OPEN_ENDED_MS : ANSWER_MS * slack(),
      );
    } catch (error) {
      // Requests to missing nodes and pods take longer than that, and too large headers may close the connection before
      // a response is read.
      if (input.openEnded || headerBytes(input) > 60_000 || (input.body?.length ?? 0) > 3_000_000) return;
      throw error;
    }
    this.#codes.set(reply.code, (this.#codes.get(reply.code) ?? 0) + 1);
    const wrong = fault(input, reply);
    if (wrong !== undefined) this.#faults.push(`${input.index}: ${input.method} ${input.path.slice(0, 200)}: ${wrong}`);
  }

  /** Measures simple requests during the run. */
  async #askPlainly(channel: Channel): Promise<void> {
    const question = Buffer.from('GET /api/v1/namespaces/default HTTP/1.1\r\nhost: x\r\n\r\n');
    while (!this.#done && this.#server.ended === undefined) {
      const began = performance.now();
      try {
        const reply = await channel.exchange(question, false, false, ANSWER_MS * slack());
        if (reply.code !== 200)
          this.#faults.push(
            `a plain question was answered with ${reply.code}: ${reply.body.toString('utf8').slice(0, 300)}`,
          );
      } catch (error) {
        this.#faults.push(`a plain question: ${error instanceof Error ? error.message : String(error)}`);
      }
      this.#waits.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    channel.close();
  }

  async #take(): Promise<void> {
    const noticed = await this.#server.take();
    for (const stall of noticed.stalls) {
      const during = this.#abuses.filter((each) => each.from < stall.atMs + stall.wallMs && each.to > stall.atMs);
      this.#stalls.push({
        ...stall,
        inputs: [...stall.inputs, ...during.map((each) => `${each.index}(${each.what})`)],
      });
    }
    this.#abuses.splice(0);
    this.#longestWallMs = Math.max(this.#longestWallMs, noticed.longestWallMs);
    this.#longestGcMs = Math.max(this.#longestGcMs, noticed.longestGcMs);
    this.#heapMb.push(noticed.heapBytes / 1e6);
    this.#residentMb = noticed.residentBytes / 1e6;
    for (const each of noticed.uncaught) this.#faults.push(each);
    for (const each of noticed.prototypes) this.#faults.push(`${each} changed`);
    for (const each of noticed.failed) this.#faults.push(`logged: ${each.slice(0, 1500)}`);
  }

  #report(seconds: number): Report {
    const waits = this.#waits.sort((a, b) => a - b);
    return {
      inputs: this.#next - (this.#options.from ?? 0),
      seconds,
      codes: new Map([...this.#codes].sort(([a], [b]) => a - b)),
      faults: this.#faults,
      stalls: this.#stalls.sort((a, b) => b.cpuMs - a.cpuMs),
      longestWallMs: this.#longestWallMs,
      longestGcMs: this.#longestGcMs,
      heapMb: this.#heapMb,
      residentMb: this.#residentMb,
      plain: { requests: waits.length, p99: waits[Math.floor(waits.length * 0.99)] ?? 0, max: waits.at(-1) ?? 0 },
    };
  }
}

const headerBytes = (input: Input): number =>
  input.path.length + input.headers.reduce((sum, [name, held]) => sum + name.length + held.length + 4, 0);
