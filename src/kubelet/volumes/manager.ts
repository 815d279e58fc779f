import type { Container, Pod, Volume, VolumeMount } from '../../api/generated/core/v1.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { parseBytes, type Quantity } from '../../base/quantity.ts';
import type { ApiClient } from '../../client/types.ts';
import type { ContainerConfig, Mount, RuntimeFeatures } from '../../runtime/port.ts';
import { podAmount } from '../core/cgroups/resources.ts';
import { isRecursivelyReadOnly } from '../core/pod-plan/volume-mounts.ts';
import type { ForeignFiles, VolumeFiles } from '../files-port.ts';
import { ExpansionBudget, expand, MAX_PATH_BYTES, MAX_VOLUME_BYTES } from '../pods/containers/expansion.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { Mounter } from '../port.ts';
import { ClaimError } from './claims.ts';
import { type ConfigReader, decodingOnce } from './config-objects.ts';
import { AttachLimitError } from './csi/attachments.ts';
import { CsiStepError } from './csi/volumes.ts';
import { prepareHostPath } from './host-path.ts';
import { imageSourceOf } from './image-volumes.ts';
import type { VolumePlugins } from './plugins.ts';
import { type PayloadInput, volumePayload } from './sources.ts';
import type { TokenSource } from './tokens.ts';

/** A volume could not be set up. The message is that of the FailedMount event. */
export class VolumeError extends Error {
  constructor(volume: string, cause: unknown) {
    const isWhole = [ClaimError, CsiStepError, AttachLimitError].some((kind) => cause instanceof kind);
    super(isWhole ? messageOf(cause) : `MountVolume.SetUp failed for volume "${volume}" : ${messageOf(cause)}`, {
      cause,
    });
    this.name = 'VolumeError';
  }

  /** Whether the node has no capacity for the volume, so the pod should be re-created on another node. */
  get exceedsAttachLimit(): boolean {
    return this.cause instanceof AttachLimitError;
  }
}

export interface PodAddresses {
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
}

export interface VolumeManagerOptions {
  readonly directories: PodDirectories;
  readonly files: VolumeFiles;
  readonly foreign: ForeignFiles;
  readonly mounts: Mounter;
  readonly config: ConfigReader;
  readonly plugins: VolumePlugins;
  readonly tokens: TokenSource;
  readonly clock: Clock;
  readonly allocatable: () => Readonly<Record<string, Quantity>>;
  readonly features: RuntimeFeatures;
}

/** Sets up, updates and tears down the volumes of pods. Source: pkg/kubelet/volumemanager and pkg/volume. */
export class VolumeManager {
  private readonly options: VolumeManagerOptions;
  constructor(options: VolumeManagerOptions) {
    this.options = options;
  }

  connect(client: ApiClient): void {
    this.options.plugins.connect(client);
  }

  /** Idempotent. Also updates the content of projected volumes. A failing volume does not block the other volumes. */
  async setUp(pod: Pod, addresses: PodAddresses): Promise<void> {
    const shared = {
      config: decodingOnce(this.options.config),
      budget: new ExpansionBudget('config map, secret, downward API and projected volumes', MAX_VOLUME_BYTES),
    };
    const failures = new Map<Volume, VolumeError>();
    const setUp = async (volume: Volume): Promise<void> => {
      try {
        await this.setUpVolume(pod, volume, addresses, shared);
      } catch (error) {
        failures.set(volume, new VolumeError(volume.name, error));
      }
    };
    const volumes = pod.spec?.volumes ?? [];
    const isForeign = (volume: Volume): boolean => this.options.plugins.isFor(volume);
    const own = Promise.all(volumes.filter((volume) => !isForeign(volume)).map(setUp));
    // Sequential, because two claims may lead to the same volume.
    for (const volume of volumes.filter(isForeign)) await setUp(volume);
    await own;
    // Checks end in any order. The event names the first failed volume in the pod's order.
    const first = volumes.find((volume) => failures.has(volume));
    const failure = first === undefined ? undefined : failures.get(first);
    if (failure !== undefined) throw failure;
  }

  /** Whether the pod's volumes need only the API server: no driver, tool, claim or registry. */
  areImmediate({ spec }: Pod): boolean {
    return spec?.volumes?.every((volume) => !this.options.plugins.isFor(volume)) !== false;
  }

  private async setUpVolume(
    pod: Pod,
    volume: Volume,
    addresses: PodAddresses,
    shared: Pick<PayloadInput, 'config' | 'budget'>,
  ): Promise<void> {
    const uid = pod.metadata?.uid ?? '';
    if (volume.hostPath !== undefined) {
      await prepareHostPath(volume.hostPath, this.options.foreign);
      return;
    }
    if (this.options.plugins.isFor(volume)) {
      await this.options.plugins.setUp(pod, volume);
      return;
    }
    const plugin = pluginOf(volume);
    if (plugin === undefined) {
      const kind = Object.keys(volume).find((field) => field !== 'name') ?? 'unknown';
      throw new Error(`no volume plugin matched: ${kind} volumes are not supported on this node`);
    }
    const directory = this.options.directories.volume(uid, plugin, volume.name);
    const fsGroup = pod.spec?.securityContext?.fsGroup;
    if (volume.emptyDir !== undefined) {
      const memory = volume.emptyDir.medium === 'Memory';
      if (volume.emptyDir.medium?.startsWith('HugePages') === true) {
        await this.hugePages(directory, hugePageBytes(pod, volume.emptyDir.medium));
        return;
      }
      if (!memory && (volume.emptyDir.medium ?? '') !== '') {
        throw new Error(`emptyDir medium ${volume.emptyDir.medium} is not supported`);
      }
      // A tmpfs keeps its default sticky bit, as upstream's.
      const mode = memory ? 0o1777 : 0o777;
      const made = await this.directory(directory, memory, mode, memory ? memorySize(pod, volume) : undefined);
      // `fsGroupChangePolicy` applies only to volumes that outlive a pod.
      if (made && fsGroup !== undefined) await this.options.files.ownByGroup(directory, fsGroup);
      return;
    }
    const [payload] = await Promise.all([
      volumePayload(
        {
          pod,
          ...addresses,
          ...shared,
          tokens: this.options.tokens,
          allocatable: this.options.allocatable(),
        },
        volume,
      ),
      this.directory(directory, plugin !== 'configmap', 0o755, undefined),
    ]);
    await this.options.files.writeAtomically(directory, payload ?? new Map(), {
      nowMs: this.options.clock.nowMs(),
      ...(fsGroup === undefined ? {} : { gid: fsGroup }),
    });
  }

  /** Mounts of the container. Throws an Error whose message becomes that of CreateContainerConfigError. */
  async mountsOf(
    pod: Pod,
    container: Container,
    env: readonly { readonly name: string; readonly value: string }[],
  ): Promise<Mount[]> {
    const mounts: Mount[] = [];
    const volumes = new Map((pod.spec?.volumes ?? []).map((volume) => [volume.name, volume]));
    const variables = new Map(env.map((variable) => [variable.name, variable.value]));
    for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
      const volume = volumes.get(mount.name);
      const recursiveReadOnly = isRecursivelyReadOnly(mount, this.options.features.recursiveReadOnlyMounts);
      if (volume === undefined)
        throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
      const path = this.pathOf(pod, volume);
      const subPath = subPathOf(mount, variables);
      let hostPath = path;
      if (subPath !== '') {
        hostPath = this.options.directories.subPath(pod.metadata?.uid ?? '', mount.name, container.name, index);
        try {
          await this.filesOf(volume).bindSubPath(path, subPath, hostPath);
        } catch (error) {
          throw new Error(
            `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}": ${messageOf(error)}`,
            { cause: error },
          );
        }
      }
      mounts.push({
        hostPath,
        containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
        readOnly: mount.readOnly === true || alwaysReadOnly(volume),
        ...(recursiveReadOnly ? { recursiveReadOnly } : {}),
        propagation:
          mount.mountPropagation === 'Bidirectional'
            ? 'bidirectional'
            : mount.mountPropagation === 'HostToContainer'
              ? 'hostToContainer'
              : 'private',
      });
    }
    return mounts;
  }

  /** Delay until unchanged volumes of the pod must be set up again. Undefined: never. */
  republishInMs(uid: string): number | undefined {
    return this.options.plugins.republishes(uid) ? REPUBLISH_MS : undefined;
  }

  /** Block devices of the container. Throws like `mountsOf`. */
  devicesOf(pod: Pod, container: Container): ContainerConfig['devices'] {
    return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
      const volume = pod.spec?.volumes?.find((each) => each.name === name);
      const record = this.options.plugins.records.known(pod.metadata?.uid ?? '', name);
      if (record?.block !== true || record.path === '') {
        throw new Error(`cannot find volume "${name}" to pass into container "${container.name}"`);
      }
      const isReadOnly = volume?.persistentVolumeClaim?.readOnly === true;
      return { hostPath: record.path, containerPath: devicePath, permissions: isReadOnly ? 'r' : 'mrw' };
    });
  }

  /**
   * Unmounts all volumes of the pod. The files are removed with the pod's directory. `keepsDrivers`: mounts of drivers
   * and tools are kept, because the pod will start again.
   */
  async tearDown(uid: string, keepsDrivers = false): Promise<void> {
    if (!keepsDrivers) await this.options.plugins.tearDown(uid);
    await this.options.mounts.unmountTree(this.options.directories.pod(uid));
  }

  private filesOf(volume: Volume): ForeignFiles {
    const { files, foreign, plugins } = this.options;
    return volume.hostPath !== undefined || plugins.isFor(volume) ? foreign : files;
  }

  private pathOf(pod: Pod, volume: Volume): string {
    if (volume.hostPath !== undefined) return volume.hostPath.path;
    const record = this.options.plugins.records.known(pod.metadata?.uid ?? '', volume.name);
    if (record !== undefined) return record.path;
    const plugin = pluginOf(volume);
    if (plugin === undefined) throw new Error(`volume "${volume.name}" is of a kind that is not supported`);
    return this.options.directories.volume(pod.metadata?.uid ?? '', plugin, volume.name);
  }

  private async hugePages(path: string, pageSizeBytes: number): Promise<void> {
    const { files, mounts } = this.options;
    await files.makeDirectory(path);
    if (!(await mounts.isMountPoint(path))) await mounts.hugetlbfs(path, { pageSizeBytes, mode: 0o777 });
  }

  /** Returns whether this call created it. */
  private async directory(
    path: string,
    memory: boolean,
    mode: number,
    sizeBytes: number | undefined,
  ): Promise<boolean> {
    const { files, mounts } = this.options;
    if (!memory) return files.makeDirectory(path, mode);
    const isNew = await files.makeDirectory(path);
    if (!isNew && (await mounts.isMountPoint(path))) return false;
    await mounts.tmpfs(path, { mode, ...(sizeBytes === undefined ? {} : { sizeBytes }) });
    return true;
  }
}

/** Upstream's interval for calling drivers with `requiresRepublish` again. */
const REPUBLISH_MS = 60_000;
const CLAIM_PLUGIN = 'local-volume';

function pluginOf(volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return CLAIM_PLUGIN;
  if (volume.emptyDir !== undefined) return 'empty-dir';
  if (volume.configMap !== undefined) return 'configmap';
  if (volume.secret !== undefined) return 'secret';
  if (volume.downwardAPI !== undefined) return 'downward-api';
  if (volume.projected !== undefined) return 'projected';
  return undefined;
}

const alwaysReadOnly = (volume: Volume): boolean =>
  imageSourceOf(volume) !== undefined ||
  volume.persistentVolumeClaim?.readOnly === true ||
  volume.csi?.readOnly === true ||
  volume.nfs?.readOnly === true ||
  volume.iscsi?.readOnly === true ||
  volume.configMap !== undefined ||
  volume.secret !== undefined ||
  volume.downwardAPI !== undefined ||
  volume.projected !== undefined;

function subPathOf(mount: VolumeMount, variables: ReadonlyMap<string, string>): string {
  if (mount.subPathExpr === undefined || mount.subPathExpr === '') return mount.subPath ?? '';
  let missing: string | undefined;
  const lookup = (name: string): string | undefined => {
    const value = variables.get(name);
    if (value === undefined) missing ??= name;
    return value;
  };
  const budget = new ExpansionBudget(`subPathExpr of volumeMount "${mount.name}"`, MAX_PATH_BYTES);
  const path = expand(mount.subPathExpr, lookup, budget);
  if (missing !== undefined) throw new Error(`missing value for "${missing}"`);
  return path;
}

/**
 * Page size of `HugePages-2Mi`, or for `HugePages` the only size that the pod requests. Source: pkg/volume/emptydir.
 */
function hugePageBytes(pod: Pod, medium: string): number {
  const named = /^HugePages-(.+)$/.exec(medium)?.[1];
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  const requested = new Set(
    containers
      .flatMap(({ resources }) => Object.keys({ ...resources?.limits, ...resources?.requests }))
      .flatMap((name) => /^hugepages-(.+)$/.exec(name)?.[1] ?? []),
  );
  if (named !== undefined) {
    if (!requested.has(named)) throw new Error(`medium ${medium}: no container of the pod requests hugepages-${named}`);
    return parseBytes(named);
  }
  const [size, ...others] = requested;
  if (size === undefined) throw new Error('medium HugePages: no container of the pod requests huge pages');
  if (others.length > 0) throw new Error('medium HugePages: the pod requests pages of several sizes; name one of them');
  return parseBytes(size);
}

/** The smaller limit of the volume and the pod. Without either, tmpfs defaults to half of the memory. */
function memorySize(pod: Pod, volume: Volume): number | undefined {
  const limits = [podAmount(pod, 'limits', 'memory')];
  if (volume.emptyDir?.sizeLimit !== undefined) limits.push(parseBytes(volume.emptyDir.sizeLimit));
  const set = limits.filter((limit) => limit > 0);
  return set.length === 0 ? undefined : Math.min(...set);
}
