/** Samples the usage of the node, slices, pods and containers, answers requests, and saves the long series. */
import { type NodeName, toUid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { type CgroupPath, podPath, qosPath, rootComponents } from '../core/cgroups/names.ts';
import { qosClassOf } from '../core/cgroups/resources.ts';
import type { HostUsage } from '../port.ts';
import type { CgroupActivity, CgroupUsage } from '../resources/cgroups.ts';
import type { PodStats } from '../server/stats.ts';
import { type ComponentRates, componentRates, NO_RATES } from './core/component-metrics.ts';
import { decodeHistoryFile, encodeHistoryFile, type HistoryFile, historyFileOf } from './core/history-file.ts';
import { historyAnswer } from './core/history-response.ts';
import { LEVELS, LONG_LEVEL, periodOf, slotOf } from './core/levels.ts';
import { METRICS, type Scope } from './core/metrics.ts';
import { parseHistoryQuery } from './core/query.ts';
import type { Identity } from './core/series.ts';
import { Timeline } from './core/timeline.ts';
import { UsageHistory } from './core/usage-history.ts';
import type { ComponentCounters, HistoryFiles, HistoryHost, HostCounters } from './port.ts';

export interface HistoryDeps {
  readonly host: HistoryHost;
  readonly files: HistoryFiles;
}

export interface RecorderOptions extends HistoryDeps {
  readonly nodeName: NodeName;
  readonly cgroupRoot: string;
  /** Usage of the host, and of each pod and container that runs. */
  readonly measure: () => Promise<{
    readonly host: HostUsage;
    readonly diskUsedBytes: number | undefined;
    readonly pods: readonly PodStats[];
  }>;
  readonly cgroups: {
    usage(path: CgroupPath): Promise<CgroupUsage | undefined>;
    activity(path: CgroupPath): Promise<CgroupActivity>;
  };
  readonly clock: Clock;
  readonly log: Log;
}

const STEP_MS = LEVELS[0].stepMs;
/**
 * Delay of a sample after the start of its slot, so that a timer that fires early does not sample in the previous slot.
 */
const MARGIN_MS = 50;
const HOUR_MS = 3_600_000;
const COMPONENTS_MS = 60_000;
const MAX_FILES = 64;
/** Number of pods that are read before the round yields to other work of the process. */
const TURN_PODS = 10;

type Values = Readonly<Record<string, number | undefined>>;

export class UsageRecorder {
  private readonly options: RecorderOptions;
  private readonly history = new UsageHistory();
  private timeline: Timeline;
  private timer: Timer | undefined;
  private round: Promise<void> = Promise.resolve();
  private savedHour = 0;
  private stopped = false;
  private isShort = false;
  private readonly components = new ComponentSource();

  constructor(options: RecorderOptions) {
    this.options = options;
    this.timeline = new Timeline(options.clock.monotonicMs(), options.clock.nowMs());
  }

  /** Restores the saved series. Damaged files are removed. */
  async start(): Promise<void> {
    await this.restore();
    this.savedHour = Math.floor(this.timeline.nowMs / HOUR_MS);
    this.arm();
  }

  /** Stops sampling and saves the samples of the level with the longest retention. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.round;
    this.history.advance(this.now());
    this.history.finish();
    await this.save(slotOf(LONG_LEVEL, this.timeline.nowMs));
  }

  /**
   * JSON text of `/metrics/history` in pieces. Throws HistoryQueryError for invalid parameters before the first piece.
   */
  answer(query: Iterable<readonly [string, string]>): Generator<string> {
    const nowMs = this.now();
    const { timeline, history, options } = this;
    return historyAnswer(parseHistoryQuery(query, timeline.wallMs), options.nodeName, history.all(), {
      nowMs,
      runStartMs: timeline.startMs,
      segments: timeline.segments(),
      completeUntil: (level) => history.completeUntil(level),
    });
  }

  private now(): number {
    const { clock } = this.options;
    return this.timeline.advance(clock.monotonicMs(), clock.nowMs());
  }

  private arm(): void {
    if (this.stopped) return;
    const delayMs = STEP_MS - (this.now() % STEP_MS) + MARGIN_MS;
    this.timer = this.options.clock.setTimer(delayMs, () => {
      this.round = this.sample()
        .catch((error: unknown) => this.options.log.warn('usage not sampled', { error: messageOf(error) }))
        .finally(() => this.arm());
    });
  }

  /** Takes one sample of the node, its slices, pods and containers. Public for benchmarks. */
  async sample(): Promise<void> {
    const { host, measure, cgroups, cgroupRoot, clock } = this.options;
    const [counters, measured, rates] = await Promise.all([
      host.counters(),
      measure(),
      this.components.rates(host, clock.monotonicMs()),
    ]);
    const timeMs = this.now();
    this.history.advance(timeMs);
    this.record({ scope: 'node', namespace: '', name: '', container: '' }, 'node', timeMs, {
      ...nodeValues(measured.host, counters, rates),
      diskUsed: measured.diskUsedBytes,
    });
    const root = rootComponents(cgroupRoot);
    for (const path of [qosPath(root, 'Guaranteed'), qosPath(root, 'Burstable'), qosPath(root, 'BestEffort')]) {
      const [usage, activity] = await Promise.all([cgroups.usage(path), cgroups.activity(path)]);
      if (usage !== undefined)
        this.record(
          { scope: 'slice', namespace: '', name: path.slice(root.length).join('/'), container: '' },
          'slice',
          timeMs,
          {
            ...cgroupValues(usage, activity),
          },
        );
    }
    for (const [index, each] of measured.pods.entries()) {
      if (index % TURN_PODS === TURN_PODS - 1) await new Promise((resolve) => setImmediate(resolve));
      await this.recordPod(each, root, counters, timeMs);
    }
    const hour = Math.floor(timeMs / HOUR_MS);
    if (hour === this.savedHour) return;
    this.savedHour = hour;
    await this.save(slotOf(LONG_LEVEL, hour * HOUR_MS - 1));
  }

  private async recordPod(each: PodStats, root: CgroupPath, counters: HostCounters, timeMs: number): Promise<void> {
    const { name = '', namespace = '' } = each.pod.metadata ?? {};
    const uid = toUid(each.pod.metadata?.uid);
    const path = podPath(root, qosClassOf(each.pod), uid);
    const activity = await this.options.cgroups.activity(path);
    const traffic = each.pod.spec?.hostNetwork === true ? undefined : counters.pods.get(each.address ?? '');
    if (each.usage !== undefined)
      this.record({ scope: 'pod', namespace, name, container: '' }, uid, timeMs, {
        ...cgroupValues(each.usage, activity),
        networkReceive: traffic?.receivedBytes,
        networkTransmit: traffic?.sentBytes,
      });
    for (const { status, stats } of each.containers)
      this.record({ scope: 'container', namespace, name, container: status.name }, status.id, timeMs, {
        cpu: stats.cpuUsageCoreNanoSeconds / 1e9,
        memory: stats.memoryWorkingSetBytes,
        throttling: secondsOf(stats.throttledNanoSeconds),
      });
  }

  private record(identity: Identity, incarnation: string, timeMs: number, values: Values): void {
    const list = valuesOf(identity.scope, values);
    const isKept = this.history.record(identity, { values: list, incarnation }, timeMs);
    if (isKept || this.isShort) return;
    this.isShort = true;
    this.options.log.warn('memory limit of the usage history reached', {
      series: this.history.size,
      bytes: this.history.bytes,
    });
  }

  /**
   * Saves the period that contains a slot. An error is only logged, because the period is saved again in the next hour.
   */
  private async save(slot: number): Promise<void> {
    const { files, log } = this.options;
    const period = periodOf(slot);
    const content = historyFileOf(this.history.all(), period, this.timeline.saved());
    if (content.series.length === 0) return;
    try {
      await files.replace(fileName(period), encodeHistoryFile(content));
      for (const name of await files.list())
        if (Number.parseInt(name, 10) <= period - LEVELS[LONG_LEVEL].periods) await files.remove(name);
    } catch (error) {
      log.warn('usage history not saved', { error: messageOf(error) });
    }
  }

  private async restore(): Promise<void> {
    const { files, clock, log } = this.options;
    const found: HistoryFile[] = [];
    const names = await files.list().catch((error: unknown) => {
      log.warn('usage history not read', { error: messageOf(error) });
      return [];
    });
    for (const name of names.slice(-MAX_FILES)) {
      try {
        const content = decodeHistoryFile(await files.read(name));
        if (fileName(content.period) !== name) throw new RangeError('file of another period');
        found.push(content);
      } catch (error) {
        log.warn('history file ignored and removed', { file: name, error: messageOf(error) });
        await files.remove(name).catch((reason: unknown) => log.warn('file not removed', { error: messageOf(reason) }));
      }
    }
    const newest = found.toSorted((left, right) => right.timeline.timeMs - left.timeline.timeMs)[0];
    if (newest === undefined) return;
    this.timeline = new Timeline(clock.monotonicMs(), clock.nowMs(), newest.timeline);
    const timeMs = this.timeline.nowMs;
    this.history.advance(timeMs);
    const current = periodOf(slotOf(LONG_LEVEL, timeMs));
    // Restore the latest periods first, so that the oldest ones are omitted if the memory does not suffice.
    for (const file of found.toSorted((left, right) => right.period - left.period))
      if (file.period > current - LEVELS[LONG_LEVEL].periods && file.period <= current) this.history.restore(file);
  }
}

/**
 * Rates of the API server and the store, which are read less often than other metrics. If a component does not report
 * its counters, the next round reads them again, so that a component that starts or is slow does not lose a whole
 * interval.
 */
class ComponentSource {
  private counters: ComponentCounters | undefined;
  private atMs = Number.NEGATIVE_INFINITY;
  private latest: ComponentRates = NO_RATES;

  async rates(host: HistoryHost, nowMs: number): Promise<ComponentRates> {
    const elapsedMs = nowMs - this.atMs;
    // Tolerate half a step, because rounds do not start at exact intervals.
    if (elapsedMs < COMPONENTS_MS - STEP_MS / 2) return this.latest;
    const counters = await host.components();
    const before = elapsedMs < 3 * COMPONENTS_MS ? this.counters : undefined;
    if (counters.api === undefined || counters.isStoreSilent === true) {
      this.latest = NO_RATES;
      return NO_RATES;
    }
    this.latest = before === undefined ? NO_RATES : componentRates(before, counters, elapsedMs);
    this.counters = counters;
    this.atMs = nowMs;
    return this.latest;
  }
}

const fileName = (period: number): string => `${period}.history`;
const valuesOf = (scope: Scope, values: Values): readonly (number | undefined)[] =>
  METRICS[scope].map(({ name }) => values[name]);
const secondsOf = (nanoSeconds: number | undefined): number | undefined =>
  nanoSeconds === undefined ? undefined : nanoSeconds / 1e9;

function nodeValues(usage: HostUsage, counters: HostCounters, rates: ComponentRates): Values {
  return {
    cpu: usage.cpuUsageNanoSeconds / 1e9,
    memory: usage.memoryWorkingSetBytes,
    diskRead: counters.diskReadBytes,
    diskWrite: counters.diskWrittenBytes,
    networkReceive: counters.network.receivedBytes,
    networkTransmit: counters.network.sentBytes,
    pressureCpu: counters.pressure.cpuSeconds,
    pressureMemory: counters.pressure.memorySeconds,
    pressureIo: counters.pressure.ioSeconds,
    temperature: counters.celsius,
    throttling: counters.isThrottled === undefined ? undefined : Number(counters.isThrottled),
    flashWrites: counters.flashWrittenBytes,
    ...rates,
  };
}

function cgroupValues(usage: CgroupUsage, activity: CgroupActivity): Values {
  return {
    cpu: usage.cpuUsageNanoSeconds / 1e9,
    memory: usage.memoryWorkingSetBytes,
    throttling: secondsOf(usage.throttledNanoSeconds),
    diskRead: activity.diskReadBytes,
    diskWrite: activity.diskWrittenBytes,
    pressureCpu: activity.pressure.cpuSeconds,
    pressureMemory: activity.pressure.memorySeconds,
    pressureIo: activity.pressure.ioSeconds,
  };
}
