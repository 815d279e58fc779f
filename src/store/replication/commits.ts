import { CodedError } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { LogBatch, StoreLog } from '../disk/port.ts';

export interface CommitsDeps {
  readonly storage: Pick<StoreLog, 'commit'>;
  readonly clock: Clock;
  /** Called when the disk is full, or its reserved space has been used. */
  readonly onFull: () => void;
  /** Called with the duration of a disk commit in milliseconds. */
  readonly onWritten: (ms: number) => void;
  /** Whether the store is stopping, which ends the wait for free space. */
  readonly stopping: () => boolean;
}

const SPACE_RETRY_MS = 250;
/** Weight of the newest commit in the smoothed duration. */
const NEWEST_SHARE = 0.1;

/** Commits batches to the durable log and measures the disk. */
export class Commits {
  readonly #deps: CommitsDeps;
  #writeMs = 0;
  #writes = 0;
  #lacksRoom = false;

  constructor(deps: CommitsDeps) {
    this.#deps = deps;
  }

  /** Smoothed duration of recent commits, in milliseconds. */
  get writeMs(): number {
    return this.#writeMs;
  }

  get writes(): number {
    return this.#writes;
  }

  /** Whether the commit in progress waits for free space. */
  get lacksRoom(): boolean {
    return this.#lacksRoom;
  }

  /**
   * Retries until the disk has space, because entries acknowledged to raft are never dropped. Throws the errors of the
   * log.
   */
  async commit(batch: LogBatch): Promise<void> {
    const { storage, clock, onFull, onWritten, stopping } = this.#deps;
    for (;;) {
      const began = clock.monotonicMs();
      try {
        const { full } = await storage.commit(batch);
        const took = clock.monotonicMs() - began;
        this.#writeMs += (took - this.#writeMs) * NEWEST_SHARE;
        this.#writes += 1;
        onWritten(took);
        this.#lacksRoom = false;
        if (full) onFull();
        return;
      } catch (error) {
        if (!(error instanceof CodedError && error.code === 'no-space') || stopping()) throw error;
        this.#lacksRoom = true;
        onFull();
        await new Promise<void>((resolve) => clock.setTimer(SPACE_RETRY_MS, resolve));
      }
    }
  }
}
