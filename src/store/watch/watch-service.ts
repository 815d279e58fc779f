/**
 * `etcdserverpb.Watch`. A watch is either synced and receives revisions as they are published, or behind, because it
 * starts in the past or its client reads slowly. A watch that is behind catches up from history in pieces of whole
 * revisions, as fast as its client reads. So a slow client uses neither memory nor the time of other clients.
 */
import type { Timer } from '../../base/time/clock.ts';
import type { StreamCall, StreamHandler } from '../../wire/grpc/port.ts';
import type { Change, DecidedRevision } from '../core/mvcc/machine.ts';
import { Watchers } from '../core/mvcc/watchers.ts';
import type { Watch, WatchHub, WatchServiceDeps } from './watch.ts';
import { WatchStream } from './watch-stream.ts';

/**
 * Maximum number of watches that are notified in the event loop turn of the publication. If more watches match, the
 * writer receives its response before they are notified.
 */
const AT_ONCE = 64;

export class WatchService implements WatchHub {
  readonly deps: WatchServiceDeps;
  readonly upToDate = new Watchers<Watch>();
  readonly #streams = new Set<WatchStream>();
  /** Events to deliver, in order, before any other response. */
  #held: Array<ReadonlyMap<Watch, readonly Change[]>> = [];
  #timer: Timer | undefined;
  #count = 0;

  constructor(deps: WatchServiceDeps) {
    this.deps = deps;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  get watchCount(): number {
    return this.#count;
  }

  /** Number of watches that are behind. */
  get slowCount(): number {
    let count = 0;
    for (const stream of this.#streams) count += stream.slowCount;
    return count;
  }

  /** Number of events sent since the start. */
  eventCount = 0;

  start(): void {
    this.#timer = this.deps.clock.setTimer(this.deps.progressIntervalMs, () => {
      this.deliverHeld();
      for (const stream of this.#streams) stream.reportPeriodically();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Delivers newly visible revisions to the synced watches. */
  publish(revisions: readonly DecidedRevision[]): void {
    // A revision without changes marks revisions that may have been lost after a client saw them.
    if (revisions.some(({ changes }) => changes.length === 0)) this.resync(0);
    const matched = this.upToDate.match(revisions);
    if (matched.size === 0) return;
    if (this.#held.push(matched) > 1) return;
    // Responses to writers are sent after the first deferral, events after the second.
    if (matched.size > AT_ONCE) this.deps.defer(() => this.deps.defer(() => this.deliverHeld()));
    else this.deliverHeld();
  }

  /**
   * Delivers changes that were held back. Must run before any progress report, after which no earlier change may
   * follow.
   */
  deliverHeld(): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    for (const matched of held) {
      for (const [watch, changes] of matched) {
        // The watch may have fallen behind and caught up from history in the meantime.
        if (watch.upToDate && (changes[0] as Change).version.revision >= watch.next)
          watch.stream.deliver(watch, changes);
      }
    }
  }

  /**
   * Makes every watch catch up from history, because the published revisions may have gaps. `reached`: the revision
   * that synced watches have received, if it is still valid.
   */
  resync(reached: number): void {
    this.deliverHeld();
    for (const stream of this.#streams) stream.resync(reached);
  }

  counted(difference: number): void {
    this.#count += difference;
  }

  readonly handler = (call: StreamCall): StreamHandler => {
    const stream = new WatchStream(this, call);
    this.#streams.add(stream);
    return {
      message: (message) => stream.message(message),
      // As in etcd, the watches continue when the client ends its side of the stream. Only cancelling the call ends
      // them.
      ended: () => {},
      closed: () => {
        stream.close();
        this.#streams.delete(stream);
      },
      drained: () => stream.drained(),
    };
  };
}
