/**
 * Quorum for lease renewals. Remaining times of leases are not in the log, because a disk write for every keep-alive
 * would be too expensive. Instead, a quorum acknowledges a keep-alive, and a new leader queries a quorum before it
 * expires any lease. The two quorums overlap, so a keep-alive survives the failure of its leader.
 */

import { CodedError } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import type { NodeId } from '../core/raft/index.ts';
import { jointVote } from '../core/raft/quorum.ts';
import type { Engine } from '../replication/engine.ts';
import { decodeLeaseUpdate, type LeaseUpdates, writeLeaseUpdates } from '../replication/peers/peer-protocol.ts';

export interface LeaseQuorumDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Queries every other member. `agreed` is called with the response of each member that agrees. */
  readonly queryPeers: (message: Uint8Array, agreed: (by: NodeId, body: Uint8Array) => void) => void;
}

interface Batch {
  readonly ids: Set<bigint>;
  readonly acknowledged: Promise<void>;
}

/** Delay in which keep-alives are combined into one query. */
const BATCH_MS = 2;
const RETRY_MS = 100;
const UPDATES = 2;

export class LeaseQuorum {
  readonly #deps: LeaseQuorumDeps;
  #batch: Batch | undefined;

  constructor(deps: LeaseQuorumDeps) {
    this.#deps = deps;
  }

  /** Resolves when a quorum has acknowledged the renewal of lease `id`. Throws CodedError 'leader-failed'. */
  renewed(id: bigint): Promise<void> {
    const { engine, clock } = this.#deps;
    if (engine.replica.alone) return Promise.resolve();
    if (this.#batch === undefined) {
      const ids = new Set<bigint>();
      const acknowledged = new Promise<void>((resolve) => clock.setTimer(BATCH_MS, resolve)).then(() => {
        this.#batch = undefined;
        return this.#agree(encode(engine.replica.term, this.remaining(ids), { needsRemaining: false }), () => {});
      });
      this.#batch = { ids, acknowledged };
    }
    this.#batch.ids.add(id);
    return this.#batch.acknowledged;
  }

  /** Remaining times of the given leases. Default: all. */
  remaining(ids: Iterable<bigint> = this.#deps.engine.machine.leases.ids()): LeaseUpdates {
    const { engine, clock } = this.#deps;
    const now = clock.monotonicMs();
    const updates: Array<LeaseUpdates[number]> = [];
    for (const id of ids) {
      const lease = engine.machine.leases.get(id);
      if (lease !== undefined) updates.push({ id, remainingMs: Math.max(1, Math.ceil(lease.expiresAtMs - now)) });
    }
    return updates;
  }

  /** Collects the remaining times known to a quorum. Resolves with false when leadership is lost before. */
  async learn(): Promise<boolean> {
    const { engine, clock } = this.#deps;
    const { replica } = engine;
    const { term } = replica;
    while (engine.leads && replica.term === term) {
      try {
        await this.#agree(encode(term, [], { needsRemaining: true }), (body) => this.#extend(decode(body).updates));
        return true;
      } catch (error) {
        if (!(error instanceof CodedError)) throw error;
        await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
      }
    }
    return false;
  }

  /** Response to the leader of this member's term. Undefined for other members. Throws WireError. */
  answer(message: Uint8Array): Uint8Array | undefined {
    const { engine, clock } = this.#deps;
    const { term, updates, needsRemaining } = decode(message);
    if (term !== engine.replica.term || engine.replica.leads) return undefined;
    const now = clock.monotonicMs();
    for (const { id, remainingMs } of updates) engine.machine.leases.setRemaining(id, remainingMs, now);
    return encode(term, needsRemaining ? this.remaining() : [], { needsRemaining: false });
  }

  /** Adopts longer remaining times, because the longest remaining time is the most recent. */
  #extend(updates: LeaseUpdates): void {
    const { leases } = this.#deps.engine.machine;
    const now = this.#deps.clock.monotonicMs();
    for (const { id, remainingMs } of updates) leases.prolong(id, remainingMs, now);
  }

  /** Resolves when a quorum of voters, this member included, agrees in this term. */
  #agree(message: Uint8Array, heard: (body: Uint8Array) => void): Promise<void> {
    const { clock, queryPeers, engine } = this.#deps;
    const { replica } = engine;
    const { term } = replica;
    const agreed = new Map<NodeId, boolean>([[replica.id, true]]);
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(replica.electionMs, () =>
        reject(new CodedError('leader-failed', 'no quorum responds to lease requests')),
      );
      const count = (): void => {
        const { voters, outgoing } = replica.conf;
        if (replica.term !== term || jointVote(new Set(voters), new Set(outgoing), agreed) !== 'won') return;
        timer.cancel();
        resolve();
      };
      queryPeers(message, (by, body) => {
        heard(body);
        agreed.set(by, true);
        count();
      });
      count();
    });
  }
}

function encode(term: number, updates: LeaseUpdates, { needsRemaining }: { readonly needsRemaining: boolean }): Buffer {
  const out = new Writer(32 + updates.length * 16).int(1, term);
  return writeLeaseUpdates(out, UPDATES, updates).bool(3, needsRemaining).finish();
}

function decode(bytes: Uint8Array): {
  readonly term: number;
  readonly updates: LeaseUpdates;
  readonly needsRemaining: boolean;
} {
  const reader = new Reader(bytes);
  const updates: Array<LeaseUpdates[number]> = [];
  let term = 0;
  let needsRemaining = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) term = reader.int();
    else if (field === UPDATES) updates.push(decodeLeaseUpdate(reader.bytes()));
    else if (field === 3) needsRemaining = reader.bool();
    else reader.skip();
  }
  return { term, updates, needsRemaining };
}
