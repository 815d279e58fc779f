/**
 * How claims and volumes record that they belong together. Source: k8s.io/component-helpers/storage/volume.
 */
import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { StorageClass } from 'kubernetes-types/storage/v1';

/** On a claim: both sides of the binding were written once. Without its volume such a claim is lost. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
/** The binding was chosen by a controller and may be undone by it. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
/** On a volume: the provisioner that made it and deletes it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** On a claim: the node that the scheduler chose for its first pod. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** On a claim: the provisioner that shall make its volume. */
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

/** The same object with annotations set. */
export function withAnnotations<T extends PersistentVolume | PersistentVolumeClaim>(
  object: T,
  annotations: Readonly<Record<string, string>>,
): T {
  const all = { ...object.metadata?.annotations, ...annotations };
  return { ...object, metadata: { ...object.metadata, annotations: all } };
}

/** '' when there is no class. */
export function classNameOf(object: PersistentVolume | PersistentVolumeClaim): string {
  return annotationOf(object, CLASS_ANNOTATION) ?? object.spec?.storageClassName ?? '';
}

/** True when the claim does not say whether it wants a class: only then the default class applies. */
export function takesDefaultClass(claim: PersistentVolumeClaim): boolean {
  return claim.spec?.storageClassName === undefined && annotationOf(claim, CLASS_ANNOTATION) === undefined;
}

/** The newest of the default classes; the first by name among those of the same age. */
export function defaultClassOf(classes: readonly StorageClass[]): StorageClass | undefined {
  const age = ({ metadata }: StorageClass): string => String(metadata?.creationTimestamp ?? '');
  const name = ({ metadata }: StorageClass): string => metadata?.name ?? '';
  return classes
    .filter(({ metadata }) => DEFAULT_CLASS_ANNOTATIONS.some((each) => metadata?.annotations?.[each] === 'true'))
    .sort((a, b) => age(b).localeCompare(age(a)) || name(a).localeCompare(name(b)))[0];
}

/** Both sides are bound. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (claim.spec?.volumeName ?? '') !== '' && annotationOf(claim, BIND_COMPLETED) !== undefined;
}

/** The volume is bound to this claim, or reserved for its name. */
export function isBoundToClaim(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const claimRef = volume.spec?.claimRef;
  if (claimRef === undefined) return false;
  if (claimRef.name !== claim.metadata?.name || claimRef.namespace !== claim.metadata?.namespace) return false;
  return (claimRef.uid ?? '') === '' || claimRef.uid === claim.metadata?.uid;
}

export function waitsForConsumer(storageClass: StorageClass | undefined): boolean {
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}
