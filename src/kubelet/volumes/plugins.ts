/** Volumes that need a driver, a tool or a claim, selected by their source or by their record. */
import type { PersistentVolume, Pod, Volume } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { Turns } from '../../base/concurrency/keyed-turns.ts';
import type { ApiClient } from '../../client/types.ts';
import type { Mounter } from '../port.ts';
import type { ForeignFiles } from '../ports/files-port.ts';
import type { ClaimVolumes } from './claims.ts';
import type { MountRecord, MountRecords } from './records.ts';
import type { VolumeRequest } from './request.ts';
import { claimTypeOf, RECORDED_TYPES, typeOf, unsupportedSource } from './types/index.ts';
import { local } from './types/local.ts';
import type { MeasuredUsage, RecordedType, RecordedVolumeHost, RecordedVolumes } from './types/type.ts';

export interface VolumePluginsOptions {
  readonly claims: ClaimVolumes;
  readonly records: MountRecords;
  readonly types: ReadonlyMap<RecordedType, RecordedVolumes>;
  /** Parts other than the claims that need the API client. */
  readonly connected: readonly { connect(client: ApiClient): void }[];
  readonly foreign: Pick<ForeignFiles, 'kindOf'>;
  readonly mounts: Pick<Mounter, 'isMountPoint'>;
}

/** Volumes of each recorded type. */
export const recordedVolumes = (host: RecordedVolumeHost): ReadonlyMap<RecordedType, RecordedVolumes> =>
  new Map(RECORDED_TYPES.map((type) => [type, type.create(host)]));

export class VolumePlugins {
  readonly #options: VolumePluginsOptions;
  /** Serializes set-up by PersistentVolume and pod. */
  readonly #turns = new Turns();

  constructor(options: VolumePluginsOptions) {
    this.#options = options;
  }

  get records(): MountRecords {
    return this.#options.records;
  }

  connect(client: ApiClient): void {
    this.#options.claims.connect(client);
    for (const each of this.#options.connected) each.connect(client);
  }

  /** Idempotent. Volumes of running pods need neither the API server nor a driver after a restart of the kubelet. */
  async setUp(pod: Pod, volume: Volume): Promise<void> {
    const known = await this.#options.records.get(toUid(pod.metadata?.uid), volume.name);
    if (known !== undefined && (await this.#isReady(known))) return;
    const claimName = claimTypeOf(volume)?.claimName(pod, volume);
    const bound = claimName === undefined ? {} : await this.#options.claims.resolve(pod, volume, claimName);
    const request: VolumeRequest = { pod, volume, ...bound };
    const name = request.persistent?.metadata?.name;
    if (name === undefined || !isForOnePod(request)) return this.#setUp(request);
    await this.#turns.inTurn(name, async () => {
      const uid = toUid(pod.metadata?.uid);
      const others = (await this.#options.records.all()).filter((each) => each.claim !== undefined && each.uid !== uid);
      if (others.some((each) => each.name === name)) {
        throw new Error('volume uses the ReadWriteOncePod access mode and is already in use by another pod');
      }
      await this.#setUp(request);
    });
  }

  #setUp(request: VolumeRequest): Promise<void> {
    const type = recordedTypeOf(request);
    const volumes = type === undefined ? undefined : this.#options.types.get(type);
    if (volumes !== undefined) return volumes.setUp(request);
    const { spec } = request.persistent ?? {};
    throw unsupportedSource(Object.keys(spec ?? {}).find((field) => FORMER_SOURCES.has(field)) ?? 'unknown');
  }

  /** Whether the volume of the record is mounted and needs no call of its driver. */
  async #isReady(record: MountRecord): Promise<boolean> {
    const volumes = this.#of(record);
    if (volumes.republishes?.(record) === true) return false;
    if (volumes.isReady !== undefined) return volumes.isReady(record);
    const { foreign, mounts } = this.#options;
    return record.block ? (await foreign.kindOf(record.path)) === 'BlockDevice' : mounts.isMountPoint(record.path);
  }

  /** Whether a driver of the pod requires periodic republishing. */
  republishes(uid: Uid): boolean {
    return this.#options.records.ofPod(uid).some((record) => this.#of(record).republishes?.(record) === true);
  }

  /** Rejects while a driver or tool fails. Volumes that were not undone stay recorded. */
  async tearDown(uid: Uid): Promise<void> {
    for (const record of await this.#options.records.all())
      if (record.uid === uid) await this.#of(record).tearDown(record);
  }

  /** Whether the driver of the volume measures it. */
  isMeasured(record: MountRecord): boolean {
    return this.#of(record).usage !== undefined;
  }

  /** Usage that the driver reports, if it does. */
  async usage(record: MountRecord): Promise<MeasuredUsage | undefined> {
    return this.#of(record).usage?.(record);
  }

  async expand(record: MountRecord, persistent: PersistentVolume, bytes: number): Promise<void> {
    await this.#of(record).expand?.(record, persistent, bytes);
  }

  /** Records of another release with an unknown kind are unmounted like those of local volumes. */
  #of({ kind, volume }: MountRecord): RecordedVolumes {
    const type = RECORDED_TYPES.find(({ records }) => records.includes(kind)) ?? local;
    const volumes = this.#options.types.get(type);
    if (volumes === undefined) throw new Error(`volume ${volume}: kind ${kind} is not supported by this release`);
    return volumes;
  }
}

/** Type that mounts a volume: by the PersistentVolume of its claim, otherwise by its own source. */
function recordedTypeOf({ persistent, volume }: VolumeRequest): RecordedType | undefined {
  if (persistent === undefined) {
    const type = typeOf(volume);
    return type?.way === 'recorded' ? type : undefined;
  }
  const sources = persistent.spec as Readonly<Record<string, unknown>> | undefined;
  return RECORDED_TYPES.find((type) => type.persistentSources.some((source) => sources?.[source] !== undefined));
}

/** Source: pkg/volume/util/operationexecutor operation_generator.go. */
const isForOnePod = ({ persistent }: VolumeRequest): boolean =>
  persistent?.spec?.accessModes?.join() === 'ReadWriteOncePod';

/** Sources of PersistentVolumes that were once in-tree drivers of Kubernetes. */
const FORMER_SOURCES = new Set(
  'awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk glusterfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume'.split(
    ' ',
  ),
);
