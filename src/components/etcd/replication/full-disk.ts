/**
 * A leader whose disk is full refuses all writes of the cluster, and a quorum of the others may have room. So it asks them, and has one of those that
 * have take over. When nobody has, it stays: whoever led instead would have to refuse as well.
 */
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { StoreLog } from '../port.ts';
import type { Engine } from './engine.ts';

export interface FullDiskDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly log: Log;
  /** Asks the others whether they have room, and resolves when no more answers can come. */
  readonly ask: (has: (member: string) => void) => Promise<void>;
}

export class FullDisk {
  readonly #deps: FullDiskDeps;
  #asking = false;

  constructor(deps: FullDiskDeps) {
    this.#deps = deps;
  }

  /** Whether this member may lead, as far as its disk goes. */
  async hasRoom(): Promise<boolean> {
    const { engine, storage } = this.#deps;
    if (engine.full) return false;
    try {
      if (await storage.recoverSpace()) return true;
    } catch {
      // One that is about to stop had better not.
      return false;
    }
    // What was set aside went while the journal was taken in, and no write has come since that would have said so.
    engine.diskFull(true);
    return false;
  }

  /** The disk here is full, still or again. */
  async handOver(): Promise<void> {
    const { engine, log, ask } = this.#deps;
    if (this.#asking || !engine.replica.leads || engine.replica.alone) return;
    this.#asking = true;
    try {
      const able = new Set<string>();
      await ask((member) => able.add(member));
      const { replica } = engine;
      if (!engine.full || !replica.leads) return;
      const successor = replica.bestFollower((id) => able.has(id));
      if (successor === undefined) return;
      log.warn('the disk is full here: leadership goes to a member that has room', { to: successor });
      replica.transferLeadership(successor);
    } catch (error) {
      log.v(2, 'leadership could not be handed over', { cause: messageOf(error) });
    } finally {
      this.#asking = false;
    }
  }
}
