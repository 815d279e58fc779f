/** Evicts pods before the node runs out of resources. Source: pkg/kubelet/eviction/eviction_manager.go. */

import type { Pod } from '../../api/generated/core/v1.ts';
import { podRequests } from '../../api/podspec/scheduling/node-resources.ts';
import { tolerates } from '../../api/podspec/scheduling/tolerations.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { podPath, rootComponents } from '../core/cgroups/names.ts';
import { amountOf, qosClassOf } from '../core/cgroups/resources.ts';
import { mayStart } from '../core/eviction/admit.ts';
import {
  type Assessment,
  assess,
  isHard,
  isWellAboveThresholds,
  NO_PRESSURE,
  type Observations,
} from '../core/eviction/assess.ts';
import { type ContainerUse, EVICTED, evictionMessage, refusalMessage } from '../core/eviction/messages.ts';
import { type Candidate, rankCandidates } from '../core/eviction/ranking.ts';
import {
  type EvictionResource,
  PRESSURE_OF,
  type Pressure,
  RESOURCE_OF,
  type Signal,
  type Threshold,
} from '../core/eviction/thresholds.ts';
import type { Rejection } from '../pods/admission.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { PodServices } from '../pods/services.ts';
import { collectContainers, type ImageCollector } from './garbage-collection.ts';
import { diskUsage, type PodDiskUsage } from './pod-usage.ts';

type EvictionServices = Pick<
  PodServices,
  | 'cgroups'
  | 'clock'
  | 'directories'
  | 'files'
  | 'host'
  | 'hostInfo'
  | 'log'
  | 'runtime'
  | 'settings'
  | 'trees'
  | 'view'
  | 'volumes'
>;

/** Upstream's timeout for the release of an evicted pod's resources. */
const CLEANUP_TIMEOUT_MS = 30_000;
/** Number of checks skipped while usage is far from the thresholds. */
const CALM_CHECKS = 4;
/** Interval between reclaims of images and dead containers while no change is observed. */
const RECLAIM_PERIOD_MS = 10_000;
/**
 * Timeout for measuring all pods together, then for each pod. A pod whose files cannot be counted in time ranks first.
 */
const MEASURE_TIMEOUT_MS = 5_000;
const MEASURED_AT_ONCE = 4;
const MEMORY_PRESSURE_TAINT = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

export interface EvictionDeps {
  readonly services: EvictionServices;
  readonly pods: Pick<PodTable, 'workers' | 'isCritical'>;
  readonly images: ImageCollector;
  readonly onPressures: () => void;
}

export class EvictionManager {
  readonly #deps: EvictionDeps;
  #state = NO_PRESSURE;
  #pressures: readonly Pressure[] = [];
  #observations: Observations = new Map();
  #reclaimedAtMs = Number.NEGATIVE_INFINITY;
  #helpless = false;
  #calmLooks = 0;

  constructor(deps: EvictionDeps) {
    this.#deps = deps;
  }

  get pressures(): readonly Pressure[] {
    return this.#pressures;
  }

  /** Reason for which node pressure prevents the pod from starting; undefined when it may start. */
  rejection(pod: Pod, critical: boolean): Rejection | undefined {
    const arrival = {
      critical,
      bestEffort: qosClassOf(pod) === 'BestEffort',
      toleratesMemoryPressure: (pod.spec?.tolerations ?? []).some((each) => tolerates(each, MEMORY_PRESSURE_TAINT)),
    };
    if (mayStart(arrival, this.#pressures)) return undefined;
    return { reason: EVICTED, message: refusalMessage(this.#pressures) };
  }

  /** Assesses the current state of the node without evicting. */
  async observe(): Promise<Assessment['reclaim']> {
    const { services, onPressures } = this.#deps;
    this.#observations = await observations(services);
    const { state, pressures, reclaim } = assess(
      services.settings.eviction,
      this.#state,
      this.#observations,
      services.clock.monotonicMs(),
    );
    this.#state = state;
    if (pressures.join() !== this.#pressures.join()) {
      services.log.info('pressure conditions of the node changed', { conditions: pressures.join(',') });
      this.#pressures = pressures;
      onPressures();
    }
    return reclaim;
  }

  /**
   * Observes and reclaims scarce resources: images and dead containers first, then one pod. Waits until that pod has
   * ended.
   */
  async synchronize(): Promise<void> {
    const { eviction } = this.#deps.services.settings;
    if (
      this.#pressures.length === 0 &&
      isWellAboveThresholds(eviction, this.#observations) &&
      this.#calmLooks < CALM_CHECKS
    ) {
      this.#calmLooks += 1;
      return;
    }
    this.#calmLooks = 0;
    let reclaim = await this.observe();
    if (reclaim.some(({ signal }) => PRESSURE_OF[signal] === 'DiskPressure') && (await this.#reclaimDisk()))
      reclaim = await this.observe();
    if (reclaim.length === 0) {
      this.#helpless = false;
      return;
    }
    for (const threshold of reclaim) if (await this.#evictOne(threshold)) return;
    if (this.#helpless) return;
    this.#helpless = true;
    this.#deps.services.log.warn('no pod left to evict', { signals: reclaim.map(({ signal }) => signal).join(',') });
  }

  /** Tries to free disk space before pods are evicted. Returns false if no attempt was due. */
  async #reclaimDisk(): Promise<boolean> {
    const { services, pods, images } = this.#deps;
    const nowMs = services.clock.monotonicMs();
    if (nowMs - this.#reclaimedAtMs < RECLAIM_PERIOD_MS) return false;
    this.#reclaimedAtMs = nowMs;
    const ended = pods.workers().filter((worker) => worker.finished);
    try {
      await collectContainers(services, new Set(ended.map(({ uid }) => uid)));
      await images.collectAll();
    } catch (error) {
      services.log.warn('disk space not reclaimed', { error: messageOf(error) });
    }
    return true;
  }

  async #evictOne(threshold: Threshold): Promise<boolean> {
    const { services, pods } = this.#deps;
    const resource = RESOURCE_OF[threshold.signal];
    const workers = new Map(
      pods
        .workers()
        .filter((worker) => !worker.finished && !worker.evicted)
        .map((worker) => [worker.uid, worker]),
    );
    const usage = await measure(services, resource, [...workers.values()]);
    const candidates = [...workers.values()].map(
      (worker): Candidate => ({
        uid: worker.uid,
        priority: worker.pod.spec?.priority ?? 0,
        critical: pods.isCritical(worker),
        requested: requestOf(worker.pod, resource),
        used: usage.get(worker.uid)?.used,
      }),
    );
    const [first] = rankCandidates(resource, candidates);
    const worker = first === undefined ? undefined : workers.get(first.uid);
    if (worker === undefined) return false;
    const message = evictionMessage(
      threshold,
      this.#observations,
      containerUses(worker.pod, resource, usage.get(worker.uid)?.containers ?? []),
    );
    services.log.warn('eviction threshold met', { signal: threshold.signal, pod: worker.pod.metadata?.name });
    worker.evict(graceSeconds(worker, threshold, services.settings.eviction.maxPodGraceSeconds), message);
    await endOf(services, worker);
    // The disk space of the evicted pod is free now. Let the next check remove images that only this pod used.
    this.#reclaimedAtMs = Number.NEGATIVE_INFINITY;
    return true;
  }
}

/** Grace period of the eviction: 0 for a hard threshold. */
function graceSeconds(worker: PodWorker, threshold: Threshold, most: number): number {
  if (isHard(threshold)) return 0;
  return Math.min(most, Number(worker.pod.spec?.terminationGracePeriodSeconds ?? most));
}

async function endOf({ clock }: EvictionServices, worker: PodWorker): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = clock.setTimer(CLEANUP_TIMEOUT_MS, () => late.resolve());
  await Promise.race([worker.ended(), late.promise]);
  timer.cancel();
}

async function observations({ host, hostInfo, settings }: EvictionServices): Promise<Observations> {
  const [usage, nodefs, imagefs] = await Promise.all([
    host.usage(),
    host.fileSystem(settings.paths.volumes),
    host.fileSystem(settings.paths.images),
  ]);
  const observed = new Map<Signal, { available: number; capacity: number }>([
    ['memory.available', { available: usage.memoryAvailableBytes, capacity: hostInfo.memoryBytes }],
    ['nodefs.available', { available: nodefs.availableBytes, capacity: nodefs.capacityBytes }],
    ['imagefs.available', { available: imagefs.availableBytes, capacity: imagefs.capacityBytes }],
  ]);
  // Some file systems have no fixed number of inodes.
  if (nodefs.inodes > 0) observed.set('nodefs.inodesFree', { available: nodefs.inodesFree, capacity: nodefs.inodes });
  if (imagefs.inodes > 0)
    observed.set('imagefs.inodesFree', { available: imagefs.inodesFree, capacity: imagefs.inodes });
  if (usage.maxProcesses > 0)
    observed.set('pid.available', {
      available: usage.maxProcesses - usage.processes,
      capacity: usage.maxProcesses,
    });
  return observed;
}

interface Use {
  readonly used: number;
  readonly containers: readonly { readonly name: string; readonly used: number }[];
}

/** Usage by pod UID. Pods that could not be measured are missing. */
async function measure(
  services: EvictionServices,
  resource: EvictionResource,
  workers: readonly PodWorker[],
): Promise<ReadonlyMap<Uid, Use>> {
  if (resource === 'memory' || resource === 'pids') return measureCgroups(services, resource, workers);
  const options = { unit: resource === 'inodes' ? 'inodes' : 'bytes', timeoutMs: MEASURE_TIMEOUT_MS } as const;
  const use = ({ total, containers }: PodDiskUsage): Use => ({ used: total, containers });
  try {
    return new Map([...(await diskUsage(services, workers, options))].map(([uid, each]) => [uid, use(each)]));
  } catch (error) {
    services.log.v(2, 'cannot measure all pods at once; measuring each pod', { error: messageOf(error) });
  }
  const uses = new Map<Uid, Use>();
  const waiting = [...workers];
  const lane = async (): Promise<void> => {
    for (let worker = waiting.pop(); worker !== undefined; worker = waiting.pop()) {
      const found = await diskUsage(services, [worker], options).catch(() => undefined);
      const each = found?.get(worker.uid);
      if (each !== undefined) uses.set(worker.uid, use(each));
    }
  };
  await Promise.all(Array.from({ length: MEASURED_AT_ONCE }, lane));
  return uses;
}

async function measureCgroups(
  services: EvictionServices,
  resource: 'memory' | 'pids',
  workers: readonly PodWorker[],
): Promise<ReadonlyMap<Uid, Use>> {
  const root = rootComponents(services.settings.cgroupRoot);
  const uses = new Map<Uid, Use>();
  await Promise.all(
    workers.map(async ({ uid, pod }) => {
      const usage = await services.cgroups.usage(podPath(root, qosClassOf(pod), uid)).catch(() => undefined);
      if (usage === undefined) return;
      if (resource === 'pids') {
        uses.set(uid, { used: usage.pids, containers: [] });
        return;
      }
      const running = services.view.get(uid).containers.filter(({ state }) => state === 'running');
      const containers = await Promise.all(
        running.map(async ({ id, name }) => {
          const stats = await services.runtime.containerStats(id).catch(() => undefined);
          return { name, used: stats?.memoryWorkingSetBytes ?? 0 };
        }),
      );
      uses.set(uid, { used: usage.memoryWorkingSetBytes, containers });
    }),
  );
  return uses;
}

function requestOf(pod: Pod, resource: EvictionResource): number {
  return resource === 'memory' || resource === 'ephemeral-storage' ? (podRequests(pod).get(resource) ?? 0) : 0;
}

function containerUses(pod: Pod, resource: EvictionResource, containers: Use['containers']): readonly ContainerUse[] {
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return [];
  const specs = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  return containers.map(({ name, used }) => {
    const spec = specs.find((each) => each.name === name);
    return { name, used, requested: spec === undefined ? 0 : amountOf(spec, 'requests', resource) };
  });
}
