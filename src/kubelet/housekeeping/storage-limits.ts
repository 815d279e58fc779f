/** Evicts pods that exceed their local storage limits. Source: pkg/kubelet/eviction localStorageEviction; KEP-361. */
import type { Container, Pod } from '../../api/generated/core/v1.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { parseBytes } from '../../base/quantity.ts';
import { exceededLimit, type Limit } from '../core/eviction/local-storage.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { PodServices } from '../pods/services.ts';
import { diskUsage, type PodDiskUsage } from './pod-usage.ts';

type StorageLimitServices = Pick<PodServices, 'clock' | 'directories' | 'log' | 'runtime' | 'trees' | 'view'>;

/** Interval between measurements of a pod whose files are counted quickly. */
const PERIOD_MS = 2_000;
/** Measuring uses at most 1/DUTY of one CPU's time. */
const DUTY = 20;
/**
 * Timeout for measuring several pods together. A pod that takes longer is measured alone, so that it does not delay the
 * eviction of other pods.
 */
const QUICK_MS = 1_000;
const SLOW_TIMEOUT_MS = 120_000;

interface Measured {
  /** Time of the next measurement. */
  readonly dueAtMs: number;
  readonly slow: boolean;
}

export class StorageLimits {
  readonly #services: StorageLimitServices;
  readonly #pods: Pick<PodTable, 'isCutOff' | 'workers'>;
  readonly #measured = new Map<Uid, Measured>();
  #slowUnderWay = false;

  constructor(services: StorageLimitServices, pods: Pick<PodTable, 'isCutOff' | 'workers'>) {
    this.#services = services;
    this.#pods = pods;
  }

  /**
   * Measures the pods that are due and evicts those above a limit. Pods with many files are measured one at a time in
   * the background, and the call does not wait for them.
   */
  async enforce(): Promise<void> {
    const limited = this.#pods
      .workers()
      .filter((worker) => !worker.finished && !worker.evicted && isLimited(worker.pod));
    const uids = new Set(limited.map(({ uid }) => uid));
    for (const uid of this.#measured.keys()) if (!uids.has(uid)) this.#measured.delete(uid);
    const nowMs = this.#services.clock.monotonicMs();
    const due = limited.filter(({ uid }) => (this.#measured.get(uid)?.dueAtMs ?? 0) <= nowMs);
    const isSlow = ({ uid }: PodWorker): boolean => this.#measured.get(uid)?.slow === true;
    const [slow] = due.filter(isSlow);
    if (slow !== undefined && !this.#slowUnderWay) {
      this.#slowUnderWay = true;
      void this.#measure([slow], SLOW_TIMEOUT_MS).finally(() => {
        this.#slowUnderWay = false;
      });
    }
    const quick = due.filter((worker) => !isSlow(worker));
    if (quick.length > 0) await this.#measure(quick, QUICK_MS);
  }

  async #measure(workers: readonly PodWorker[], timeoutMs: number): Promise<void> {
    const { clock, log } = this.#services;
    const beganMs = clock.monotonicMs();
    let usage: ReadonlyMap<Uid, PodDiskUsage> = new Map();
    let failed = false;
    try {
      usage = await diskUsage(this.#services, workers, { unit: 'bytes', timeoutMs });
    } catch (error) {
      failed = true;
      log.v(2, 'local storage not measured', { pods: workers.length, error: messageOf(error) });
    }
    const nowMs = clock.monotonicMs();
    const tookMs = nowMs - beganMs;
    for (const worker of workers) {
      const slow = failed || tookMs > QUICK_MS;
      // If several pods were measured together, any of them may be the slow one: measure each of them alone without a
      // pause.
      const pauseMs = failed && timeoutMs === QUICK_MS ? 0 : Math.max(PERIOD_MS, tookMs * DUTY);
      this.#measured.set(worker.uid, { dueAtMs: nowMs + pauseMs, slow });
      const used = usage.get(worker.uid);
      if (used !== undefined) this.#enforceLimits(worker, used);
    }
  }

  #enforceLimits(worker: PodWorker, used: PodDiskUsage): void {
    const { pod } = worker;
    const limits = new Map(containersOf(pod).map((container) => [container.name, storageLimit(container)]));
    const message = exceededLimit({
      volumes: used.volumes.map((volume) => ({ ...volume, limit: volumeLimit(pod, volume.name) })),
      shared: used.shared,
      containers: used.containers.map((container) => ({ ...container, limit: limits.get(container.name) })),
    });
    if (message !== undefined && !this.#pods.isCutOff) worker.evict(0, message);
  }
}

const containersOf = ({ spec }: Pod): readonly Container[] => [
  ...(spec?.initContainers ?? []),
  ...(spec?.containers ?? []),
];

function isLimited(pod: Pod): boolean {
  return (
    pod.spec?.volumes?.some(({ name }) => volumeLimit(pod, name) !== undefined) === true ||
    containersOf(pod).some((container) => storageLimit(container) !== undefined)
  );
}

/** Limit of a volume on disk or in huge pages. The kernel enforces the limit of a volume of medium Memory. */
function volumeLimit({ spec }: Pod, name: string): Limit | undefined {
  const emptyDir = spec?.volumes?.find((volume) => volume.name === name)?.emptyDir;
  return emptyDir === undefined || emptyDir.medium === 'Memory' ? undefined : limitOf(emptyDir.sizeLimit);
}

const storageLimit = ({ resources }: Container): Limit | undefined => limitOf(resources?.limits?.['ephemeral-storage']);

function limitOf(text: string | undefined): Limit | undefined {
  if (text === undefined) return undefined;
  const bytes = parseBytes(text);
  return bytes > 0 ? { bytes, text } : undefined;
}
