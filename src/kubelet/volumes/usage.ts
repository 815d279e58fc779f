/**
 * Usage of claim volumes, for statistics and for the condition of a full volume. Source: KEP-1432,
 * pkg/kubelet/server/stats volume_stat_calculator.go.
 */

import type { Pod } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient } from '../../client/types.ts';
import type { Trees } from '../../runtime/directory-removal/port.ts';
import type { KubeletEvents } from '../pods/events.ts';
import type { HostFacts } from '../port.ts';
import type { ClaimVolumes } from './claims.ts';
import type { VolumePlugins } from './plugins.ts';
import type { MountRecord, MountRecords } from './records.ts';
import type { MeasuredUsage } from './types/type.ts';

export interface VolumeUsage extends MeasuredUsage {
  readonly volume: string;
  readonly claim: string;
  readonly atMs: number;
}

export interface VolumeUsagesOptions {
  readonly records: MountRecords;
  readonly claims: ClaimVolumes;
  readonly plugins: Pick<VolumePlugins, 'isMeasured' | 'usage'>;
  readonly host: HostFacts;
  readonly trees: Trees;
  readonly events: KubeletEvents;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly pod: (uid: Uid) => Pod | undefined;
}

const MEASURE_MS = 10_000;
/** Condition of a claim whose requested size is used up. */
const FULL = 'hyperedge.dev/VolumeFull';
const ABNORMAL = 'VolumeConditionAbnormal';

const keyOf = ({ uid, volume }: MountRecord): string => `${uid}/${volume}`;

const driverOf = (record: MountRecord): string => ('driver' in record ? record.driver : record.kind);

export class VolumeUsages {
  readonly #options: VolumeUsagesOptions;
  readonly #known = new Map<string, VolumeUsage>();
  /** Volumes whose condition at the claim is up to date, with `VolumeUsage.abnormal`. */
  readonly #reported = new Map<string, string | undefined>();
  /** Drivers that are measuring their volumes. */
  readonly #measuring = new Set<string>();
  #client: ApiClient | undefined;

  constructor(options: VolumeUsagesOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Last measured usage. */
  ofPod(uid: Uid): VolumeUsage[] {
    return [...this.#known].flatMap(([key, usage]) => (key.startsWith(`${uid}/`) ? [usage] : []));
  }

  /**
   * Measures the volumes. Does not wait for volumes that their driver measures: a driver that does not respond must not
   * delay the other volumes.
   */
  async measure(): Promise<void> {
    const { records, plugins } = this.#options;
    const measured = (await records.all()).filter(({ claim, block }) => claim !== undefined && !block);
    const ofDrivers = measured.filter((record) => plugins.isMeasured(record));
    for (const [driver, volumes] of Map.groupBy(ofDrivers, driverOf)) this.#measureDriver(driver, volumes);
    for (const record of measured) if (!plugins.isMeasured(record)) await this.#update(record);
    const present = new Set(measured.map(keyOf));
    for (const key of this.#known.keys()) {
      if (present.has(key)) continue;
      this.#known.delete(key);
      this.#reported.delete(key);
    }
  }

  /** Has no effect while the driver still measures. */
  #measureDriver(driver: string, volumes: readonly MountRecord[]): void {
    if (this.#measuring.has(driver)) return;
    this.#measuring.add(driver);
    const run = async (): Promise<void> => {
      for (const record of volumes) await this.#update(record);
    };
    void run().finally(() => this.#measuring.delete(driver));
  }

  /** Never rejects. */
  async #update(record: MountRecord): Promise<void> {
    const key = keyOf(record);
    try {
      const usage = await this.#measure(record, record.claim ?? '');
      const before = this.#known.get(key);
      if (usage === undefined) return;
      this.#known.set(key, usage);
      if (usage.abnormal !== before?.abnormal) this.#announce(record, usage);
      if (this.#reported.has(key) && this.#reported.get(key) === usage.abnormal) return;
      if (!this.#options.plugins.isMeasured(record)) await this.#report(usage);
      this.#reported.set(key, usage.abnormal);
    } catch (error) {
      this.#options.log.v(2, 'volume not measured', { volume: record.name, error: messageOf(error) });
    }
  }

  async #measure(record: MountRecord, claim: string): Promise<VolumeUsage | undefined> {
    const { plugins, host, trees, nowMs } = this.#options;
    const common = { volume: record.volume, claim, atMs: nowMs() };
    if (plugins.isMeasured(record)) {
      const measured = await plugins.usage(record);
      return measured === undefined ? undefined : { ...common, ...measured };
    }
    const disk = await host.foreignFileSystem(record.path);
    const whole = {
      capacityBytes: disk.capacityBytes,
      availableBytes: disk.availableBytes,
      inodes: disk.inodes,
      inodesFree: disk.inodesFree,
      inodesUsed: disk.inodes - disk.inodesFree,
    };
    const limit = 'limitBytes' in record ? record.limitBytes : undefined;
    if (limit === undefined) return { ...common, ...whole, usedBytes: disk.capacityBytes - disk.availableBytes };
    const used = await trees.usage([record.path], { unit: 'bytes', timeoutMs: MEASURE_MS });
    const usedBytes = used.get(record.path) ?? 0;
    const availableBytes = Math.max(0, Math.min(limit - usedBytes, disk.availableBytes));
    const isFull = usedBytes >= limit || disk.availableBytes === 0;
    const abnormal = `volume is full: ${usedBytes} of ${limit} bytes are used; delete files or let the claim request more`;
    return { ...common, ...whole, capacityBytes: limit, availableBytes, usedBytes, ...(isFull ? { abnormal } : {}) };
  }

  #announce({ uid, volume }: MountRecord, { abnormal }: VolumeUsage): void {
    const { events, pod } = this.#options;
    const owner = pod(uid);
    if (owner === undefined) return;
    const message = `Volume ${volume}: ${abnormal ?? 'The volume is healthy again'}`;
    if (abnormal === undefined) events.pod(owner, 'Normal', 'VolumeConditionNormal', message);
    else events.pod(owner, 'Warning', ABNORMAL, message);
  }

  /** Sets or removes the condition of the claim. The condition may be one of an earlier kubelet process. */
  async #report({ abnormal, claim }: VolumeUsage): Promise<void> {
    const found = await this.#options.claims.claim(claim);
    if (found === undefined || this.#client === undefined) return;
    const present = found.status?.conditions?.find(({ type }) => type === FULL);
    if (abnormal === undefined && present === undefined) return;
    const lastTransitionTime = present?.lastTransitionTime ?? timestamp(this.#options.nowMs());
    const condition =
      abnormal === undefined
        ? { type: FULL, $patch: 'delete' }
        : { type: FULL, status: 'True', reason: ABNORMAL, message: abnormal, lastTransitionTime };
    const [namespace, name = ''] = claim.split('/');
    await this.#client
      .resource(resources.persistentVolumeClaims)
      .patch(name, namespace, 'strategic', { status: { conditions: [condition] } }, { subresource: 'status' });
  }
}
