/**
 * Batches of audit events. A batch is sent when it is full or when its first event has waited long enough; a token
 * bucket limits the batches per second. Source: k8s.io/apiserver/plugin/pkg/audit/buffered.
 */
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { AuditSink } from './port.ts';

export interface BatchSettings {
  readonly bufferEvents: number;
  readonly batchEvents: number;
  readonly batchWaitMs: number;
  /** Limit of batches per second. Undefined: the rate is not limited. */
  readonly throttle?: { readonly perSecond: number; readonly burst: number };
}

interface Delivery {
  /** Returns how many of the first events form a batch, at most `most`. Default: `most`. */
  readonly fit?: (events: readonly string[], most: number) => number;
  readonly atOnce: number;
  /** Delivers a batch. Must not reject. */
  readonly deliver: (events: readonly string[]) => Promise<void>;
}

export class EventBatches {
  readonly #settings: BatchSettings;
  readonly #delivery: Delivery;
  readonly #clock: Clock;
  readonly #underWay = new Set<Promise<void>>();
  #waiting: string[] = [];
  /** Timer while events wait. It fires when the oldest event must be sent. */
  #due: Timer | undefined;
  #isDue = false;
  /** Timer while no token is available. It fires when the next token is available. */
  #pause: Timer | undefined;
  #tokens: number;
  #countedMs: number;
  #closing = false;
  #stopped = false;

  constructor(settings: BatchSettings, delivery: Delivery, clock: Clock) {
    this.#settings = settings;
    this.#delivery = delivery;
    this.#clock = clock;
    this.#tokens = settings.throttle?.burst ?? 0;
    this.#countedMs = clock.monotonicMs();
  }

  /** Queues an event. Returns false if the queue is full and the event is lost. */
  offer(event: string): boolean {
    if (this.#waiting.length >= this.#settings.bufferEvents) return false;
    this.#waiting.push(event);
    this.#advance();
    return true;
  }

  /** Delivers all waiting events immediately. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#advance();
    while (this.#underWay.size > 0) await Promise.race(this.#underWay);
    this.stop();
  }

  /** Stops the timers, so that no further delivery starts. */
  stop(): void {
    this.#stopped = true;
    this.#due?.cancel();
    this.#pause?.cancel();
  }

  #advance(): void {
    const { batchEvents, batchWaitMs } = this.#settings;
    const { atOnce, fit, deliver } = this.#delivery;
    while (!this.#stopped && this.#waiting.length > 0 && this.#underWay.size < atOnce) {
      const full = this.#waiting.length >= batchEvents;
      if (!full && !this.#isDue && !this.#closing) {
        this.#due ??= this.#clock.setTimer(batchWaitMs, () => {
          this.#due = undefined;
          this.#isDue = true;
          this.#advance();
        });
        return;
      }
      if (!this.#closing && !this.#takeToken()) return;
      const most = Math.min(this.#waiting.length, batchEvents);
      const batch = this.#waiting.splice(0, fit?.(this.#waiting, most) ?? most);
      // Events left over from a partial batch are due too. After a full batch, the wait starts again.
      this.#isDue = batch.length < most;
      this.#due?.cancel();
      this.#due = undefined;
      const delivered = deliver(batch).then(() => {
        this.#underWay.delete(delivered);
        this.#advance();
      });
      this.#underWay.add(delivered);
    }
  }

  /** Takes a token. If there is none, returns false and resumes delivery when the next token is available. */
  #takeToken(): boolean {
    const { throttle } = this.#settings;
    if (throttle === undefined) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(throttle.burst, this.#tokens + ((nowMs - this.#countedMs) * throttle.perSecond) / 1000);
    this.#countedMs = nowMs;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return true;
    }
    this.#pause ??= this.#clock.setTimer(Math.ceil(((1 - this.#tokens) * 1000) / throttle.perSecond), () => {
      this.#pause = undefined;
      this.#advance();
    });
    return false;
  }
}

/** Batches the events of a sink that does not batch by itself. Calls `dropped` for each lost event. */
export function batchedSink(sink: AuditSink, settings: BatchSettings, clock: Clock, dropped: () => void): AuditSink {
  const deliver = async (events: readonly string[]): Promise<void> => {
    await Promise.all(events.map((event) => sink.accept(event)));
  };
  const batches = new EventBatches(settings, { atOnce: 1, deliver }, clock);
  return {
    ...(sink.maxEventBytes === undefined ? {} : { maxEventBytes: sink.maxEventBytes }),
    accept(event) {
      if (!batches.offer(event)) dropped();
      return undefined;
    },
    async close() {
      await batches.close();
      await sink.close();
    },
  };
}
