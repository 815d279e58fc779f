/**
 * Scrapes the endpoints of this host at an interval and evaluates the rules. All state is in memory and lost at a
 * restart.
 */

import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Clock, Timer } from '../base/time/clock.ts';
import { readingsOf } from './core/exposition.ts';
import { SampleStore } from './core/samples.ts';
import { AlertTracker, type CompiledRule, type Transition } from './core/tracker.ts';
import type { Alert, AlertReport, AlertTarget, TargetState } from './port.ts';

export interface AlertEngineOptions {
  readonly rules: readonly CompiledRule[];
  /** Name of the node, which is the label `instance` of all samples. */
  readonly instance: string;
  readonly onTransition: (transition: Transition) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly intervalMs?: number;
}

export interface AlertEngine {
  /** Scrapes `targets` at the interval until `stop`. */
  start(targets: readonly AlertTarget[]): void;
  /** Scrapes all targets and evaluates all rules once. */
  round(targets: readonly AlertTarget[]): Promise<void>;
  stop(): Promise<void>;
  report(): AlertReport;
  firing(): readonly Alert[];
}

/** Scrape interval. It is short enough for rates over five minutes, and a scrape takes only a few milliseconds. */
const INTERVAL_MS = 30_000;
/** Timeout of a scrape. An API server on a busy small board needs seconds to return its metrics. */
const SCRAPE_MS = 20_000;
/** Maximum number of series. With the ranges of this product's rules, they use about 10 MB. */
const MAX_SERIES = 10_000;

export function createAlertEngine(options: AlertEngineOptions): AlertEngine {
  const { clock, log, rules, intervalMs = INTERVAL_MS } = options;
  const samples = new SampleStore(
    rules.map(({ expression }) => expression),
    MAX_SERIES,
  );
  const tracker = new AlertTracker(rules);
  const stopping = new AbortController();
  const logged = new Map<string, string>();
  let states: readonly TargetState[] = [];
  let evaluatedAtMs: number | undefined;
  let timer: Timer | undefined;
  let current: Promise<void> = Promise.resolve();
  let droppedBefore = 0;

  /** Logs problems of rules. A problem is logged again only if it has changed. */
  function logProblems(problems: ReadonlyMap<string, string>): void {
    for (const [rule, problem] of problems)
      if (logged.get(rule) !== problem) log.error('alert rule not evaluated', { rule, error: problem });
    logged.clear();
    for (const [rule, problem] of problems) logged.set(rule, problem);
    if (samples.dropped > droppedBefore)
      log.warn('alert rules exceed the limit of series; further series dropped', { limit: MAX_SERIES });
    droppedBefore = samples.dropped;
  }

  async function scrape({ job, scrape: read }: AlertTarget): Promise<TargetState> {
    const labels = new Map([
      ['instance', options.instance],
      ['job', job],
    ]);
    const timeout = AbortSignal.timeout(SCRAPE_MS);
    try {
      const text = await read(AbortSignal.any([stopping.signal, timeout]));
      const atMs = clock.monotonicMs();
      samples.record(
        job,
        atMs,
        readingsOf(text, (metric) => samples.isWanted(metric), labels),
      );
      samples.record(`up/${job}`, atMs, [{ metric: 'up', labels, value: 1 }]);
      return { job, up: true };
    } catch (error) {
      const atMs = clock.monotonicMs();
      samples.record(job, atMs, []);
      samples.record(`up/${job}`, atMs, [{ metric: 'up', labels, value: 0 }]);
      return { job, up: false, error: timeout.aborted ? `no answer within ${SCRAPE_MS} ms` : messageOf(error) };
    }
  }

  async function round(targets: readonly AlertTarget[]): Promise<void> {
    const results = await Promise.all(targets.map(scrape));
    if (stopping.signal.aborted) return;
    states = results;
    evaluatedAtMs = clock.nowMs();
    const { transitions, problems } = tracker.update(samples, clock.monotonicMs(), evaluatedAtMs);
    logProblems(problems);
    for (const transition of transitions) {
      const { name, severity, summary, fix } = transition.alert;
      if (transition.to === 'firing') log.warn('alert firing', { alert: name, severity, summary, fix });
      else log.info('alert resolved', { alert: name, severity, summary });
      options.onTransition(transition);
    }
  }

  return {
    round,
    start(targets) {
      const next = (): void => {
        current = round(targets).catch((error: unknown) =>
          log.error('alerts not evaluated', { error: messageOf(error) }),
        );
        void current.then(() => {
          if (!stopping.signal.aborted) timer = clock.setTimer(intervalMs, next);
        });
      };
      next();
    },
    stop: async () => {
      stopping.abort();
      timer?.cancel();
      await current;
    },
    report: () => ({
      ...(evaluatedAtMs === undefined ? {} : { evaluatedAtMs }),
      targets: states,
      alerts: tracker.alerts(clock.monotonicMs(), clock.nowMs()),
    }),
    firing: () => tracker.alerts(clock.monotonicMs(), clock.nowMs()).filter(({ state }) => state === 'firing'),
  };
}
