import { messageOf } from '../../../src/base/errors.ts';
import { createLog, type Log, silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { simpleTokens } from '../../../src/store/auth/auth-tokens.ts';
import type { PasswordHasher } from '../../../src/store/auth/password.ts';
import type { Tokens } from '../../../src/store/auth/tokens.ts';
import type { Message } from '../../../src/store/core/raft/types.ts';
import { createEtcdServer, type EtcdServer, type Fallback } from '../../../src/store/index.ts';
import { NEWEST_LEVEL } from '../../../src/store/replication/maintenance/log-level.ts';
import { decodeMessages, encodeMessages } from '../../../src/store/replication/peers/message-codec.ts';
import { decodeHello, PeerPath } from '../../../src/store/replication/peers/peer-protocol.ts';
import type { RpcService } from '../../../src/wire/grpc/port.ts';
import { Violation } from './checkers.ts';
import { Disk, SimulatedLog } from './disk.ts';
import { Life, SimulatedClock } from './process.ts';
import { EVERYTHING, Watcher } from './watcher.ts';
import type { World } from './world.ts';

/** Probability that a member with an older build is updated when it restarts. */
const UPDATED = 0.3;
export const TIMING = { heartbeatMs: 50, electionMs: 500 };

/** Settings that apply to every member of a run. */
export interface Tuning {
  readonly cacheBytes: number;
  readonly bounds: Readonly<
    Record<'maxAppendBytes' | 'maxCachedBytes' | 'maxUncommittedBytes' | 'keepEntries', number>
  >;
  readonly quotaBytes?: number;
  readonly leaseCheckpointMs?: number;
  /** TTL of simple tokens; undefined if tokens are self-contained. */
  readonly simpleTokenMs?: number;
  readonly fragmentBytes?: number;
}

/** Password hasher that computes on the main thread. */
const plainHasher: PasswordHasher = {
  hash: async (password) => `plain:${password}`,
  verify: async (password, hash) => hash === `plain:${password}`,
};

/**
 * Self-contained tokens `user@revision`, valid at every member like signed tokens. With `last`, they stay valid after
 * auth has changed.
 */
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

/** A host with a disk, on which the program runs, ends in various ways and restarts. */
export class Member {
  readonly name: string;
  readonly url: string;
  readonly disk: Disk;
  life: Life | undefined;
  clock: SimulatedClock | undefined;
  /** Client API, once it listens. */
  service: RpcService | undefined;
  /** Restore target of a damaged single member. */
  fallback: Fallback | undefined;
  /**
   * The member was removed from the cluster, and either this member or every other member has learned of the removal.
   */
  gone = false;
  timesDamaged = 0;
  /** Highest entry kind that its build supports. An older build may be updated at any restart. */
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

  /** Member ID in hex, as raft uses it; '' before it has one. */
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

  /** Installs the newest build, effective with the next start. */
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

  /** Wraps the listener to check the messages from other members. */
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

  /** @param openedMs Time at which the connection of the messages was opened. */
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

  /** Watches all keys from inside the program. */
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
      // The process was stopped before it had started completely.
      this.crash(false);
      return;
    }
    if (code === 'bad-config') {
      // The contacted member does not know yet that this member was added.
      this.crash(false);
      return;
    }
    // Thrown in a separate event, because the caller would swallow the exception.
    timeline.after(0, () => {
      throw new Violation('no surprise', `${this.name} failed unexpectedly: ${code} ${error.stack ?? error.message}`);
    });
  }

  /** Reads all data, which detects damage. */
  scrub(): void {
    const { life } = this;
    const storage = this.#storage;
    life?.run(() => void storage?.scrub().catch(() => {}));
  }

  /** Simulates `kill -9` or, with `silently`, a power failure. */
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

  /** Simulates SIGTERM. */
  stop(): void {
    const { life } = this;
    const server = this.#server;
    if (!life?.alive || life.paused || server === undefined) return;
    this.#stopping = true;
    // Runs in a separate event, so that a violation found at the end becomes a finding of the run.
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
