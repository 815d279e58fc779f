/** Leases in the replicated store: requests of the leader, and their effect once committed. */
import type { Clock } from '../../../base/time/clock.ts';
import { MvccError } from '../../core/mvcc/errors.ts';
import type { Lease } from '../../core/mvcc/leases.ts';
import type { Machine } from '../../core/mvcc/machine.ts';
import type { LeaseRecord } from '../../disk/port.ts';
import type { AppliedState } from '../applied.ts';
import type { Command } from '../peers/entry-codec.ts';
import { Pending } from '../pending.ts';
import type { Proposer } from '../proposer.ts';
import type { StoreView } from '../store-view.ts';
import type { DiskSpace } from './space.ts';

export interface LeasesDeps {
  readonly view: Pick<StoreView, 'machine'>;
  readonly proposer: Proposer;
  readonly space: DiskSpace;
  readonly applied: AppliedState;
  readonly clock: Clock;
}

type Checkpoint = Extract<Command, { type: 'checkpoint' }>['leases'];

export class Leases {
  readonly #deps: LeasesDeps;

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
  }

  async grant(id: bigint, ttlSeconds: number): Promise<{ readonly id: bigint; readonly ttlSeconds: number }> {
    const { view, proposer, space } = this.#deps;
    if (space.full) await space.recover();
    proposer.admit({ grows: true });
    const granted = view.machine.leases.checked(id, ttlSeconds);
    await proposer.add(Pending.command({ type: 'grant', id, ttlSeconds: granted }));
    return { id, ttlSeconds: granted };
  }

  async revoke(id: bigint): Promise<void> {
    const { view, proposer } = this.#deps;
    proposer.admit({ grows: false });
    const lease = view.machine.leases.get(id);
    if (lease === undefined) throw new MvccError('lease-not-found');
    // From here on no later write may attach a key to the lease.
    const decided = view.machine.revoke(id);
    if (decided !== undefined) await proposer.add(Pending.revision(decided, { relaxed: false }, lease));
    else await proposer.add(Pending.command({ type: 'revoke', id }, lease));
  }

  /** Loads stored leases into `machine`, whose keys have been loaded. */
  load(machine: Machine, records: readonly LeaseRecord[]): void {
    const now = this.#deps.clock.monotonicMs();
    for (const { id, ttlSeconds, remainingSeconds } of records) {
      const lease = machine.leases.grant(id, ttlSeconds, now);
      if (remainingSeconds === undefined) continue;
      lease.checkpoint = remainingSeconds;
      machine.leases.setRemaining(id, remainingSeconds * 1000, now);
    }
    machine.attachLeases();
  }

  /** Extends all leases by `ms`: clients could not renew them while there was no leader. */
  extend(ms: number): void {
    this.#deps.view.machine.leases.extend(ms, this.#deps.clock.monotonicMs());
  }

  /**
   * Leases of a snapshot. A lease whose revocation is not committed is included, because it still exists for the other
   * members.
   */
  records(): readonly LeaseRecord[] {
    const { view, proposer } = this.#deps;
    // Uses the remaining time of the last checkpoint, because later renewals are not in the log.
    return [...view.machine.leases.all(), ...proposer.revoked()].map(recordOf);
  }

  applyGrant(id: bigint, ttlSeconds: number): void {
    const { view, applied, clock } = this.#deps;
    applied.granted(recordOf(view.machine.leases.grant(id, ttlSeconds, clock.monotonicMs())));
  }

  /** Throws MvccError 'lease-not-found'. */
  applyRevoke(id: bigint): void {
    if (this.#deps.view.machine.leases.remove(id) === undefined) throw new MvccError('lease-not-found');
    this.#deps.applied.revoked(id);
  }

  applyCheckpoint(checkpoint: Checkpoint): void {
    const { view, applied } = this.#deps;
    for (const { id, remainingSeconds } of checkpoint) {
      const lease = view.machine.leases.get(id);
      if (lease === undefined) continue;
      lease.checkpoint = remainingSeconds < lease.ttlSeconds ? remainingSeconds : undefined;
      applied.granted(recordOf(lease));
    }
  }

  /** Adopts remaining times that another leader checkpointed or reset, because this member may have restarted since. */
  adoptRemaining(checkpoint: Checkpoint): void {
    const { view, clock } = this.#deps;
    const now = clock.monotonicMs();
    for (const { id, remainingSeconds } of checkpoint)
      view.machine.leases.setRemaining(id, remainingSeconds * 1000, now);
  }
}

function recordOf({ id, ttlSeconds, checkpoint }: Lease): LeaseRecord {
  return { id, ttlSeconds, ...(checkpoint === undefined ? {} : { remainingSeconds: checkpoint }) };
}
