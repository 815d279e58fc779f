import type { PersistentVolume, Pod } from '../../../api/generated/core/v1.ts';
import type { Ingress } from '../../../api/generated/networking/v1.ts';
import type { VolumeAttachment } from '../../../api/generated/storage/v1.ts';

/** Kinds of objects that a pod may refer to. Keys are `namespace/name`. */
type ReferenceKind = 'secret' | 'configmap' | 'persistentvolumeclaim' | 'serviceaccount' | 'resourceclaim';

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Fields of a ResourceSlice that the graph uses. */
export interface SliceOfNode {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly nodeName?: string };
}

/** Resource claims of a pod: existing claims in its spec, and generated claims in its status. */
interface PodWithClaims {
  readonly spec?: {
    readonly resourceClaims?: readonly { readonly name?: string; readonly resourceClaimName?: string }[];
  };
  readonly status?: {
    readonly resourceClaimStatuses?: readonly { readonly name?: string; readonly resourceClaimName?: string }[];
    readonly extendedResourceClaimStatus?: { readonly resourceClaimName?: string };
  };
}

interface KnownPod {
  readonly nodeName: string;
  readonly references: ReadonlySet<string>;
}

interface KnownVolume {
  readonly claim: string;
  readonly secrets: readonly string[];
}

/**
 * Graph of the objects that each node may access because of its pods: counted references from nodes to secrets, config
 * maps, claims and service accounts, and through claims to volumes and their secrets. A query takes a few map lookups.
 */
export class NodeGraph {
  readonly #pods = new Map<string, KnownPod>();
  /** `kind:namespace/name` → node → number of its pods that refer to it. */
  readonly #referrers = new Map<string, Map<string, number>>();
  readonly #volumes = new Map<string, KnownVolume>();
  /** Secret → names of the volumes that refer to it. */
  readonly #volumesBySecret = new Map<string, Set<string>>();
  /** Volume attachment → its node. */
  readonly #attachments = new Map<string, string>();
  /** Ingress → its certificate secrets; and secret → number of ingresses that name it. */
  readonly #ingresses = new Map<string, readonly string[]>();
  readonly #ingressSecrets = new Map<string, number>();
  /** Resource slice → its node. */
  readonly #slices = new Map<string, string>();

  setPod(pod: Pod): void {
    const key = `${pod.metadata?.namespace}/${pod.metadata?.name}`;
    const nodeName = pod.spec?.nodeName ?? '';
    if (nodeName === '') {
      this.#deletePod(key);
      return;
    }
    const references = referencesOf(pod);
    const known = this.#pods.get(key);
    if (known !== undefined && known.nodeName === nodeName && sameSet(known.references, references)) return;
    this.#deletePod(key);
    this.#pods.set(key, { nodeName, references });
    for (const reference of references) {
      const nodes = this.#referrers.get(reference) ?? new Map<string, number>();
      this.#referrers.set(reference, nodes);
      nodes.set(nodeName, (nodes.get(nodeName) ?? 0) + 1);
    }
  }

  deletePod(namespace: string, name: string): void {
    this.#deletePod(`${namespace}/${name}`);
  }

  setPersistentVolume(volume: PersistentVolume): void {
    const name = volume.metadata?.name ?? '';
    this.deletePersistentVolume(name);
    const claimRef = volume.spec?.claimRef;
    if (claimRef?.namespace === undefined || claimRef.name === undefined) return;
    const secrets = secretsOfVolume(volume.spec, claimRef.namespace);
    this.#volumes.set(name, { claim: `${claimRef.namespace}/${claimRef.name}`, secrets });
    for (const secret of secrets) {
      const volumes = this.#volumesBySecret.get(secret) ?? new Set<string>();
      this.#volumesBySecret.set(secret, volumes.add(name));
    }
  }

  deletePersistentVolume(name: string): void {
    const known = this.#volumes.get(name);
    if (known === undefined) return;
    this.#volumes.delete(name);
    for (const secret of known.secrets) {
      const volumes = this.#volumesBySecret.get(secret);
      volumes?.delete(name);
      if (volumes?.size === 0) this.#volumesBySecret.delete(secret);
    }
  }

  /** Every node may read the certificate secrets of ingresses, because the router of each host serves them. */
  setIngress({ metadata, spec }: Ingress): void {
    const { namespace = '', name = '' } = metadata ?? {};
    this.deleteIngress(namespace, name);
    const secrets = (spec?.tls ?? []).flatMap((each) => (each.secretName ? [`${namespace}/${each.secretName}`] : []));
    if (secrets.length === 0) return;
    this.#ingresses.set(`${namespace}/${name}`, secrets);
    for (const secret of secrets) this.#ingressSecrets.set(secret, (this.#ingressSecrets.get(secret) ?? 0) + 1);
  }

  deleteIngress(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    for (const secret of this.#ingresses.get(key) ?? []) {
      const count = (this.#ingressSecrets.get(secret) ?? 1) - 1;
      if (count > 0) this.#ingressSecrets.set(secret, count);
      else this.#ingressSecrets.delete(secret);
    }
    this.#ingresses.delete(key);
  }

  setVolumeAttachment(attachment: VolumeAttachment): void {
    this.#attachments.set(attachment.metadata?.name ?? '', attachment.spec?.nodeName ?? '');
  }

  deleteVolumeAttachment(name: string): void {
    this.#attachments.delete(name);
  }

  setResourceSlice(slice: SliceOfNode): void {
    this.#slices.set(slice.metadata?.name ?? '', slice.spec?.nodeName ?? '');
  }

  deleteResourceSlice(name: string): void {
    this.#slices.delete(name);
  }

  nodeOfResourceSlice(name: string): string | undefined {
    return this.#slices.get(name);
  }

  nodeOfVolumeAttachment(name: string): string | undefined {
    return this.#attachments.get(name);
  }

  /** The node of a pod. Undefined for a pod that is unknown or not bound yet. */
  nodeOfPod(namespace: string, name: string): string | undefined {
    return this.#pods.get(`${namespace}/${name}`)?.nodeName;
  }

  refers(nodeName: string, kind: ReferenceKind, namespace: string, name: string): boolean {
    const key = `${namespace}/${name}`;
    if (this.#referrers.get(`${kind}:${key}`)?.has(nodeName) === true) return true;
    if (kind !== 'secret') return false;
    if (this.#ingressSecrets.has(key)) return true;
    for (const volume of this.#volumesBySecret.get(key) ?? []) {
      if (this.refersToVolume(nodeName, volume)) return true;
    }
    return false;
  }

  refersToVolume(nodeName: string, volumeName: string): boolean {
    const volume = this.#volumes.get(volumeName);
    return volume !== undefined && this.#referrers.get(`persistentvolumeclaim:${volume.claim}`)?.has(nodeName) === true;
  }

  #deletePod(key: string): void {
    const known = this.#pods.get(key);
    if (known === undefined) return;
    this.#pods.delete(key);
    for (const reference of known.references) {
      const nodes = this.#referrers.get(reference);
      const count = nodes?.get(known.nodeName) ?? 0;
      if (count > 1) nodes?.set(known.nodeName, count - 1);
      else nodes?.delete(known.nodeName);
      if (nodes?.size === 0) this.#referrers.delete(reference);
    }
  }
}

function referencesOf(pod: Pod): Set<string> {
  const references = new Set<string>();
  // References of a mirror pod are ignored, because the node itself writes the mirror pod.
  if (Object.hasOwn(pod.metadata?.annotations ?? {}, MIRROR_ANNOTATION)) return references;
  const namespace = pod.metadata?.namespace ?? '';
  const add = (kind: ReferenceKind, name: string | undefined): void => {
    if (name !== undefined && name !== '') references.add(`${kind}:${namespace}/${name}`);
  };
  const spec = pod.spec;
  if (spec === undefined) return references;
  add('serviceaccount', spec.serviceAccountName ?? spec.serviceAccount);
  for (const secret of spec.imagePullSecrets ?? []) add('secret', secret.name);
  for (const claim of claimsOf(pod as PodWithClaims)) add('resourceclaim', claim);
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])];
  for (const container of containers) {
    for (const source of container.envFrom ?? []) {
      add('configmap', source.configMapRef?.name);
      add('secret', source.secretRef?.name);
    }
    for (const variable of container.env ?? []) {
      add('configmap', variable.valueFrom?.configMapKeyRef?.name);
      add('secret', variable.valueFrom?.secretKeyRef?.name);
    }
  }
  for (const volume of spec.volumes ?? []) {
    add('secret', volume.secret?.secretName);
    add('configmap', volume.configMap?.name);
    add('persistentvolumeclaim', volume.persistentVolumeClaim?.claimName);
    if (volume.ephemeral !== undefined) add('persistentvolumeclaim', `${pod.metadata?.name}-${volume.name}`);
    for (const source of volume.projected?.sources ?? []) {
      add('secret', source.secret?.name);
      add('configmap', source.configMap?.name);
    }
    add('secret', volume.csi?.nodePublishSecretRef?.name);
    add('secret', volume.flexVolume?.secretRef?.name);
    add('secret', volume.iscsi?.secretRef?.name);
    add('secret', volume.cephfs?.secretRef?.name);
    add('secret', volume.cinder?.secretRef?.name);
    add('secret', volume.rbd?.secretRef?.name);
    add('secret', volume.azureFile?.secretName);
    add('secret', volume.scaleIO?.secretRef?.name);
    add('secret', volume.storageos?.secretRef?.name);
  }
  return references;
}

function* claimsOf({ spec, status }: PodWithClaims): Generator<string | undefined> {
  for (const { name, resourceClaimName } of spec?.resourceClaims ?? []) {
    yield resourceClaimName ?? status?.resourceClaimStatuses?.find((each) => each.name === name)?.resourceClaimName;
  }
  yield status?.extendedResourceClaimStatus?.resourceClaimName;
}

function secretsOfVolume(spec: PersistentVolume['spec'], claimNamespace: string): string[] {
  const secrets: string[] = [];
  const add = (reference: { readonly name?: string; readonly namespace?: string } | undefined): void => {
    if (reference?.name !== undefined) secrets.push(`${reference.namespace ?? claimNamespace}/${reference.name}`);
  };
  add(spec?.csi?.nodePublishSecretRef);
  add(spec?.csi?.nodeStageSecretRef);
  add(spec?.csi?.nodeExpandSecretRef);
  add(spec?.flexVolume?.secretRef);
  add(spec?.iscsi?.secretRef);
  add(spec?.cephfs?.secretRef);
  add(spec?.cinder?.secretRef);
  add(spec?.rbd?.secretRef);
  add(spec?.scaleIO?.secretRef);
  add(spec?.storageos?.secretRef);
  const azure = spec?.azureFile;
  if (azure !== undefined) add({ name: azure.secretName, namespace: azure.secretNamespace ?? claimNamespace });
  return secrets;
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && a.isSubsetOf(b);
}
