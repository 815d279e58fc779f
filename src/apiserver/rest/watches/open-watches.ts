/**
 * Open watches share one timer and one stop signal. With thousands of idle watches, a timer and a listener for each
 * would need much memory.
 */
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { RequestInfo } from '../../http/request-info.ts';
import type { LoopContext } from '../context.ts';
import { WatchPace } from './watch-pace.ts';

type OpenWatchesContext = Pick<LoopContext, 'clock' | 'stopping'>;

export interface OpenWatch {
  /** Request of the watch, for metrics. */
  readonly info?: RequestInfo;
  /** Time of the next action, in monotonic milliseconds. */
  readonly dueMs: number;
  /** Performs the due action. */
  act(nowMs: number): void;
  end(): void;
}

/** Maximum delay of a due action, so that the watches are checked at most this often. */
const TICK_MS = 100;

export class OpenWatches {
  readonly pace: WatchPace;
  readonly #clock: Clock;
  readonly #watches = new Set<OpenWatch>();
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;

  constructor({ clock, stopping }: OpenWatchesContext) {
    this.#clock = clock;
    this.pace = new WatchPace(clock);
    stopping.addEventListener('abort', () => this.#endAll(), { once: true });
  }

  add(watch: OpenWatch): void {
    this.#watches.add(watch);
    this.#checkBy(watch.dueMs);
  }

  get all(): Iterable<OpenWatch> {
    return this.#watches;
  }

  remove(watch: OpenWatch): void {
    if (!this.#watches.delete(watch) || this.#watches.size > 0) return;
    this.#timer?.cancel();
    this.#timerMs = Number.POSITIVE_INFINITY;
  }

  #checkBy(dueMs: number): void {
    if (dueMs >= this.#timerMs) return;
    this.#timer?.cancel();
    this.#timerMs = dueMs;
    this.#timer = this.#clock.setTimer(Math.max(TICK_MS, dueMs - this.#clock.monotonicMs()), () => this.#check());
  }

  #check(): void {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.monotonicMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const watch of this.#watches) {
      if (watch.dueMs <= nowMs) watch.act(nowMs);
      if (watch.dueMs < nextMs && this.#watches.has(watch)) nextMs = watch.dueMs;
    }
    this.#checkBy(nextMs);
  }

  #endAll(): void {
    for (const watch of [...this.#watches]) watch.end();
  }
}

const ofServers = new WeakMap<object, OpenWatches>();

export function openWatches(context: OpenWatchesContext): OpenWatches {
  let watches = ofServers.get(context);
  if (watches === undefined) {
    watches = new OpenWatches(context);
    ofServers.set(context, watches);
  }
  return watches;
}
