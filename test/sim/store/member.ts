import type { Clock } from '../../../src/base/clock.ts';
import { messageOf } from '../../../src/base/errors.ts';
import { createLog, type Log, silentLog } from '../../../src/base/log.ts';
import { simpleTokens } from '../../../src/components/etcd/auth/auth-tokens.ts';
import type { PasswordHasher } from '../../../src/components/etcd/auth/password.ts';
import type { Tokens } from '../../../src/components/etcd/auth/tokens.ts';
import { createEtcdServer, type EtcdServer, type Fallback } from '../../../src/components/etcd/index.ts';
import { NEWEST_LEVEL } from '../../../src/components/etcd/replication/log-level.ts';
import { decodeMessages, encodeMessages } from '../../../src/components/etcd/replication/message-codec.ts';
import { decodeHello, PeerPath } from '../../../src/components/etcd/replication/peer-protocol.ts';
import type { Message } from '../../../src/core/raft/types.ts';
import type { RpcService } from '../../../src/io/grpc/port.ts';
import { Violation } from './checkers.ts';
import { Disk, SimulatedLog } from './disk.ts';
import { Life, SimulatedClock } from './process.ts';
import { EVERYTHING, Watcher } from './watcher.ts';
import type { World } from './world.ts';

/** How likely it is that a member of an older build is of the newest when it starts again. */
const UPDATED = 0.3;
export const TIMING = { heartbeatMs: 50, electionMs: 500 };

/** How a run of a simulation differs from others in every member. */
export interface Tuning {
  readonly cacheBytes: number;
  readonly bounds: Readonly<
    Record<'maxAppendBytes' | 'maxCachedBytes' | 'maxUncommittedBytes' | 'keepEntries', number>
  >;
  readonly quotaBytes?: number;
  readonly leaseCheckpointMs?: number;
  /** Tokens are simple, and end after this; undefined: they say all that there is to know. */
  readonly simpleTokenMs?: number;
  readonly fragmentBytes?: number;
}

/** On no thread. */
const plainHasher: PasswordHasher = {
  hash: async (password) => `plain:${password}`,
  verify: async (password, hash) => hash === `plain:${password}`,
};

/** `user@revision`, good wherever it is shown, as tokens are that are signed. `last`: also when auth has changed. */
function revisionTokens(last: boolean): Tokens {
  return {
    issue: async (user, revision) => `${user}@${revision}`,
    caller: (token, revision) => {
      const [user = '', made = ''] = token.split('@');
      return { user, revision: last ? revision : Number(made) };
    },
    forget: () => {},
    clear: () => {},
  };
}

/** A host with a disk, on which the program runs, ends in all ways, and starts again. */
export class Member {
  readonly name: string;
  readonly url: string;
  readonly disk: Disk;
  life: Life | undefined;
  clock: SimulatedClock | undefined;
  /** What clients reach, once it listens. */
  service: RpcService | undefined;
  /** What it goes back to when it is alone and damaged. */
  fallback: Fallback | undefined;
  /** It found out, or everybody knows, that it belongs to the cluster no more. */
  gone = false;
  timesDamaged = 0;
  /** Which kinds of entries its build knows. An older one may be updated whenever it is started again. */
  level = NEWEST_LEVEL;
  #starts = 0;
  onCrash: () => void = () => {};
  readonly #world: World;
  readonly #tuning: Tuning;
  readonly #rate: number;
  readonly #initial: () => { readonly members: readonly Member[]; readonly existing: boolean };
  readonly #keepLog: boolean;
  #server: EtcdServer | undefined;
  #storage: SimulatedLog | undefined;
  #stopping = false;

  constructor(
    name: string,
    world: World,
    tuning: Tuning,
    initial: () => { readonly members: readonly Member[]; readonly existing: boolean },
    keepLog: boolean,
  ) {
    this.name = name;
    this.url = `http://${name}:2380`;
    this.#world = world;
    this.#tuning = tuning;
    this.#initial = initial;
    this.#keepLog = keepLog;
    this.disk = new Disk(name, world);
    this.#rate = world.random.between(0.99, 1.01) * (world.bug?.clockRate ?? 1);
  }

  get alive(): boolean {
    return this.life?.alive ?? false;
  }

  /** Hex, as raft knows it; '' before it has one. */
  get id(): string {
    return this.disk.image.identity?.memberId.toString(16) ?? '';
  }

  start(): void {
    if (this.alive || this.gone) return;
    const { timeline, random, network, trace, bug } = this.#world;
    if (this.#starts > 0 && this.level < NEWEST_LEVEL && random.chance(UPDATED)) this.update();
    this.#starts += 1;
    this.disk.level = this.level;
    trace.add(`${timeline.nowMs.toFixed(3)} ${this.name} starts`);
    this.#stopping = false;
    const life = new Life();
    this.life = life;
    network.silent.delete(this.name);
    const clock = new SimulatedClock(timeline, life, this.#rate, random.between(0, 1e6));
    clock.skewMs = random.chance(0.2) ? random.between(-1e8, 1e8) : 0;
    this.clock = clock;
    const { members, existing } = this.#initial();
    const storage = new SimulatedLog(this.disk, life, this.#world);
    this.#storage = storage;
    const server = createEtcdServer({
      storage,
      ...(this.fallback === undefined ? {} : { fallback: this.fallback }),
      listener: {
        listen: async (service) => {
          this.service = service;
          this.#spy(service, life);
          return { host: this.name, port: 2379 };
        },
        drain: async () => {},
        close: async () => {
          if (this.life !== life || this.service === undefined) return;
          network.closed.add(this.service);
          this.service = undefined;
        },
      },
      peers: {
        listener: this.#checked(network.listener(this.name, this.url, life)),
        dial: network.dialer(this.name, life, (url) => new URL(url).hostname),
      },
      initialCluster: {
        members: members.map((each) => ({ name: each.name, peerUrls: [each.url] })),
        token: 'sim',
        existing,
      },
      timing: TIMING,
      clock,
      log: this.#keepLog ? this.#log() : silentLog,
      name: this.name,
      clientUrls: [`http://${this.name}:2379`],
      peerUrls: [this.url],
      random: {
        random: () => random.next(),
        bytes: (length) => Uint8Array.from({ length }, () => random.below(256)),
      },
      defer: (run) => timeline.after(0.01, () => life.run(run)),
      cacheBytes: this.#tuning.cacheBytes,
      bounds: this.#tuning.bounds,
      flushIntervalMs: 500,
      ...(this.#tuning.leaseCheckpointMs === undefined ? {} : { leaseCheckpointMs: this.#tuning.leaseCheckpointMs }),
      clientCertAuth: true,
      tokens: this.#tokens(clock),
      hasher: plainHasher,
      logLevel: bug?.claimsToKnow ? NEWEST_LEVEL : this.level,
      ...(this.#tuning.fragmentBytes === undefined ? {} : { fragmentBytes: this.#tuning.fragmentBytes }),
      ...(this.#tuning.quotaBytes === undefined ? {} : { quotaBytes: this.#tuning.quotaBytes }),
      onFatal: (error) => this.#fatal(error, life),
    });
    this.#server = server;
    server.start().catch((error: unknown) => {
      if (life.alive) this.#fatal(error instanceof Error ? error : new Error(messageOf(error)), life);
    });
  }

  /** The next time it starts it is of the newest build. */
  update(): void {
    this.level = NEWEST_LEVEL;
    this.#world.trace.count('updated');
  }

  #tokens(clock: Clock): Tokens {
    const { random, bug } = this.#world;
    const { simpleTokenMs } = this.#tuning;
    if (simpleTokenMs === undefined) return revisionTokens(bug?.tokensLast ?? false);
    const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => random.below(256));
    return simpleTokens(clock, simpleTokenMs * (bug?.tokenLife ?? 1), bytes);
  }

  /** Sees what the others send it. */
  #checked(listener: ReturnType<World['network']['listener']>): ReturnType<World['network']['listener']> {
    const { bug } = this.#world;
    return {
      drain: (mostMs) => listener.drain(mostMs),
      close: (grace) => listener.close(grace),
      listen: (service) =>
        listener.listen({
          hasService: (name) => service.hasService(name),
          http: (request) => service.http(request),
          unary: (path) => service.unary(path),
          stream: (path) => {
            const open = service.stream(path);
            if (open === undefined || path !== PeerPath.messages) return open;
            return (call) => {
              const handler = open(call);
              let from: string | undefined;
              const openedMs = this.#world.timeline.nowMs;
              return {
                ...handler,
                message: (bytes) => {
                  const sender = from;
                  from ??= decodeHello(bytes).from;
                  if (sender === undefined || bytes[0] !== 10) handler.message(bytes);
                  else {
                    const messages = this.#seen(decodeMessages(bytes, sender, this.id), openedMs);
                    if (bug?.message === undefined) handler.message(bytes);
                    else if (messages.length > 0) handler.message(encodeMessages(messages));
                  }
                },
              };
            };
          },
        }),
    };
  }

  /** `openedMs`: since when the connection is there that they come on. */
  #seen(messages: readonly Message[], openedMs: number): Message[] {
    const { trace, timeline, checkers, bug } = this.#world;
    const kept: Message[] = [];
    for (const message of messages) {
      trace.add(`${timeline.nowMs.toFixed(3)} ${this.name} < ${describe(message)}`);
      checkers.sent(message, openedMs);
      const changed = bug?.message === undefined ? message : bug.message(message, this.name, timeline.nowMs);
      if (changed !== undefined) kept.push(changed);
    }
    return kept;
  }

  /** A watch of everything, inside the program. */
  #spy(service: RpcService, life: Life): void {
    const watcher = new Watcher(this.#world, `spy of ${this.name}`, EVERYTHING);
    const reopen = (): void => {
      if (life.alive) watcher.open(service, life, (deliver) => this.#world.timeline.after(0, deliver), reopen);
    };
    watcher.next = 1;
    reopen();
  }

  #fatal(error: Error, life: Life): void {
    const code = 'code' in error ? String(error.code) : '';
    const { trace, timeline } = this.#world;
    trace.add(`${timeline.nowMs.toFixed(3)} ${this.name} ends: ${error.message}`);
    trace.count(`ended: ${code}`);
    if (this.life !== life || !life.alive) return;
    if (code === 'removed') {
      this.gone = true;
      this.crash(false);
      return;
    }
    if ((code === 'closed' || code === 'corrupt') && this.#stopping) {
      // It was told to stop before it had come up.
      this.crash(false);
      return;
    }
    if (code === 'bad-config') {
      // It has not been added yet, as far as whom it asked knows.
      this.crash(false);
      return;
    }
    // As an event of its own: whoever calls this has no use for what is thrown.
    timeline.after(0, () => {
      throw new Violation('no surprise', `${this.name} ends: ${code} ${error.stack ?? error.message}`);
    });
  }

  /** Reads all that it has, and with it finds damage. */
  scrub(): void {
    const { life } = this;
    const storage = this.#storage;
    life?.run(() => void storage?.scrub().catch(() => {}));
  }

  /** `kill -9`, or, `silently`, the power. */
  crash(silently: boolean): void {
    const { life } = this;
    if (!life?.alive) return;
    const { network, trace, timeline } = this.#world;
    trace.add(`${timeline.nowMs.toFixed(3)} ${this.name} crashes`);
    life.end();
    this.service = undefined;
    this.#server = undefined;
    if (silently) network.silent.add(this.name);
    network.ended(life);
    this.disk.crash();
    this.onCrash();
  }

  /** SIGTERM. */
  stop(): void {
    const { life } = this;
    const server = this.#server;
    if (!life?.alive || life.paused || server === undefined) return;
    this.#stopping = true;
    // As an event of its own: what its end shows to be wrong is then a finding of the run.
    const ended = (): void =>
      this.#world.timeline.after(0, () => {
        if (this.life === life) this.crash(false);
      });
    server.stop().then(ended, ended);
  }

  pause(): void {
    if (this.life?.alive) this.life.paused = true;
  }

  resume(): void {
    if (this.life?.paused) this.life.resume(this.#world.timeline);
  }

  #log(): Log {
    const { trace, timeline } = this.#world;
    return createLog({
      component: this.name,
      level: 10,
      nowMs: () => timeline.nowMs,
      sink: { write: (line) => trace.comment(`${timeline.nowMs.toFixed(3)} ${line.trimEnd()}`) },
    });
  }
}

function describe(message: Message): string {
  const { type, from } = message;
  const term = 'term' in message ? message.term : 0;
  if (type === 'append')
    return `${from} append ${term} ${message.prevIndex}+${message.entries.length} ${message.commit}`;
  if (type === 'appendResp') return `${from} appendResp ${term} ${message.index} ${message.rejected}`;
  return `${from} ${type} ${term}`;
}
