/**
 * Observes a process while it is fuzzed: event loop stalls, uncaught errors, changes of prototypes.
 *
 * A stall is measured as CPU time of the event loop's thread between two turns of a timer, because wall time depends on
 * other load. Garbage collection is subtracted and reported separately. The longest wall time is reported, but not
 * evaluated.
 */
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

const TURN_MS = 5;
/** Timer turns are due every 5 ms, so this CPU time between two turns may come from several callbacks. */
const WORTH_NOTING_MS = 40;
const MAX_NOTED = 200;

export interface Stall {
  /** CPU time of the thread without garbage collection, in milliseconds. */
  readonly cpuMs: number;
  readonly gcMs: number;
  readonly wallMs: number;
  /** Start of the stall in milliseconds since the epoch. */
  readonly atMs: number;
  /** Inputs that arrived during the stall and in the turn before. */
  readonly inputs: readonly string[];
}

export interface Observed {
  readonly stalls: readonly Stall[];
  readonly longestWallMs: number;
  readonly longestGcMs: number;
  readonly uncaught: readonly string[];
  readonly prototypes: readonly string[];
}

interface Window {
  readonly from: number;
  readonly to: number;
  readonly cpuMs: number;
  readonly inputs: readonly string[];
}

export class Observer {
  readonly #delay = monitorEventLoopDelay({ resolution: TURN_MS });
  readonly #pauses: { readonly from: number; readonly to: number }[] = [];
  readonly #windows: Window[] = [];
  readonly #uncaught: string[] = [];
  readonly #prototypes = new Map(describePrototypes());
  #arrived: string[] = [];
  #arrivedBefore: string[] = [];

  start(): void {
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        this.#pauses.push({ from: entry.startTime, to: entry.startTime + entry.duration });
    }).observe({ entryTypes: ['gc'] });
    for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
      process.on(event, (error: unknown) => {
        this.#uncaught.push(`${event}: ${error instanceof Error ? error.stack : String(error)}`);
      });
    }
    this.#delay.enable();
    let before = performance.now();
    let used = process.threadCpuUsage();
    setInterval(() => {
      const now = performance.now();
      const usage = process.threadCpuUsage();
      const cpuMs = (usage.user - used.user + usage.system - used.system) / 1000;
      if (cpuMs > WORTH_NOTING_MS && this.#windows.length < MAX_NOTED)
        this.#windows.push({ from: before, to: now, cpuMs, inputs: [...this.#arrivedBefore, ...this.#arrived] });
      before = now;
      used = usage;
      this.#arrivedBefore = this.#arrived;
      this.#arrived = [];
    }, TURN_MS);
  }

  arrived(input: string): void {
    this.#arrived.push(input);
  }

  /** Returns and clears the observations since the last call. */
  take(): Observed {
    const stalls = this.#windows.splice(0).map((window): Stall => {
      let gcMs = 0;
      for (const pause of this.#pauses)
        gcMs += Math.max(0, Math.min(pause.to, window.to) - Math.max(pause.from, window.from));
      return {
        cpuMs: window.cpuMs - gcMs,
        gcMs,
        wallMs: window.to - window.from,
        atMs: performance.timeOrigin + window.from,
        inputs: window.inputs,
      };
    });
    const longestGcMs = this.#pauses.splice(0).reduce((most, pause) => Math.max(most, pause.to - pause.from), 0);
    const longestWallMs = this.#delay.max / 1e6;
    this.#delay.reset();
    return {
      stalls,
      longestWallMs,
      longestGcMs,
      uncaught: this.#uncaught.splice(0),
      prototypes: this.#changedPrototypes(),
    };
  }

  #changedPrototypes(): string[] {
    const now = new Map(describePrototypes());
    return [...now].filter(([name, text]) => this.#prototypes.get(name) !== text).map(([name]) => name);
  }
}

const WATCHED = {
  Object,
  Array,
  Function,
  String,
  Number,
  Boolean,
  Symbol,
  Map,
  Set,
  Promise,
  RegExp,
  Date,
  Error,
  Buffer,
  URLSearchParams,
};

/** All own properties of prototypes that documents could reach, with their attributes. */
function* describePrototypes(): Generator<[string, string]> {
  for (const [name, type] of Object.entries(WATCHED)) {
    for (const [what, object] of [
      [name, type],
      [`${name}.prototype`, type.prototype],
    ] as const) {
      const properties = Reflect.ownKeys(object).map((key) => {
        const property = Reflect.getOwnPropertyDescriptor(object, key);
        return `${String(key)}:${typeof property?.value}:${property?.writable}${property?.enumerable}${property?.configurable}`;
      });
      yield [what, properties.join(' ')];
    }
  }
}
