/** Resolves the claims of pods to their PersistentVolumes. Source: pkg/kubelet/volumemanager/populator. */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { isBoundToClaim, isFullyBound } from '../../api/volumes/binding.ts';
import { isReachableFrom } from '../../api/volumes/match.ts';
import type { ApiClient } from '../../client/types.ts';
import { controllerOf } from '../../controllers/framework/core/ownership.ts';

/** Error for a claim that is not ready. Its message is upstream's, without the prefix of failed mounts. */
export class ClaimError extends Error {
  constructor(pod: Pod, volume: string, claim: string, problem: string) {
    const key = `${pod.metadata?.namespace ?? ''}/${claim}`;
    super(
      `Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[], ` +
        `failed to process volumes=[${volume}]: error processing PVC ${key}: ${problem}`,
    );
    this.name = 'ClaimError';
  }
}

export interface BoundClaim {
  readonly claim: PersistentVolumeClaim;
  readonly persistent: PersistentVolume;
}

export class ClaimVolumes {
  readonly #node: () => Node | undefined;
  #client: ApiClient | undefined;

  constructor(node: () => Node | undefined) {
    this.#node = node;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Returns the PersistentVolume bound to the claim. Throws a ClaimError while the claim is not ready. */
  async resolve(pod: Pod, volume: Volume, claimName: string): Promise<BoundClaim> {
    const fail = (problem: string): ClaimError => new ClaimError(pod, volume.name, claimName, problem);
    const claim = await this.#get(resources.persistentVolumeClaims, claimName, pod.metadata?.namespace);
    if (claim === undefined) {
      throw fail(`failed to fetch PVC from API server: persistentvolumeclaims "${claimName}" not found`);
    }
    if (volume.ephemeral !== undefined && controllerOf(claim)?.uid !== pod.metadata?.uid) {
      throw fail(`PVC was not created for pod ${pod.metadata?.namespace}/${pod.metadata?.name} (pod is not owner)`);
    }
    if (claim.metadata?.deletionTimestamp !== undefined) throw fail('PVC is being deleted');
    if (!isFullyBound(claim) || claim.status?.phase !== 'Bound') throw fail('PVC is not bound');
    const name = claim.spec?.volumeName ?? '';
    const persistent = await this.#get(resources.persistentVolumes, name, undefined);
    if (persistent === undefined) throw fail(`failed to fetch PV "${name}" from API server: not found`);
    if (!isBoundToClaim(persistent, claim)) throw fail(`PV "${name}" is not bound to the PVC`);
    const node = this.#node();
    if (node !== undefined && !isReachableFrom(persistent, node)) {
      throw new Error(`NodeAffinity check failed for volume "${name}" : no matching NodeSelectorTerms`);
    }
    checkUse(pod, volume, persistent);
    return { claim, persistent };
  }

  /** Claim by `namespace/name`. Undefined when it does not exist. */
  claim(key: string): Promise<PersistentVolumeClaim | undefined> {
    const [namespace, name = ''] = key.split('/');
    return this.#get(resources.persistentVolumeClaims, name, namespace);
  }

  persistentVolume(name: string): Promise<PersistentVolume | undefined> {
    return this.#get(resources.persistentVolumes, name, undefined);
  }

  async #get<T extends KubeObject>(type: ResourceType<T>, name: string, namespace: string | undefined) {
    if (this.#client === undefined)
      throw new Error(`${type.kind} ${name} cannot be read: the API server is not available yet`);
    try {
      return await this.#client.resource(type).get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}

/**
 * Rejects a block volume that is mounted and a file system volume that is used as a device. Source:
 * pkg/kubelet/volumemanager/populator.
 */
function checkUse(pod: Pod, { name }: Volume, { spec }: PersistentVolume): void {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const isDevice = containers.some(({ volumeDevices }) => volumeDevices?.some((device) => device.name === name));
  const isMounted = containers.some(({ volumeMounts }) => volumeMounts?.some((mount) => mount.name === name));
  if (spec?.volumeMode === 'Block' && isMounted) {
    throw new Error(`volume ${name} has volumeMode Block, but is specified in volumeMounts`);
  }
  if (spec?.volumeMode !== 'Block' && isDevice) {
    throw new Error(`volume ${name} has volumeMode Filesystem, but is specified in volumeDevices`);
  }
}
