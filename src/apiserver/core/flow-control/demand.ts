/** Seat demand of a priority level over time. Source: KEP-1040, "Dispatching": smoothed seat demand. */

/** Smoothing factor. With an adjustment every ten seconds, the weight of a period is halved in five minutes. */
const SMOOTHING = 0.977;

export interface DemandStatistics {
  readonly highWatermark: number;
  readonly average: number;
  readonly deviation: number;
  readonly smoothed: number;
}

/** Statistics of the demand: seats in use and seats of waiting requests. The demand is a step function of time. */
export class SeatDemand {
  #value = 0;
  #sinceMs: number;
  #startMs: number;
  #integral = 0;
  #squares = 0;
  #max = 0;
  #statistics: DemandStatistics = { highWatermark: 0, average: 0, deviation: 0, smoothed: 0 };

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
    this.#startMs = nowMs;
  }

  get statistics(): DemandStatistics {
    return this.#statistics;
  }

  set(value: number, nowMs: number): void {
    this.#integrate(nowMs);
    this.#value = value;
    if (value > this.#max) this.#max = value;
  }

  #integrate(nowMs: number): void {
    const ms = nowMs - this.#sinceMs;
    if (ms <= 0) return;
    this.#integral += this.#value * ms;
    this.#squares += this.#value * this.#value * ms;
    this.#sinceMs = nowMs;
  }

  /** Ends the current period and starts the next. Returns the statistics after the ended period. */
  settle(nowMs: number): DemandStatistics {
    this.#integrate(nowMs);
    const ms = nowMs - this.#startMs;
    const highWatermark = this.#max;
    if (ms > 0) {
      const average = this.#integral / ms;
      const deviation = Math.sqrt(Math.max(0, this.#squares / ms - average * average));
      const envelope = average + deviation;
      const faded = SMOOTHING * this.#statistics.smoothed + (1 - SMOOTHING) * envelope;
      this.#statistics = { highWatermark, average, deviation, smoothed: Math.max(envelope, faded) };
    } else this.#statistics = { ...this.#statistics, highWatermark };
    this.#startMs = nowMs;
    this.#sinceMs = nowMs;
    this.#integral = 0;
    this.#squares = 0;
    this.#max = this.#value;
    return this.#statistics;
  }
}
