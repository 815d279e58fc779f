/**
 * Binds claims to volumes and reclaims volumes whose claim was deleted. Each plan contains only the next write. The
 * caller plans again with its result until no write is left, so that the next run repairs a crash between two writes.
 * Source: pkg/controller/volume/persistentvolume pv_controller.go.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import {
  annotationOf,
  BETA_STORAGE_PROVISIONER,
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  classNameOf,
  isBoundToClaim,
  NO_PROVISIONER,
  PROVISIONED_BY,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  takesDefaultClass,
  waitsForConsumer,
  withAnnotations,
} from '../../../api/volumes/binding.ts';
import { findMatchingVolume, mismatchOf } from '../../../api/volumes/match.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';

export interface BinderEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export type BinderStep =
  | { readonly kind: 'claim' | 'claimStatus'; readonly object: PersistentVolumeClaim }
  | { readonly kind: 'volume' | 'volumeStatus'; readonly object: PersistentVolume };

export interface BinderPlan {
  readonly step?: BinderStep;
  /** Event about the planned claim or volume. */
  readonly event?: BinderEvent;
}

export interface ClaimView {
  readonly volumes: readonly PersistentVolume[];
  volume(name: string): PersistentVolume | undefined;
  storageClass(name: string): StorageClass | undefined;
  readonly defaultClass: StorageClass | undefined;
  /** Unfinished pods that reference the claim. */
  readonly pods: readonly Pod[];
}

const NOTHING: BinderPlan = {};

export function planClaim(claim: PersistentVolumeClaim, view: ClaimView): BinderPlan {
  if (annotationOf(claim, BIND_COMPLETED) !== undefined) return planBoundClaim(claim, view);
  if (claim.metadata?.deletionTimestamp !== undefined) return NOTHING;
  const name = claim.spec?.volumeName ?? '';
  if (name === '') return planUnboundClaim(claim, view);
  const volume = view.volume(name);
  if (volume === undefined) return pending(claim);
  if (isBoundToClaim(volume, claim)) return bind(claim, volume);
  if (volume.spec?.claimRef !== undefined) {
    return pending(claim, 'Warning', 'FailedBinding', `volume "${name}" already bound to a different claim.`);
  }
  const mismatch = mismatchOf(volume, claim);
  return mismatch === undefined
    ? bind(claim, volume)
    : pending(claim, 'Warning', 'VolumeMismatch', `Cannot bind to requested volume "${name}": ${mismatch}`);
}

function planUnboundClaim(claim: PersistentVolumeClaim, view: ClaimView): BinderPlan {
  if (takesDefaultClass(claim) && view.defaultClass !== undefined) {
    const storageClassName = view.defaultClass.metadata?.name ?? '';
    return { step: { kind: 'claim', object: { ...claim, spec: { ...claim.spec, storageClassName } } } };
  }
  const className = classNameOf(claim);
  const storageClass = view.storageClass(className);
  const waits = waitsForConsumer(storageClass);
  const volume = findMatchingVolume(claim, view.volumes, { waitsForConsumer: waits });
  if (volume !== undefined) return bind(claim, volume);
  if (waits && annotationOf(claim, SELECTED_NODE) === undefined) {
    const waiting = view.pods.filter((pod) => (pod.spec?.nodeName ?? '') === '').map((pod) => pod.metadata?.name ?? '');
    return waiting.length === 0
      ? pending(claim, 'Normal', 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding')
      : pending(claim, 'Normal', 'WaitForPodScheduled', `waiting for pod ${waiting.sort().join(',')} to be scheduled`);
  }
  if (className === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    return pending(claim, 'Normal', 'FailedBinding', message);
  }
  if (storageClass === undefined) {
    const message = `storageclass.storage.k8s.io "${className}" not found`;
    return pending(claim, 'Warning', 'ProvisioningFailed', message);
  }
  return requestVolume(claim, storageClass.provisioner);
}

function requestVolume(claim: PersistentVolumeClaim, provisioner: string): BinderPlan {
  if (provisioner === NO_PROVISIONER) {
    return pending(claim, 'Warning', 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
  }
  if (annotationOf(claim, STORAGE_PROVISIONER) !== provisioner) {
    const annotations = { [STORAGE_PROVISIONER]: provisioner, [BETA_STORAGE_PROVISIONER]: provisioner };
    return { step: { kind: 'claim', object: withAnnotations(claim, annotations) } };
  }
  const message =
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
    'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.';
  return pending(claim, 'Normal', 'ExternalProvisioning', message);
}

function planBoundClaim(claim: PersistentVolumeClaim, view: ClaimView): BinderPlan {
  const name = claim.spec?.volumeName ?? '';
  const end = 'Data on the volume is lost!';
  if (name === '') return lost(claim, 'ClaimLost', `Bound claim has lost reference to PersistentVolume. ${end}`);
  const volume = view.volume(name);
  if (volume === undefined) return lost(claim, 'ClaimLost', `Bound claim has lost its PersistentVolume. ${end}`);
  if (volume.spec?.claimRef === undefined || isBoundToClaim(volume, claim)) return bind(claim, volume);
  return lost(claim, 'ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

/**
 * Binds a claim to a volume. The volume references the claim before the claim references the volume, so that two claims
 * never get the same volume.
 */
function bind(claim: PersistentVolumeClaim, volume: PersistentVolume): BinderPlan {
  const { name = '', namespace = '', uid = '' } = claim.metadata ?? {};
  if (volume.spec?.claimRef?.uid !== uid || !isBoundToClaim(volume, claim)) {
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid };
    const object: PersistentVolume = { ...volume, spec: { ...volume.spec, claimRef } };
    const isChosen = volume.spec?.claimRef === undefined;
    return {
      step: { kind: 'volume', object: isChosen ? withAnnotations(object, { [BOUND_BY_CONTROLLER]: 'yes' }) : object },
    };
  }
  if (volume.status?.phase !== 'Bound') return volumePhase(volume, 'Bound');
  const volumeName = volume.metadata?.name ?? '';
  if (claim.spec?.volumeName !== volumeName || annotationOf(claim, BIND_COMPLETED) === undefined) {
    const isChosen = claim.spec?.volumeName !== volumeName;
    const object = withAnnotations(
      { ...claim, spec: { ...claim.spec, volumeName } },
      { [BIND_COMPLETED]: 'yes', ...(isChosen ? { [BOUND_BY_CONTROLLER]: 'yes' } : {}) },
    );
    return { step: { kind: 'claim', object } };
  }
  const { accessModes, capacity } = volume.spec;
  const wasBound = claim.status?.phase === 'Bound';
  if (wasBound && equalIgnoringEmptyLists(claim.status?.accessModes, accessModes)) return NOTHING;
  const status = {
    ...claim.status,
    phase: 'Bound',
    ...(accessModes === undefined ? {} : { accessModes }),
    // The capacity of a bound claim changes only after its file system has grown.
    ...(wasBound || capacity === undefined ? {} : { capacity }),
  };
  return { step: { kind: 'claimStatus', object: { ...claim, status } } };
}

function pending(
  claim: PersistentVolumeClaim,
  type?: BinderEvent['type'],
  reason?: string,
  message?: string,
): BinderPlan {
  const event = type === undefined ? {} : { event: { type, reason: reason ?? '', message: message ?? '' } };
  if (claim.status?.phase === 'Pending') return event;
  return { step: { kind: 'claimStatus', object: { ...claim, status: { ...claim.status, phase: 'Pending' } } } };
}

function lost(claim: PersistentVolumeClaim, reason: string, message: string): BinderPlan {
  if (claim.status?.phase === 'Lost') return NOTHING;
  const { capacity: _capacity, accessModes: _modes, ...status } = claim.status ?? {};
  return {
    step: { kind: 'claimStatus', object: { ...claim, status: { ...status, phase: 'Lost' } } },
    event: { type: 'Warning', reason, message },
  };
}

/** @param claim The claim with the name in `spec.claimRef`, with any UID. */
export function planVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): BinderPlan {
  const claimRef = volume.spec?.claimRef;
  if (claimRef === undefined || (claimRef.uid ?? '') === '') return volumePhase(volume, 'Available');
  if (claim === undefined || claim.metadata?.uid !== claimRef.uid) return reclaim(volume);
  const bound = claim.spec?.volumeName ?? '';
  if (bound === volume.metadata?.name) return volumePhase(volume, 'Bound');
  // The plan of the claim completes the binding, so the volume is not changed here.
  if (bound === '') return NOTHING;
  const isDynamic = annotationOf(volume, PROVISIONED_BY) !== undefined;
  if (isDynamic && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') return reclaim(volume);
  return { step: { kind: 'volume', object: unbound(volume) } };
}

/**
 * Removes a binding. If a user reserved the volume for a claim, the reservation remains without the UID of the claim,
 * which was bound to another volume.
 */
function unbound(volume: PersistentVolume): PersistentVolume {
  const { claimRef, ...spec } = volume.spec ?? {};
  if (annotationOf(volume, BOUND_BY_CONTROLLER) === undefined) {
    const { uid: _uid, resourceVersion: _version, ...reserved } = claimRef ?? {};
    return { ...volume, spec: { ...spec, claimRef: reserved } };
  }
  const { [BOUND_BY_CONTROLLER]: _mark, ...annotations } = volume.metadata?.annotations ?? {};
  return { ...volume, metadata: { ...volume.metadata, annotations }, spec };
}

/**
 * Reclaims a volume. Provisioned volumes are deleted by their provisioner; volumes without a provisioner cannot be
 * deleted or recycled.
 */
function reclaim(volume: PersistentVolume): BinderPlan {
  const phase = volume.status?.phase;
  if (phase !== 'Released' && phase !== 'Failed') return volumePhase(volume, 'Released');
  const policy = volume.spec?.persistentVolumeReclaimPolicy ?? 'Retain';
  if (phase === 'Failed' || policy === 'Retain' || volume.metadata?.deletionTimestamp !== undefined) return NOTHING;
  const name = volume.metadata?.name ?? '';
  if (policy === 'Recycle') return failed(volume, 'VolumeFailedRecycle', 'no recyclable volume plugin matched');
  if (annotationOf(volume, PROVISIONED_BY) !== undefined) return NOTHING;
  const message = `error getting deleter volume plugin for volume "${name}": no deletable volume plugin matched`;
  return failed(volume, 'VolumeFailedDelete', message);
}

function failed(volume: PersistentVolume, reason: string, message: string): BinderPlan {
  const status = { ...volume.status, phase: 'Failed', message };
  return { step: { kind: 'volumeStatus', object: { ...volume, status } }, event: { type: 'Warning', reason, message } };
}

function volumePhase(volume: PersistentVolume, phase: string): BinderPlan {
  if (volume.status?.phase === phase) return NOTHING;
  const { message: _message, reason: _reason, ...status } = volume.status ?? {};
  return { step: { kind: 'volumeStatus', object: { ...volume, status: { ...status, phase } } } };
}
