/**
 * Expansion of claims. A volume of the embedded provisioner gets its new size here and waits for its node. Volumes of
 * drivers are expanded by the driver's own controller. Source: pkg/controller/volume/expand; KEP-1790.
 */

import type { PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import { annotationOf, isFullyBound, PROVISIONED_BY } from '../../../api/volumes/binding.ts';
import { FILE_SYSTEM_RESIZE_PENDING, resizeStatusOf, withoutResizing } from '../../../api/volumes/expansion.ts';
import { LOCAL_PROVISIONER } from '../../../api/volumes/local-provisioner.ts';
import { compareQuantity, quantityOf, tryParseQuantity } from '../../../base/quantity.ts';
import { timestamp } from '../../../base/time/timestamps.ts';

export type ExpandPlan =
  | { readonly kind: 'keep' }
  | { readonly kind: 'event'; readonly reason: string; readonly message: string }
  /** A merge patch of the claim's status. */
  | { readonly kind: 'status'; readonly status: object }
  | { readonly kind: 'volume'; readonly volume: PersistentVolume };

const KEEP: ExpandPlan = { kind: 'keep' };
const sizeOf = (text: string | undefined) => tryParseQuantity(text ?? '0') ?? quantityOf(0);

/** Returns the next write. The caller plans again with its result. */
export function planExpansion(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume | undefined,
  nowMs: number,
): ExpandPlan {
  if (volume === undefined || !isFullyBound(claim) || claim.status?.phase !== 'Bound') return KEEP;
  const wanted = claim.spec?.resources?.requests?.['storage'];
  const hasGrown = compareQuantity(sizeOf(wanted), sizeOf(claim.status.capacity?.['storage'])) <= 0;
  if (wanted === undefined || hasGrown) return KEEP;
  if (annotationOf(volume, PROVISIONED_BY) !== LOCAL_PROVISIONER) return external(volume);
  const allocated = claim.status?.allocatedResources?.['storage'];
  if (allocated !== wanted) return { kind: 'status', status: resizing(claim, wanted, nowMs) };
  if (compareQuantity(sizeOf(volume.spec?.capacity?.['storage']), sizeOf(wanted)) < 0) {
    return { kind: 'volume', volume: { ...volume, spec: { ...volume.spec, capacity: { storage: wanted } } } };
  }
  if (resizeStatusOf(claim) === 'NodeResizePending') return KEEP;
  return { kind: 'status', status: pendingOnNode(claim, nowMs) };
}

function external({ spec }: PersistentVolume): ExpandPlan {
  if (spec?.csi === undefined) {
    const message = "didn't find a plugin capable of expanding the volume";
    return { kind: 'event', reason: 'ExternalExpanding', message: `Ignoring the PVC: ${message}; ${WAITING}` };
  }
  return { kind: 'event', reason: 'ExternalExpanding', message: WAITING };
}

const WAITING = 'waiting for an external controller to expand this PVC';

const resizing = ({ status }: PersistentVolumeClaim, wanted: string, nowMs: number): object => ({
  allocatedResources: { storage: wanted },
  allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
  conditions: [
    ...withoutResizing(status?.conditions),
    { type: 'Resizing', status: 'True', lastTransitionTime: timestamp(nowMs) },
  ],
});

const pendingOnNode = ({ status }: PersistentVolumeClaim, nowMs: number): object => ({
  allocatedResourceStatuses: { storage: 'NodeResizePending' },
  conditions: [
    ...withoutResizing(status?.conditions),
    {
      type: FILE_SYSTEM_RESIZE_PENDING,
      status: 'True',
      lastTransitionTime: timestamp(nowMs),
      message: 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.',
    },
  ],
});
