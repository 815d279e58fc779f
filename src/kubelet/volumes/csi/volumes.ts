/**
 * Volumes of CSI drivers on this node: staged once, published for each pod and unstaged after the last pod has ended.
 * Source: pkg/volume/csi csi_mounter.go, csi_attacher.go, csi_block.go.
 */

import { dirname, join } from 'node:path';
import type { CSIPersistentVolumeSource, PersistentVolume } from '../../../api/generated/core/v1.ts';
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import { toUid } from '../../../base/brand.ts';
import { ignore, messageOf } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { PodDirectories } from '../../pods/directories.ts';
import type { Mounter } from '../../port.ts';
import type { ForeignFiles, VolumeFiles } from '../../ports/files-port.ts';
import type { CsiMount, MountRecords } from '../records.ts';
import { claimKeyOf, isBlock, isReadOnly, nameOf, type VolumeRequest } from '../request.ts';
import type { VolumeTools } from '../tools-port.ts';
import type { MeasuredUsage, RecordedVolumes } from '../types/type.ts';
import { updatePeriodMs } from './allocatable.ts';
import { AttachLimitError, type Attachments } from './attachments.ts';
import { capabilityOf, groupOf, isOwnedByGroup } from './capability.ts';
import { type CsiContext, hasTokensInSecrets, podInfoOf } from './context.ts';
import type { CsiDrivers, RegisteredDriver } from './drivers.ts';
import { isFinal } from './port.ts';
import type { CsiStaging } from './staging.ts';

export interface CsiVolumesOptions {
  readonly drivers: CsiDrivers;
  readonly records: MountRecords;
  readonly attachments: Attachments;
  readonly staging: CsiStaging;
  readonly context: CsiContext;
  readonly directories: PodDirectories;
  readonly files: VolumeFiles;
  /** File operations on the content of volumes. */
  readonly foreign: ForeignFiles;
  readonly mounts: Mounter;
  readonly tools: Pick<VolumeTools, 'unmount' | 'removeEmptyDirectory' | 'removeFile'>;
}

/** Error of a driver call. Its message begins as in upstream's events. */
export class CsiStepError extends Error {
  constructor(step: 'MountDevice' | 'SetUp' | 'MapVolume', volume: string, cause: unknown) {
    const operation = step === 'MapVolume' ? 'MapVolume.SetUpDevice' : `MountVolume.${step}`;
    super(`${operation} failed for volume "${volume}" : ${messageOf(cause)}`, { cause });
    this.name = 'CsiStepError';
  }
}

export class CsiVolumes implements RecordedVolumes {
  readonly #options: CsiVolumesOptions;

  constructor(options: CsiVolumesOptions) {
    this.#options = options;
  }

  /** Idempotent. A published volume is kept, unless its driver requires republishing. */
  async setUp(request: VolumeRequest): Promise<void> {
    const known = await this.#options.records.get(toUid(request.pod.metadata?.uid), request.volume.name);
    const isThere = known?.kind === 'csi' && (await this.#isPublished(known));
    if (isThere && !known.republish) return;
    await this.#options.staging.inTurn(sourceOf(request), () => this.#setUp(request, isThere));
  }

  async #setUp(request: VolumeRequest, isThere: boolean): Promise<void> {
    const { drivers, records, attachments, directories } = this.#options;
    const source = sourceOf(request);
    const step = isBlock(request) ? 'MapVolume' : 'MountDevice';
    const fail = (cause: unknown): CsiStepError => new CsiStepError(step, nameOf(request), cause);
    let driver: RegisteredDriver;
    try {
      driver = drivers.get(source.driver);
    } catch (error) {
      const what = 'kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: ';
      throw fail(`${what}${messageOf(error)}`);
    }
    const object = await drivers.object(source.driver);
    checkLifecycle(object, request);
    const attachable = request.persistent !== undefined && object?.spec.attachRequired !== false;
    const staging = request.persistent !== undefined && driver.capabilities.has('STAGE_UNSTAGE_VOLUME');
    const record: CsiMount = {
      kind: 'csi',
      uid: toUid(request.pod.metadata?.uid),
      volume: request.volume.name,
      name: nameOf(request),
      block: isBlock(request),
      ...claimOf(request),
      driver: source.driver,
      volumeId: source.volumeId,
      staging: staging ? this.#stagingPath(request, source) : '',
      ...this.#targetOf(request),
      attachable,
      republish: object?.spec.requiresRepublish === true && !isBlock(request),
    };
    const before = await records.get(record.uid, record.volume);
    await records.put(record);
    // The driver no longer requires attachment, so the controller may detach the volume.
    if (before?.kind === 'csi' && before.attachable && !attachable) this.#options.staging.reportSoon();
    let publishContext: Readonly<Record<string, string>> = {};
    if (attachable) {
      await attachments.report();
      publishContext = await this.#attached(record, object);
    }
    const shared = {
      volumeId: source.volumeId,
      publishContext,
      stagingPath: record.staging === '' ? '' : directories.asDriversKnow(record.staging),
      capability: capabilityOf(request, driver.capabilities),
      volumeContext: source.csi?.volumeAttributes ?? request.volume.csi?.volumeAttributes ?? {},
    };
    if (staging && !isThere) {
      try {
        await this.#options.files.makeDirectory(record.block ? dirname(record.staging) : record.staging, 0o750);
        if (record.block) await this.#options.files.makeDirectory(record.staging, 0o750);
        const secrets = await this.#options.context.secretOf(source.csi?.nodeStageSecretRef);
        await this.#options.staging.stage(record, record.uid, () => driver.node.stage({ ...shared, secrets }));
      } catch (error) {
        // After a final error the driver is not staging in the background, so there is nothing to undo.
        if (isFinal(error)) await records.put({ ...record, staging: '' });
        throw fail(error);
      }
    }
    await this.#publish(request, record, driver, object, shared, isThere);
  }

  /** When the node has no room for the volume, refreshes the driver's limit, which may have changed. */
  async #attached(record: CsiMount, object: CSIDriver | undefined): ReturnType<Attachments['wait']> {
    try {
      return await this.#options.attachments.wait(record);
    } catch (error) {
      if (!(error instanceof AttachLimitError)) throw error;
      if (updatePeriodMs(object) === undefined) throw error.cause;
      await this.#options.drivers
        .refresh(record.driver)
        .catch(ignore('the attach error is reported, and the next attempt refreshes again'));
      throw error;
    }
  }

  async #publish(
    request: VolumeRequest,
    record: CsiMount,
    driver: RegisteredDriver,
    object: CSIDriver | undefined,
    shared: Omit<Parameters<RegisteredDriver['node']['stage']>[0], 'secrets'>,
    isThere: boolean,
  ): Promise<void> {
    const { files, foreign, directories, context } = this.#options;
    const { pod } = request;
    try {
      await files.makeDirectory(dirname(record.target), 0o750);
      const tokens = await context.tokens(pod, object);
      const inSecrets = hasTokensInSecrets(object);
      await driver.node.publish({
        ...shared,
        targetPath: directories.asDriversKnow(record.target),
        readOnly: isReadOnly(request) || request.persistent?.spec?.csi?.readOnly === true,
        secrets: { ...(await context.publishSecrets(pod, request)), ...(inSecrets ? tokens : {}) },
        volumeContext: {
          ...shared.volumeContext,
          ...(object?.spec.podInfoOnMount === true ? podInfoOf(pod, request.persistent === undefined) : {}),
          ...(inSecrets ? {} : tokens),
        },
      });
      const group = groupOf(pod);
      if (!isThere && group !== undefined && !record.block && isOwnedByGroup(request, driver.capabilities, object)) {
        await foreign.ownByGroup(record.path, group, pod.spec?.securityContext?.fsGroupChangePolicy);
      }
    } catch (error) {
      throw new CsiStepError(record.block ? 'MapVolume' : 'SetUp', record.name, error);
    }
  }

  /**
   * Rejects while the driver fails to unpublish. The record is kept, and the next call continues from there. The volume
   * is unstaged later.
   */
  async tearDown(record: CsiMount): Promise<void> {
    const { drivers, directories, records, files, tools, staging, attachments } = this.#options;
    await staging.inTurn(record, async () => {
      const driver = drivers.get(record.driver);
      await driver.node.unpublish(record.volumeId, directories.asDriversKnow(record.target));
      await tools.unmount(record.target);
      if ((await files.kindOf(record.target)) === 'Directory') await tools.removeEmptyDirectory(record.target);
      else await tools.removeFile(record.target);
      await tools.removeEmptyDirectory(dirname(record.target));
      await records.remove(record);
    });
    attachments.forget(record);
    if (record.staging !== '') await staging.released(record.staging);
    if (record.attachable) staging.reportSoon();
  }

  /** Expands the file system on this node, if the driver supports it. */
  async expand(record: CsiMount, persistent: PersistentVolume, bytes: number): Promise<void> {
    const { drivers, context, directories } = this.#options;
    const driver = drivers.get(record.driver);
    if (!driver.capabilities.has('EXPAND_VOLUME')) return;
    const secrets = await context.secretOf(persistent.spec?.csi?.nodeExpandSecretRef);
    await this.#options.staging.inTurn(record, () =>
      driver.node.expand({
        volumeId: record.volumeId,
        volumePath: directories.asDriversKnow(record.target),
        stagingPath: record.staging === '' ? '' : directories.asDriversKnow(record.staging),
        requiredBytes: bytes,
        capability: capabilityOf({ persistent }, driver.capabilities),
        secrets,
      }),
    );
  }

  republishes({ republish }: CsiMount): boolean {
    return republish;
  }

  /** Returns undefined when the driver reports no statistics. */
  async usage(record: CsiMount): Promise<MeasuredUsage | undefined> {
    const { drivers, directories } = this.#options;
    const driver = drivers.get(record.driver);
    if (!driver.capabilities.has('GET_VOLUME_STATS')) return undefined;
    const staging = record.staging === '' ? '' : directories.asDriversKnow(record.staging);
    const stats = await driver.node.stats(record.volumeId, directories.asDriversKnow(record.target), staging);
    const bytes = stats.usage.find(({ unit }) => unit === 'bytes');
    const inodes = stats.usage.find(({ unit }) => unit === 'inodes');
    if (bytes === undefined) return undefined;
    return {
      capacityBytes: bytes.total,
      availableBytes: bytes.available,
      usedBytes: bytes.used,
      ...(inodes === undefined ? {} : { inodes: inodes.total, inodesFree: inodes.available, inodesUsed: inodes.used }),
      ...(stats.abnormal === undefined ? {} : { abnormal: stats.abnormal }),
    };
  }

  async #isPublished({ block, path }: CsiMount): Promise<boolean> {
    const { foreign, mounts } = this.#options;
    return block ? (await foreign.kindOf(path)) === 'BlockDevice' : mounts.isMountPoint(path);
  }

  #stagingPath(request: VolumeRequest, { driver, volumeId }: CsiSource): string {
    const { directories } = this.#options;
    return isBlock(request)
      ? directories.csiDevice('staging', nameOf(request))
      : directories.csiStaging(driver, sha256Hex(volumeId));
  }

  #targetOf(request: VolumeRequest): Pick<CsiMount, 'target' | 'path'> {
    const { directories } = this.#options;
    const uid = toUid(request.pod.metadata?.uid);
    const target = isBlock(request)
      ? join(directories.csiDevice('publish', nameOf(request)), uid)
      : join(directories.volume(uid, 'csi', nameOf(request)), 'mount');
    return { target, path: target };
  }
}

interface CsiSource {
  readonly driver: string;
  readonly volumeId: string;
  /** Source of a PersistentVolume. */
  readonly csi: CSIPersistentVolumeSource | undefined;
}

/** The handle of an inline volume is derived from its pod, as upstream does, so it is the same at each attempt. */
function sourceOf({ pod, volume, persistent }: VolumeRequest): CsiSource {
  const csi = persistent?.spec?.csi;
  if (csi !== undefined) return { driver: csi.driver, volumeId: csi.volumeHandle, csi };
  const { namespace = '', uid = '' } = pod.metadata ?? {};
  return {
    driver: volume.csi?.driver ?? '',
    volumeId: `csi-${sha256Hex(`${volume.name}${namespace}${uid}`)}`,
    csi: undefined,
  };
}

const claimOf = (request: VolumeRequest): { readonly claim?: string } => {
  const claim = claimKeyOf(request);
  return claim === undefined ? {} : { claim };
};

function checkLifecycle(object: CSIDriver | undefined, { persistent, volume }: VolumeRequest): void {
  const mode = persistent === undefined ? 'Ephemeral' : 'Persistent';
  const modes = object?.spec.volumeLifecycleModes ?? ['Persistent'];
  if (modes.includes(mode)) return;
  const name = persistent?.spec?.csi?.driver ?? volume.csi?.driver ?? '';
  throw new Error(`volume mode "${mode}" not supported by driver ${name} (only supports ${JSON.stringify(modes)})`);
}
