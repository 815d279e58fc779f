/**
 * Leadership transfer of a member whose disk is full. Such a leader rejects all writes of the cluster although a quorum
 * may have free space, so it transfers leadership to a member with space. If no member has space, this member stays
 * leader, because another leader would reject the writes too.
 */
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { StoreLog } from '../../disk/port.ts';
import type { Engine } from '../engine.ts';

export interface FullDiskDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly log: Log;
  /** Requests from the other members whether their disks have space. Resolves when no more responses can arrive. */
  readonly querySpace: (has: (member: string) => void) => Promise<void>;
}

export class FullDisk {
  readonly #deps: FullDiskDeps;
  #querying = false;

  constructor(deps: FullDiskDeps) {
    this.#deps = deps;
  }

  /** Whether this member's disk has space for a leader's writes. */
  async hasRoom(): Promise<boolean> {
    const { engine, storage } = this.#deps;
    if (engine.full) return false;
    try {
      if (await storage.recoverSpace()) return true;
    } catch {
      // A member that is stopping must not become leader.
      return false;
    }
    // The recovery of the journal may have used the reserved space. No write has failed since then, so the engine does
    // not know yet that the disk is full.
    engine.diskFull(true);
    return false;
  }

  /** Transfers leadership to a member with disk space. Called repeatedly while the disk of this member is full. */
  async transferLeadership(): Promise<void> {
    const { engine, log, querySpace } = this.#deps;
    if (this.#querying || !engine.replica.leads || engine.replica.alone) return;
    this.#querying = true;
    try {
      const able = new Set<string>();
      await querySpace((member) => able.add(member));
      const { replica } = engine;
      if (!engine.full || !replica.leads) return;
      const successor = replica.bestFollower((id) => able.has(id));
      if (successor === undefined) return;
      log.warn('disk is full; transferring leadership to a member with free space', { to: successor });
      replica.transferLeadership(successor);
    } catch (error) {
      log.v(2, 'leadership transfer failed', { cause: messageOf(error) });
    } finally {
      this.#querying = false;
    }
  }
}
