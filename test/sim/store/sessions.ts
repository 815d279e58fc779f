import { decodeHeader, decodeKeyValue } from '../../../src/store/core/messages/kv.ts';
import type { StreamHandler } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { type Shown, Violation } from './checkers.ts';
import { DRIFT } from './leases.ts';
import type { Member } from './member.ts';
import { QueueView, type Standing, same } from './queue-view.ts';
import { type Answer, call, keepAlive } from './rpc.ts';
import type { World } from './world.ts';

const ATTEMPT_MS = 700;
const FIRST_LEASE = 1_000_000n;
const PATIENCE_MS = 20_000;
const STEP_MS = 100;

type Queue = 'lock' | 'election';
const QUEUES: readonly Queue[] = ['lock', 'election'];

/** One attempt to get the lock or to win the election, with its own lease. */
interface Session {
  readonly queue: Queue;
  readonly lease: bigint;
  readonly ttlMs: number;
  readonly key: string;
  /** Time at which the last acknowledged renewal was sent. */
  renewedAt: number;
  /** Whether the session has been informed that it holds the lock or leads. */
  isReported: boolean;
  /** Whether the session has released the lock or given up. */
  over: boolean;
  /** Leader key from the response to a campaign. */
  leader: Uint8Array;
}

interface Reported {
  readonly what: string;
  readonly queue: Queue;
  readonly revision: number;
  readonly standing: Standing | undefined;
}

/**
 * Clients that use a lock (`v3lock`) and an election (`v3election`) at any member: they wait, sometimes give up early,
 * renew their lease, proclaim, resign, or disappear. A client whose lease is valid by its own clock and that has been
 * informed of its turn must be the only one.
 */
export class Sessions {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  readonly #sessions = new Map<string, Session>();
  #reports: Reported[] = [];
  #heard: Reported[] = [];
  #count = 0;
  #stopped = false;

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
  }

  start(each: number): void {
    for (const queue of QUEUES) for (let i = 0; i < each; i += 1) this.#begin(queue);
    this.#look();
    this.#observe();
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resets all sessions after a restore. */
  forget(): void {
    for (const session of this.#sessions.values()) session.isReported = false;
    this.#sessions.clear();
  }

  /** Checks the recorded responses, because the history is about to be truncated. */
  settle(): void {
    this.checkAnswers();
    this.#reports = [];
    this.#heard = [];
  }

  /** Handles a revision that has become visible. */
  shown(events: readonly Shown[]): void {
    for (const { key, deleted } of events) {
      const session = deleted ? this.#sessions.get(key) : undefined;
      if (session !== undefined && this.#holds(session))
        throw new Violation(
          session.queue,
          `${key} was deleted although its lease was renewed and its owner did not release it`,
        );
    }
  }

  /** Liveness: without faults, and once the leases of lost clients have expired, every client gets its turn. */
  async check(until: (time: number) => Promise<void>): Promise<void> {
    const { timeline, trace } = this.#world;
    const deadline = timeline.nowMs + PATIENCE_MS;
    for (const queue of QUEUES) {
      let session: Session | undefined;
      while (!(session?.isReported ?? false)) {
        if (timeline.nowMs > deadline) throw new Violation('liveness', `no session acquired the ${queue} in time`);
        if (session === undefined || session.over) session = this.#enter(queue, () => {});
        await until(timeline.nowMs + STEP_MS);
      }
      trace.count(`${queue}: at the end`);
    }
  }

  /** Checks that the responses are consistent with the visible history. */
  checkAnswers(): void {
    const { checkers } = this.#world;
    const views = { lock: new QueueView(checkers, 'lock/'), election: new QueueView(checkers, 'election/') };
    for (const { what, queue, revision, standing } of this.#reports) {
      if (checkers.mayBeLost(revision, true)) continue;
      const first = views[queue].firstAt(revision);
      if (!same(first, standing) && !(what === 'Lock' && first?.key === standing?.key))
        throw new Violation(
          queue,
          `${what} reported ${standing?.key} ${standing?.value} at revision ${revision}, but ${first?.key} ${first?.value} was first`,
        );
    }
    for (const { queue, revision, standing } of this.#heard) {
      if (standing === undefined || checkers.mayBeLost(Math.max(revision, standing.mod), true)) continue;
      if (!views[queue].wasFirst(standing))
        throw new Violation(
          'observer',
          `${standing.key} proclaimed ${standing.value} at revision ${standing.mod} without being the leader`,
        );
    }
  }

  #begin(queue: Queue): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(50, 1000), () => {
      if (!this.#stopped) this.#enter(queue, () => this.#begin(queue));
    });
  }

  /** @param done Called once, when the session has ended or can never get its turn. */
  #enter(queue: Queue, done: () => void): Session {
    const { random, timeline } = this.#world;
    this.#count += 1;
    const lease = FIRST_LEASE + BigInt(this.#count);
    const ttl = 2 + random.below(3);
    const session: Session = {
      queue,
      lease,
      ttlMs: ttl * 1000,
      key: `${queue}/${lease.toString(16)}`,
      renewedAt: timeline.nowMs,
      isReported: false,
      over: false,
      leader: Buffer.alloc(0),
    };
    const end = (): void => {
      if (session.over) return;
      session.over = true;
      this.#sessions.delete(session.key);
      done();
    };
    this.#sessions.set(session.key, session);
    const granted = (answer: Answer): void => {
      if (answer.kind !== 'ok') end();
      else {
        this.#renew(session);
        this.#wait(session, end);
      }
    };
    this.#ask('etcdserverpb.Lease/LeaseGrant', (out) => out.int(1, ttl).big(2, lease), ATTEMPT_MS, granted);
    return session;
  }

  #renew(session: Session): void {
    const { random, timeline } = this.#world;
    timeline.after(session.ttlMs * random.between(0.1, 0.5), () => {
      const member = random.pick(this.#members());
      if (session.over || member === undefined) return;
      const requestedAt = timeline.nowMs;
      keepAlive(this.#world, member, session.lease, ATTEMPT_MS, (ttl = 0) => {
        if (ttl > 0) session.renewedAt = requestedAt;
        this.#renew(session);
      });
    });
  }

  #wait(session: Session, end: () => void): void {
    const { random, trace, timeline } = this.#world;
    const { queue, lease, key } = session;
    const path = queue === 'lock' ? 'v3lockpb.Lock/Lock' : 'v3electionpb.Election/Campaign';
    const write = (out: Writer): Writer => {
      out.string(1, queue).big(2, lease);
      return queue === 'lock' ? out : out.string(3, `leader ${lease}`);
    };
    // Some clients give up before their turn; their key may be deleted later.
    this.#ask(path, write, random.between(300, 6000), (answer) => {
      if (answer.kind !== 'ok') {
        trace.count(`${queue}: ${answer.kind === 'unknown' ? 'left' : 'failed'}`);
        end();
        return;
      }
      session.isReported = true;
      const [revision, body] = headAndBody(answer.body);
      session.leader = body;
      if (queue === 'lock')
        this.#reports.push({ what: 'Lock', queue, revision, standing: { key, create: 0, mod: 0, value: '' } });
      trace.add(`${timeline.nowMs.toFixed(3)} ${key} gets its turn`);
      // etcd's campaign does not check whether the lease has expired while it waited.
      if (this.#holds(session)) this.#alone(session);
      else trace.count(`${queue}: too late`);
      this.#hold(session, random.below(3), end);
    });
  }

  #holds({ isReported, over, renewedAt, ttlMs }: Session): boolean {
    return isReported && !over && this.#world.timeline.nowMs < renewedAt + ttlMs * (1 - DRIFT);
  }

  #alone(session: Session): void {
    const { queue, key } = session;
    this.#world.trace.count(`${queue}: its turn`);
    for (const other of this.#sessions.values())
      if (other !== session && other.queue === queue && this.#holds(other))
        throw new Violation(queue, `${key} and ${other.key} hold it at the same time`);
  }

  #hold(session: Session, proclamations: number, end: () => void): void {
    const { random, timeline } = this.#world;
    timeline.after(random.between(20, 900), () => {
      if (session.over) return;
      if (session.queue === 'election' && proclamations > 0)
        this.#proclaim(session, proclamations, () => this.#hold(session, proclamations - 1, end));
      else {
        // Most sessions end regularly; the other sessions disappear without a release.
        end();
        const { queue, key, leader, lease } = session;
        if (random.chance(0.2)) this.#ask('etcdserverpb.Lease/LeaseRevoke', (out) => out.big(1, lease));
        else if (random.chance(0.7) && queue === 'lock') this.#ask('v3lockpb.Lock/Unlock', (out) => out.string(1, key));
        else if (random.chance(0.7)) this.#ask('v3electionpb.Election/Resign', (out) => out.message(1, leader));
      }
    });
  }

  #proclaim(session: Session, count: number, done: () => void): void {
    const { leader, key } = session;
    const value = `leader ${session.lease} ${count}`;
    const write = (out: Writer): Writer => out.message(1, leader).string(2, value);
    this.#ask('v3electionpb.Election/Proclaim', write, ATTEMPT_MS, (answer) => {
      if (answer.kind === 'failed' && /not leader/.test(answer.text) && this.#holds(session))
        throw new Violation('election', `${key} leads, and its proclamation was rejected`);
      if (answer.kind === 'ok') {
        this.#world.trace.count('proclaimed');
        const [revision] = headAndBody(answer.body);
        if (this.#holds(session))
          this.#reports.push({
            what: 'Proclaim',
            queue: 'election',
            revision,
            standing: { key, create: 0, mod: revision, value },
          });
      }
      done();
    });
  }

  /** Reads the current leader at any member. */
  #look(): void {
    const { random, timeline, checkers } = this.#world;
    timeline.after(random.between(50, 500), () => {
      if (this.#stopped) return;
      const floor = checkers.known;
      this.#ask(
        'v3electionpb.Election/Leader',
        (out) => out.string(1, 'election'),
        ATTEMPT_MS,
        (answer) => {
          this.#look();
          if (answer.kind !== 'ok') return;
          const output = reportOf('Leader', answer.body);
          if (output.revision < floor && !checkers.mayBeLost(floor, true))
            throw new Violation(
              'election',
              `the leader was read at revision ${output.revision}, after revision ${floor} had been read`,
            );
          this.#reports.push(output);
        },
      );
    });
  }

  /** Observes proclamations at one member after another. */
  #observe(): void {
    const { random, timeline } = this.#world;
    timeline.after(random.between(20, 300), () => {
      const { life, service } = random.pick(this.#members()) ?? {};
      const open = service?.stream('/v3electionpb.Election/Observe');
      if (this.#stopped) return;
      if (open === undefined || life === undefined || !life.alive) {
        this.#observe();
        return;
      }
      let handler: StreamHandler | undefined;
      let over = false;
      const again = (): void => {
        if (over) return;
        over = true;
        life.run(() => handler?.closed());
        this.#observe();
      };
      timeline.after(random.between(300, 3000), again);
      life.run(() => {
        handler = this.#listen(open, again);
      });
    });
  }

  #listen(open: NonNullable<ReturnType<NonNullable<Member['service']>['stream']>>, again: () => void): StreamHandler {
    const { trace } = this.#world;
    let revision = 0;
    const handler = open({
      metadata: () => undefined,
      peerCommonName: () => 'root',
      pause: () => {},
      resume: () => {},
      send: (...parts) => {
        const output = reportOf('Observe', Buffer.concat(parts));
        trace.count('observed');
        if (output.revision < revision)
          throw new Violation('observer', `revision ${output.revision} was output after revision ${revision}`);
        revision = output.revision;
        this.#heard.push(output);
        return true;
      },
      end: again,
    });
    const { bug } = this.#world;
    const requested = new Writer(32).string(1, 'election').finish();
    handler.message(bug?.request?.('/v3electionpb.Election/Observe', requested) ?? requested);
    return handler;
  }

  #ask(
    path: string,
    write: (out: Writer) => Writer,
    timeoutMs = ATTEMPT_MS,
    done: (answer: Answer) => void = () => {},
  ): void {
    const { random, timeline, trace } = this.#world;
    const member = random.pick(this.#members().filter(({ gone }) => !gone));
    if (member === undefined) return;
    call(this.#world, member, `/${path}`, write, { timeoutMs }, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} session: ${path}: ${text}`);
      done(answer);
    });
  }
}

/** Field 2 as bytes: a key, a key-value, or a leader key. */
function headAndBody(answer: Buffer): readonly [revision: number, body: Buffer] {
  const reader = new Reader(answer);
  let revision = 0;
  let body = Buffer.alloc(0);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) revision = decodeHeader(reader.bytes());
    else if (field === 2) body = Buffer.from(reader.bytes());
    else reader.skip();
  }
  return [revision, body];
}

function reportOf(what: string, answer: Buffer): Reported {
  const [revision, body] = headAndBody(answer);
  const { key, createRevision, modRevision, value } = decodeKeyValue(body);
  const standing = { key, create: createRevision, mod: modRevision, value: value.toString('latin1') };
  return { what, queue: 'election', revision, standing };
}
