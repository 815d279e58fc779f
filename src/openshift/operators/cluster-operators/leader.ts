/** Maintains the ClusterOperators and the ClusterVersion on the master that holds the lease of the cluster operator. */

import { ignore, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { Competition } from '../../../client/leases/competition.ts';
import type { ApiClient, EventRecorder, InformerFactory, LeaderElector } from '../../../client/types.ts';
import type { VerifyRelease } from '../../updates/releases-port.ts';
import type { ProbeFacts } from './core/index.ts';
import { Operators } from './operators.ts';
import type { CommitStore, ProbeStore } from './port.ts';
import { Prober } from './prober.ts';
import { Releases } from './releases.ts';
import { Version } from './version.ts';

export interface ClusterOperatorDeps {
  /** Client whose writes fail after the lease is lost. */
  readonly client: ApiClient;
  /** Creates an informer factory for each term of leadership. Other masters keep no local copies. */
  readonly newInformers: () => InformerFactory;
  readonly elector: LeaderElector;
  /** Competition for leases, to which the list of masters is reported while this master leads. */
  readonly competition: Competition;
  readonly recorder: EventRecorder;
  readonly probeStore: ProbeStore;
  readonly commitStore: CommitStore;
  readonly verify: VerifyRelease;
  readonly own: { readonly version: string; readonly kubernetes: string };
  readonly wanted: { readonly storage: boolean; readonly metrics: boolean };
  readonly clock: Clock;
  readonly log: Log;
}

/** Interval of updates without an event. They are required because the age of results changes conditions. */
const TICK_MS = 1_000;
const CALM_TICK_MS = 3_000;
const RETRY_MS = 1_000;
const COALESCE_MS = 50;

/**
 * Maintains the ClusterOperators while this host holds their lease. The returned function stops this and releases the
 * lease.
 */
export function runClusterOperator(deps: ClusterOperatorDeps): () => Promise<void> {
  const ended = deps.elector.run((signal) => lead(deps, signal));
  ended.catch((error: unknown) => deps.log.error('election ended', { error: messageOf(error) }));
  return async () => {
    await deps.elector.stop();
    await ended.catch(ignore('logged above'));
  };
}

/** Returns only after leadership has ended, because returning releases the lease. */
async function lead(deps: ClusterOperatorDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await work(deps, signal);
    } catch (error) {
      if (signal.aborted) return;
      deps.log.error('start failed; retrying', { error: messageOf(error) });
      await new Promise<void>((resolve) => {
        deps.clock.setTimer(RETRY_MS, resolve);
      });
    }
  }
}

async function work(deps: ClusterOperatorDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, client, recorder } = deps;
  const informers = deps.newInformers();
  const { kubernetes } = deps.own;
  const prober = new Prober({ client, informers, probeStore: deps.probeStore, clock, kubernetes, wanted: deps.wanted });
  const operators = new Operators({ client, informers, recorder, clock, log });
  const releases = new Releases({ informers, verify: deps.verify, log });
  const version = new Version({
    client,
    informers,
    releases,
    recorder,
    own: deps.own,
    commitStore: deps.commitStore,
    clock,
    log,
  });
  const alarm = createAlarm(clock, signal);
  const changed = (): void => alarm.ring();
  let unsubscribe: (() => void)[] = [];
  try {
    await informers.startAndSync(signal);
    log.info('started reporting cluster operators');
    operators.start();
    version.start();
    prober.start(changed);
    unsubscribe = [deps.competition.follow(prober.nodeInformer), releases.onChange(changed), version.onChange(changed)];
    while (!signal.aborted) {
      try {
        const facts = prober.facts(version.updatingTo);
        await operators.apply(facts);
        await version.apply(facts, prober.nodes, operators.list());
        await alarm.wait(isCalm(facts) ? CALM_TICK_MS : TICK_MS);
      } catch (error) {
        if (!signal.aborted) log.warn('status not written', { error: messageOf(error) });
        await alarm.wait(RETRY_MS);
      }
    }
  } finally {
    for (const each of unsubscribe) each();
    prober.stop();
    await informers.stop();
  }
}

/** Whether all probes of all hosts succeed. Then no condition changes soon because a failure persists. */
const isCalm = ({ hosts }: ProbeFacts): boolean =>
  hosts.every(({ report }) => report !== undefined && Object.values(report.probes).every((why) => why === ''));

/** Pause that ends early when `ring` is called. A call before the pause starts ends the next pause. */
function createAlarm(clock: Clock, signal: AbortSignal): { ring(): void; wait(ms: number): Promise<void> } {
  let rung = false;
  let wake = (): void => {};
  const ring = (): void => {
    rung = true;
    wake();
  };
  signal.addEventListener('abort', ring, { once: true });
  return {
    ring,
    wait: async (ms) => {
      let timer: Timer | undefined;
      if (!rung) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          timer = clock.setTimer(ms, resolve);
        });
      }
      timer?.cancel();
      rung = false;
      // Wait briefly, so that changes that arrive together are handled once.
      await new Promise<void>((resolve) => {
        clock.setTimer(COALESCE_MS, resolve);
      });
    },
  };
}
