import { writePutRequest } from '../../../src/store/core/messages/kv.ts';
import type { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { type Shown, Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { call, keepAlive } from './rpc.ts';
import type { World } from './world.ts';

/** Largest relative deviation of a clock, in both directions. */
export const DRIFT = 0.022;
const ATTEMPT_MS = 700;

interface Lease {
  readonly id: bigint;
  readonly key: string;
  readonly ttlMs: number;
  /** Time at which the last acknowledged renewal was sent. */
  renewedAt: number;
  /** Time at which the last renewal, acknowledged or not, was in flight. */
  touchedAt: number;
  attached: boolean;
  endedAt: number | undefined;
  revoked: boolean;
}

/** Clients that attach a key to a lease, renew the lease for a while through any member, and let it expire. */
export class LeaseClients {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  readonly #leases: Lease[] = [];
  #stopped = false;

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
  }

  start(count: number): void {
    for (let i = 0; i < count; i++) this.#begin();
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resets expectations after a restore: expired leases may exist again, and later renewals are lost. */
  forget(): void {
    for (const lease of this.#leases) {
      lease.endedAt = undefined;
      lease.renewedAt = Number.NEGATIVE_INFINITY;
    }
  }

  #begin(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(50, 1500), () => {
      if (!this.#stopped) this.#grant();
    });
  }

  #grant(): void {
    const { random, timeline } = this.#world;
    const id = BigInt(1 + this.#leases.length);
    const ttl = 2 + random.below(3);
    const lease: Lease = {
      id,
      key: `lease/${id}`,
      ttlMs: ttl * 1000,
      renewedAt: timeline.nowMs,
      touchedAt: timeline.nowMs,
      attached: false,
      endedAt: undefined,
      revoked: false,
    };
    this.#leases.push(lease);
    this.#call(
      'Lease/LeaseGrant',
      (out) => out.int(1, ttl).big(2, id),
      lease,
      (granted) => {
        if (!granted) {
          this.#begin();
          return;
        }
        this.#call(
          'KV/Put',
          (out) => writePutRequest(out, { key: lease.key, value: Buffer.from(`l${id}`), lease: id }),
          lease,
          (put) => {
            lease.attached = put;
            this.#hold(lease, 1 + random.below(5));
          },
        );
      },
    );
  }

  #hold(lease: Lease, times: number): void {
    const { random, timeline } = this.#world;
    // Late renewals are the ones that can violate the guarantee.
    timeline.after(lease.ttlMs * random.between(0.2, 0.95), () => {
      if (this.#stopped) return;
      if (lease.endedAt !== undefined || times === 0) this.#begin();
      else this.#renew(lease, () => this.#hold(lease, times - 1));
      if (times === 0 && random.chance(0.3)) {
        lease.revoked = true;
        this.#call(
          'Lease/LeaseRevoke',
          (out) => out.big(1, lease.id),
          lease,
          () => {},
        );
      }
    });
  }

  #renew(lease: Lease, done: () => void): void {
    const { random, timeline } = this.#world;
    const requestedAt = timeline.nowMs;
    lease.touchedAt = requestedAt;
    const member = random.pick(this.#members());
    if (member === undefined) return;
    keepAlive(this.#world, member, lease.id, ATTEMPT_MS, (ttl = 0) => {
      lease.touchedAt = timeline.nowMs;
      if (ttl > 0) this.#renewed(lease, requestedAt);
      done();
    });
  }

  #renewed(lease: Lease, requestedAt: number): void {
    const { timeline, trace } = this.#world;
    trace.add(`${timeline.nowMs.toFixed(3)} lease ${lease.id} renewed`);
    trace.count('renewal');
    lease.renewedAt = requestedAt;
    if (lease.endedAt !== undefined && !lease.revoked)
      throw new Violation('lease', `lease ${lease.id} was renewed although it had expired at ${lease.endedAt}`);
  }

  #call(path: string, write: (out: Writer) => Writer, lease: Lease, done: (ok: boolean) => void): void {
    const { random } = this.#world;
    const member = random.pick(this.#members());
    if (member === undefined) return;
    call(this.#world, member, `/etcdserverpb.${path}`, write, { timeoutMs: ATTEMPT_MS }, (answer) => {
      lease.touchedAt = this.#world.timeline.nowMs;
      done(answer.kind === 'ok');
    });
  }

  /** Handles a revision that has become visible. */
  shown(events: readonly Shown[]): void {
    const { nowMs } = this.#world.timeline;
    for (const { key, deleted } of events) {
      if (!deleted || !key.startsWith('lease/')) continue;
      const lease = this.#leases.find((each) => each.key === key);
      if (lease === undefined) continue;
      lease.endedAt = nowMs;
      this.#world.trace.count('expiry');
      const lived = nowMs - lease.renewedAt;
      if (!lease.revoked && lived < lease.ttlMs * (1 - DRIFT))
        throw new Violation(
          'lease',
          `lease ${lease.id} expired ${lived.toFixed(0)} ms after its renewal; its TTL is ${lease.ttlMs} ms`,
        );
    }
  }

  /** Whether a lease still has to expire. */
  get pending(): boolean {
    return this.#present().size > 0;
  }

  #present(): ReadonlySet<string> {
    const present = new Set<string>();
    for (const [, events] of [...this.#world.checkers.history].sort(([a], [b]) => a - b))
      for (const { key, deleted } of events) {
        if (!key.startsWith('lease/')) continue;
        if (deleted) present.delete(key);
        else present.add(key);
      }
    return present;
  }

  /**
   * Checks that all due leases have expired. No lease is renewed any more, and there has been a leader since
   * `leaderSince`.
   */
  overdue(leaderSince: number, graceMs: number): void {
    const { timeline } = this.#world;
    const present = this.#present();
    for (const { id, key, ttlMs, touchedAt } of this.#leases) {
      const due = Math.max(touchedAt, leaderSince) + ttlMs * (1 + DRIFT) + graceMs;
      if (present.has(key) && timeline.nowMs > due)
        throw new Violation('lease', `lease ${id} should have expired by ${due.toFixed(0)} and still exists`);
    }
  }
}
