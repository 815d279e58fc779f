/** Volumes of claims: which directory of this host a claim stands for. Source: pkg/volume/{local,hostpath}. */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume } from 'kubernetes-types/core/v1';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { annotationOf, isBoundToClaim, isFullyBound, PROVISIONED_BY } from '../../../api/volumes/binding.ts';
import { LOCAL_PROVISIONER } from '../../../api/volumes/local.ts';
import { reaches } from '../../../api/volumes/match.ts';
import type { ApiClient } from '../../../client/types.ts';
import { controllerOf } from '../../../core/reconcile/ownership.ts';
import type { VolumeFiles } from '../files-port.ts';
import { prepareHostPath } from './host-path.ts';

/** Undefined: the volume is of no claim. */
export function claimNameOf(pod: Pod, { name, persistentVolumeClaim, ephemeral }: Volume): string | undefined {
  if (persistentVolumeClaim !== undefined) return persistentVolumeClaim.claimName;
  return ephemeral === undefined ? undefined : `${pod.metadata?.name ?? ''}-${name}`;
}

/** The claim is not ready; the message is upstream's, without the prefix of failed mounts. */
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

export interface ClaimDirectory {
  readonly path: string;
  /** The volume's own files: a pod's fsGroup applies. hostPath volumes keep their owners. */
  readonly takesGroup: boolean;
}

export class ClaimVolumes {
  readonly #files: VolumeFiles;
  readonly #node: () => Node | undefined;
  #client: ApiClient | undefined;

  constructor(files: VolumeFiles, node: () => Node | undefined) {
    this.#files = files;
    this.#node = node;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** The directory of the claim's volume, which exists then. Throws a ClaimError while the claim is not ready. */
  async prepare(pod: Pod, volume: Volume, claimName: string): Promise<ClaimDirectory> {
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
    return this.#directory(persistent, name, claim);
  }

  async #directory(volume: PersistentVolume, name: string, claim: PersistentVolumeClaim): Promise<ClaimDirectory> {
    const node = this.#node();
    if (node !== undefined && !reaches(volume, node)) {
      throw new Error(`NodeAffinity check failed for volume "${name}" : no matching NodeSelectorTerms`);
    }
    if (claim.spec?.volumeMode === 'Block') {
      throw new Error('no volume plugin matched: volumes with volumeMode Block are not supported on this node');
    }
    const { local, hostPath } = volume.spec ?? {};
    if (hostPath !== undefined) return { path: await prepareHostPath(hostPath, this.#files), takesGroup: false };
    if (local === undefined) throw new Error('no volume plugin matched: only local and hostPath volumes are supported');
    if (annotationOf(volume, PROVISIONED_BY) === LOCAL_PROVISIONER) await this.#files.makeDirectory(local.path, 0o777);
    if ((await this.#files.kindOf(local.path)) !== 'Directory') throw new Error(`path "${local.path}" does not exist`);
    return { path: local.path, takesGroup: true };
  }

  async #get<T extends KubeObject>(type: ResourceType<T>, name: string, namespace: string | undefined) {
    if (this.#client === undefined) throw new Error(`${type.kind} ${name} cannot be read: there is no API server yet`);
    try {
      return await this.#client.resource(type).get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}
