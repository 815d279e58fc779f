import { Listeners } from '../../base/listeners.ts';
import type { DecidedRevision } from '../core/mvcc/machine.ts';

export class EngineEvents {
  /** Revisions became visible. */
  readonly published = new Listeners<readonly DecidedRevision[]>();
  /**
   * The store was replaced by a snapshot, so history may have gaps. The value is the revision that was visible before.
   */
  readonly replaced = new Listeners<number>();
  /** Leadership or the term changed. */
  readonly leadership = new Listeners<void>();
  /** The members, their alarms or the log level changed. */
  readonly members = new Listeners<void>();
  /** The disk is full. Emitted repeatedly while the disk is full. */
  readonly full = new Listeners<void>();
}
