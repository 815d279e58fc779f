/**
 * Stages a volume once for all pods of the node, and unstages it in the background after the last pod. A driver that
 * fails to unstage does not block the deletion of a pod. Source: pkg/kubelet/volumemanager/reconciler,
 * pkg/volume/util/operationexecutor operation_generator.go.
 */
import { dirname } from 'node:path';
import type { Uid } from '../../../base/brand.ts';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { PodDirectories } from '../../pods/directories.ts';
import type { VolumeTools } from '../tools-port.ts';
import type { Attachments } from './attachments.ts';
import type { CsiDrivers } from './drivers.ts';
import { isFinal } from './port.ts';
import { Retries } from './retries.ts';
import type { StagedRecords, StagedVolume } from './staged-records.ts';

export interface CsiStagingOptions {
  readonly drivers: Pick<CsiDrivers, 'get'>;
  readonly staged: StagedRecords;
  readonly attachments: Pick<Attachments, 'refresh'>;
  readonly directories: Pick<PodDirectories, 'asDriversKnow'>;
  readonly tools: Pick<VolumeTools, 'unmount' | 'removeEmptyDirectory'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class CsiStaging {
  readonly #options: CsiStagingOptions;
  readonly #retries: Retries;
  /**
   * Staging paths of volumes that this process has staged. For further pods, the driver is not called again until the
   * volume has been unstaged.
   */
  readonly #mounted = new Set<string>();
  /** Serializes calls per volume, so that an ending pod does not unstage a volume that the next pod stages. */
  readonly #turns = new Turns();

  constructor(options: CsiStagingOptions) {
    this.#options = options;
    this.#retries = new Retries(options.clock, options.log);
  }

  /** Continues unfinished work of an earlier kubelet, or work that waits for a driver that has just registered. */
  async resume(driver?: string): Promise<void> {
    try {
      for (const volume of await this.#options.staged.all()) {
        if (driver === undefined || volume.driver === driver) this.#unstageUnused(volume);
      }
      this.reportSoon();
    } catch (error) {
      this.#options.log.warn('records of staged volumes not read', { error: messageOf(error) });
    }
  }

  stop(): void {
    this.#retries.stop();
  }

  /**
   * Stages the volume for a pod. Must run within `inTurn`. After a final error of `call`, nothing is staged, so the
   * record is removed.
   */
  async stage(volume: StagedVolume, uid: Uid, call: () => Promise<void>): Promise<void> {
    this.#retries.cancel(operationOf(volume));
    if (this.#mounted.has(volume.staging)) return;
    await this.#options.staged.put(volume);
    try {
      await call();
    } catch (error) {
      const { staged } = this.#options;
      if (isFinal(error) && !(await staged.isUsed(volume.staging, uid))) await staged.remove(volume);
      throw error;
    }
    this.#mounted.add(volume.staging);
  }

  /** Unstages a volume that no pod uses any more. Called after the record of a pod that used it was removed. */
  async released(staging: string): Promise<void> {
    const volume = await this.#options.staged.get(staging);
    if (volume !== undefined) this.#unstageUnused(volume);
  }

  /** Publishes `volumesInUse` now, or when the API server responds again. */
  reportSoon(): void {
    this.#retries.start('report volumesInUse', () => this.#options.attachments.refresh());
  }

  async inTurn<T>({ driver, volumeId }: Pick<StagedVolume, 'driver' | 'volumeId'>, work: () => Promise<T>): Promise<T> {
    // Load the old records before this pod's first record is written. Otherwise the volume of that record would count
    // as staged.
    await this.#options.staged.all();
    return this.#turns.inTurn(`${driver}/${volumeId}`, work);
  }

  #unstageUnused(volume: StagedVolume): void {
    this.#retries.start(operationOf(volume), () => this.inTurn(volume, () => this.#unstage(volume)));
  }

  async #unstage(volume: StagedVolume): Promise<void> {
    const { drivers, staged, directories, tools } = this.#options;
    const { driver, volumeId, staging, attachable } = volume;
    if ((await staged.get(staging)) === undefined || (await staged.isUsed(staging))) return;
    const { node } = drivers.get(driver);
    // Forget the volume before the call: also after an error, the next pod must call the driver to stage the volume.
    this.#mounted.delete(staging);
    await node.unstage(volumeId, directories.asDriversKnow(staging));
    await tools.unmount(staging);
    await tools.removeEmptyDirectory(staging);
    await tools.removeEmptyDirectory(dirname(staging));
    await staged.remove(volume);
    if (attachable) this.reportSoon();
  }
}

const operationOf = ({ driver, name }: StagedVolume): string => `unstage ${name} of ${driver}`;
