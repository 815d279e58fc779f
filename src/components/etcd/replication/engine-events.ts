import type { DecidedRevision } from '../../../core/mvcc/machine.ts';

/** Calls its listeners in the order in which they were added. */
class Listeners<T> {
  readonly #listeners: Array<(value: T) => void> = [];

  add(listener: (value: T) => void): void {
    this.#listeners.push(listener);
  }

  readonly emit = (value: T): void => {
    for (const listener of this.#listeners) listener(value);
  };
}

/** What the engine reports to the parts that are built on it. */
export class EngineEvents {
  /** Revisions became visible. */
  readonly published = new Listeners<readonly DecidedRevision[]>();
  /** The store was replaced by a snapshot: history may have gaps. The value is the revision visible before. */
  readonly replaced = new Listeners<number>();
  /** Leadership or the term changed. */
  readonly leadership = new Listeners<void>();
  /** The members, their alarms or the log level changed. */
  readonly members = new Listeners<void>();
  /** The disk is full; emitted repeatedly while it is. */
  readonly full = new Listeners<void>();
}
