/**
 * Contracts of a volume type. An entry of the table in `index.ts` is a direct type, a recorded type or a claim type.
 * Each `create` declares the dependencies that its type uses.
 */
import type { ImageVolumeSource, PersistentVolume, Pod, Volume } from '../../../api/generated/core/v1.ts';
import type { Log } from '../../../base/log.ts';
import type { Quantity } from '../../../base/quantity.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ImageStatus, Runtime } from '../../../runtime/port.ts';
import type { ExpansionBudget } from '../../pods/containers/expansion.ts';
import type { PodDirectories } from '../../pods/directories.ts';
import type { Mounter } from '../../port.ts';
import type { ForeignFiles, VolumeFiles } from '../../ports/files-port.ts';
import type { ConfigReader } from '../config-objects.ts';
import type { Attachments } from '../csi/attachments.ts';
import type { CsiContext } from '../csi/context.ts';
import type { CsiDrivers } from '../csi/drivers.ts';
import type { CsiStaging } from '../csi/staging.ts';
import type { MountRecord, MountRecords } from '../records.ts';
import type { VolumeRequest } from '../request.ts';
import type { TokenSource } from '../tokens.ts';
import type { VolumeTools } from '../tools-port.ts';

interface CommonType {
  /** Field of the Volume that selects the type. If undefined, the type exists only as a PersistentVolume. */
  readonly source?: string;
  /** Whether containers cannot write to the volume, regardless of their mounts. Default: they can. */
  isReadOnly?(volume: Volume): boolean;
  /**
   * API object that the volume requires, as text with an article (`a secret`). A static pod cannot have such a volume.
   */
  apiObject?(volume: Volume): string | undefined;
}

/** Type that requires only the API server and the host's own files. Its set-up is repeated and needs no record. */
export interface DirectType extends CommonType {
  readonly way: 'direct';
  readonly source: string;
  /** Whether the content may be on a file system outside the kubelet's directories. Default: it is inside. */
  readonly isForeign?: boolean;
  create(host: DirectVolumeHost): DirectVolumes;
}

export interface DirectVolumes {
  /** Idempotent. Updates the content of a volume that exists. */
  setUp(pod: Pod, volume: Volume, context: SetUpContext): Promise<void>;
  pathOf(pod: Pod, volume: Volume): string;
}

/** Values of one set-up of all volumes of a pod. */
export interface SetUpContext {
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  /** Decodes each object once. */
  readonly config: ConfigReader;
  /** Shared budget for all files of the pod. */
  readonly budget: ExpansionBudget;
}

/** Type whose mounts are made by a driver, a host tool or the runtime, and are recorded before the first call. */
export interface RecordedType extends CommonType {
  readonly way: 'recorded';
  /** Fields of a PersistentVolume's spec that select the type. */
  readonly persistentSources: readonly string[];
  /** Kinds of the records that the type writes. */
  readonly records: readonly MountRecord['kind'][];
  /** Whether records must survive a power failure, because a driver or target keeps state. Default: they need not. */
  readonly durable?: boolean;
  create(host: RecordedVolumeHost): RecordedVolumes;
}

export interface RecordedVolumes {
  /** Idempotent. */
  setUp(request: VolumeRequest): Promise<void>;
  /** Rejects while a driver or tool fails. The record is kept until the volume is undone. */
  tearDown(record: MountRecord): Promise<void>;
  /** Whether the mount exists and needs no call. Default: the path is a mount point or a block device. */
  isReady?(record: MountRecord): Promise<boolean>;
  /** Whether the volume must be set up again periodically. Default: never. */
  republishes?(record: MountRecord): boolean;
  /** Usage from the driver. Undefined when it reports none. Default: usage of the file system. */
  usage?(record: MountRecord): Promise<MeasuredUsage | undefined>;
  /** Expands the file system or device on this node to the size of its PersistentVolume. Default: nothing to do. */
  expand?(record: MountRecord, persistent: PersistentVolume, bytes: number): Promise<void>;
}

/** Bytes and inodes of a volume. */
export interface MeasuredUsage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes?: number;
  readonly inodesFree?: number;
  readonly inodesUsed?: number;
  /** Reason why the volume is unhealthy. */
  readonly abnormal?: string;
}

/** Type that names a claim; its PersistentVolume selects the recorded type. */
export interface ClaimType extends CommonType {
  readonly way: 'claim';
  readonly source: string;
  claimName(pod: Pod, volume: Volume): string;
}

export type VolumeType = DirectType | RecordedType | ClaimType;

/** Dependencies that direct types choose from. */
export interface DirectVolumeHost {
  readonly directories: PodDirectories;
  readonly files: VolumeFiles;
  /** File operations on paths outside the kubelet's directories. */
  readonly foreign: ForeignFiles;
  readonly mounts: Mounter;
  readonly tokens: TokenSource;
  readonly clock: Clock;
  readonly allocatable: () => Readonly<Record<string, Quantity>>;
}

/** Dependencies that recorded types choose from. */
export interface RecordedVolumeHost extends Pick<DirectVolumeHost, 'directories' | 'files' | 'foreign' | 'mounts'> {
  readonly records: MountRecords;
  readonly tools: VolumeTools;
  readonly attachments: Attachments;
  readonly drivers: CsiDrivers;
  readonly staging: CsiStaging;
  readonly context: CsiContext;
  readonly runtime: Pick<Runtime, 'mountImage' | 'unmountImage'>;
  /** Returns the image after it is present on this node. */
  readonly pullImage: (pod: Pod, source: ImageVolumeSource) => Promise<ImageStatus>;
  readonly log: Log;
}
