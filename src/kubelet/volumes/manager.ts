import type { Container, Pod, Volume, VolumeMount } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/types.ts';
import type { ContainerConfig, Mount, RuntimeFeatures } from '../../runtime/port.ts';
import { isRecursivelyReadOnly } from '../core/pod-plan/volume-mounts.ts';
import { ExpansionBudget, expand, MAX_PATH_BYTES, MAX_VOLUME_BYTES } from '../pods/containers/expansion.ts';
import type { ForeignFiles } from '../ports/files-port.ts';
import { ClaimError } from './claims.ts';
import { type ConfigReader, decodingOnce } from './config-objects.ts';
import { AttachLimitError } from './csi/attachments.ts';
import { CsiStepError } from './csi/volumes.ts';
import type { VolumePlugins } from './plugins.ts';
import { typeOf, unsupportedSource } from './types/index.ts';
import type { DirectType, DirectVolumeHost, DirectVolumes, SetUpContext } from './types/type.ts';

/** Error for a volume that could not be set up. Its message becomes the message of the FailedMount event. */
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

export interface VolumeManagerOptions extends DirectVolumeHost {
  readonly config: ConfigReader;
  readonly plugins: VolumePlugins;
  readonly features: RuntimeFeatures;
}

/** Sets up, updates and tears down the volumes of pods. Source: pkg/kubelet/volumemanager and pkg/volume. */
export class VolumeManager {
  private readonly options: VolumeManagerOptions;
  private readonly directVolumes = new Map<DirectType, DirectVolumes>();

  constructor(options: VolumeManagerOptions) {
    this.options = options;
  }

  connect(client: ApiClient): void {
    this.options.plugins.connect(client);
  }

  /** Idempotent. Also updates the content of projected volumes. A failing volume does not block the other volumes. */
  async setUp(pod: Pod, addresses: PodAddresses): Promise<void> {
    const context: SetUpContext = {
      ...addresses,
      config: decodingOnce(this.options.config),
      budget: new ExpansionBudget('config map, secret, downward API and projected volumes', MAX_VOLUME_BYTES),
    };
    const failures = new Map<Volume, VolumeError>();
    const setUp = async (volume: Volume): Promise<void> => {
      try {
        await this.setUpVolume(pod, volume, context);
      } catch (error) {
        failures.set(volume, new VolumeError(volume.name, error));
      }
    };
    const volumes = pod.spec?.volumes ?? [];
    const direct = Promise.all(volumes.filter((volume) => !isRecorded(volume)).map(setUp));
    // Sequential, because two claims may lead to the same volume.
    for (const volume of volumes.filter(isRecorded)) await setUp(volume);
    await direct;
    // Checks end in any order. The event names the first failed volume in the pod's order.
    const first = volumes.find((volume) => failures.has(volume));
    const failure = first === undefined ? undefined : failures.get(first);
    if (failure !== undefined) throw failure;
  }

  /** Whether the pod's volumes need only the API server: no driver, tool, claim or registry. */
  areImmediate({ spec }: Pod): boolean {
    return spec?.volumes?.some(isRecorded) !== true;
  }

  private async setUpVolume(pod: Pod, volume: Volume, context: SetUpContext): Promise<void> {
    const type = typeOf(volume);
    if (type === undefined) {
      throw unsupportedSource(Object.keys(volume).find((field) => field !== 'name') ?? 'unknown');
    }
    if (type.way !== 'direct') await this.options.plugins.setUp(pod, volume);
    else await this.direct(type).setUp(pod, volume, context);
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
        hostPath = this.options.directories.subPath(toUid(pod.metadata?.uid), mount.name, container.name, index);
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
        readOnly: mount.readOnly === true || typeOf(volume)?.isReadOnly?.(volume) === true,
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
  republishInMs(uid: Uid): number | undefined {
    return this.options.plugins.republishes(uid) ? REPUBLISH_MS : undefined;
  }

  /** Block devices of the container. Throws like `mountsOf`. */
  devicesOf(pod: Pod, container: Container): ContainerConfig['devices'] {
    return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
      const volume = pod.spec?.volumes?.find((each) => each.name === name);
      const record = this.options.plugins.records.known(toUid(pod.metadata?.uid), name);
      if (record?.block !== true || record.path === '') {
        throw new Error(`cannot find volume "${name}" to pass into container "${container.name}"`);
      }
      const isReadOnly = volume !== undefined && typeOf(volume)?.isReadOnly?.(volume) === true;
      return { hostPath: record.path, containerPath: devicePath, permissions: isReadOnly ? 'r' : 'mrw' };
    });
  }

  /**
   * Unmounts all volumes of the pod. The files are removed with the pod's directory. `keepsDrivers`: mounts of drivers
   * and tools are kept, because the pod will start again.
   */
  async tearDown(uid: Uid, keepsDrivers = false): Promise<void> {
    if (!keepsDrivers) await this.options.plugins.tearDown(uid);
    await this.options.mounts.unmountTree(this.options.directories.pod(uid));
  }

  private filesOf(volume: Volume): ForeignFiles {
    const { files, foreign } = this.options;
    const type = typeOf(volume);
    return isRecorded(volume) || (type?.way === 'direct' && type.isForeign === true) ? foreign : files;
  }

  private pathOf(pod: Pod, volume: Volume): string {
    const type = typeOf(volume);
    if (type?.way === 'direct') return this.direct(type).pathOf(pod, volume);
    const uid = toUid(pod.metadata?.uid);
    const record = this.options.plugins.records.known(uid, volume.name);
    if (record !== undefined) return record.path;
    if (type?.way === 'claim') return this.options.directories.volume(uid, CLAIM_PLUGIN, volume.name);
    throw new Error(`volume "${volume.name}" is of a kind that is not supported`);
  }

  private direct(type: DirectType): DirectVolumes {
    const volumes = this.directVolumes.get(type) ?? type.create(this.options);
    this.directVolumes.set(type, volumes);
    return volumes;
  }
}

/** Whether a driver, tool, claim or registry provides the volume. */
function isRecorded(volume: Volume): boolean {
  const type = typeOf(volume);
  return type !== undefined && type.way !== 'direct';
}

/** Upstream's interval for calling drivers with `requiresRepublish` again. */
const REPUBLISH_MS = 60_000;
/** Directory of claims that were not set up, below the pod's volumes. */
const CLAIM_PLUGIN = 'local-volume';

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
