/**
 * Fields and annotations that record the binding of claims and volumes. Source:
 * k8s.io/component-helpers/storage/volume.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '../generated/core/v1.ts';
import type { StorageClass } from '../generated/storage/v1.ts';

/** Claim annotation: the binding was complete once. Such a claim without its volume is Lost. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
/** Annotation: a controller chose the binding and may undo it. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
/** Volume annotation: the provisioner that created the volume and deletes it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** Claim annotation: the node that the scheduler chose for the first pod. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** Claim annotation: the provisioner that must create the volume. */
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const BETA_STORAGE_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner';
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
export const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

const DEFAULT_CLASS_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

export function annotationOf(object: PersistentVolume | PersistentVolumeClaim, name: string): string | undefined {
  const annotations = object.metadata?.annotations;
  return annotations !== undefined && Object.hasOwn(annotations, name) ? annotations[name] : undefined;
}

/** Returns a copy of the object with the annotations set. */
export function withAnnotations<T extends PersistentVolume | PersistentVolumeClaim>(
  object: T,
  annotations: Readonly<Record<string, string>>,
): T {
  const all = { ...object.metadata?.annotations, ...annotations };
  return { ...object, metadata: { ...object.metadata, annotations: all } };
}

/** Name of the storage class of a claim or volume; '' if it has none. */
export function classNameOf(object: PersistentVolume | PersistentVolumeClaim): string {
  return annotationOf(object, CLASS_ANNOTATION) ?? object.spec?.storageClassName ?? '';
}

/** Whether the claim specifies no class, so that the default class applies. */
export function takesDefaultClass(claim: PersistentVolumeClaim): boolean {
  return claim.spec?.storageClassName === undefined && annotationOf(claim, CLASS_ANNOTATION) === undefined;
}

/** The newest default class; if several are equally old, the first by name. */
export function defaultClassOf(classes: readonly StorageClass[]): StorageClass | undefined {
  const age = ({ metadata }: StorageClass): string => String(metadata?.creationTimestamp ?? '');
  const name = ({ metadata }: StorageClass): string => metadata?.name ?? '';
  return classes
    .filter(({ metadata }) => DEFAULT_CLASS_ANNOTATIONS.some((each) => metadata?.annotations?.[each] === 'true'))
    .sort((a, b) => age(b).localeCompare(age(a)) || name(a).localeCompare(name(b)))[0];
}

/** Whether the binding is recorded in both objects. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (claim.spec?.volumeName ?? '') !== '' && annotationOf(claim, BIND_COMPLETED) !== undefined;
}

/** Whether the volume is bound to the claim or reserved for its name. */
export function isBoundToClaim(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const claimRef = volume.spec?.claimRef;
  if (claimRef === undefined) return false;
  if (claimRef.name !== claim.metadata?.name || claimRef.namespace !== claim.metadata?.namespace) return false;
  return (claimRef.uid ?? '') === '' || claimRef.uid === claim.metadata?.uid;
}

export function waitsForConsumer(storageClass: StorageClass | undefined): boolean {
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}
