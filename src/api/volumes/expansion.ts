/** Status of a claim during volume expansion. Source: KEP-1790, KEP-284; k8s.io/api core/v1 ClaimResourceStatus. */
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from '../generated/core/v1.ts';

export const RESIZING = 'Resizing';
export const FILE_SYSTEM_RESIZE_PENDING = 'FileSystemResizePending';
const NODE_RESIZE_ERROR = 'NodeResizeError';
const RESIZE_CONDITIONS = [RESIZING, FILE_SYSTEM_RESIZE_PENDING, 'ControllerResizeError', NODE_RESIZE_ERROR];
const PENDING_ON_NODE = 'NodeResizePending';
const IN_PROGRESS_ON_NODE = 'NodeResizeInProgress';

export const resizeStatusOf = ({ status }: PersistentVolumeClaim): string | undefined =>
  status?.allocatedResourceStatuses?.['storage'];

/** Whether the volume has its new size and the node must now grow the file system. */
export function awaitsNodeExpansion(claim: PersistentVolumeClaim): boolean {
  const status = resizeStatusOf(claim);
  if (status !== undefined) return status === PENDING_ON_NODE || status === IN_PROGRESS_ON_NODE;
  return claim.status?.conditions?.some(({ type }) => type === FILE_SYSTEM_RESIZE_PENDING) === true;
}

export const withoutResizing = (
  conditions: readonly PersistentVolumeClaimCondition[] | undefined,
): PersistentVolumeClaimCondition[] => (conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.includes(type));

/**
 * Strategic merge patch for the status of a claim that has grown to `size`. It keeps allocatedResources, because quotas
 * use them. Conditions of other types are not part of the patch, because their owners may have changed them meanwhile.
 */
export function expandedStatus({ status }: PersistentVolumeClaim, size: string): object {
  const { storage: _done, ...others } = status?.allocatedResourceStatuses ?? {};
  return {
    capacity: { ...status?.capacity, storage: size },
    allocatedResourceStatuses: Object.keys(others).length === 0 ? null : { ...others, storage: null },
    conditions: (status?.conditions ?? [])
      .filter(({ type }) => RESIZE_CONDITIONS.includes(type))
      .map(({ type }) => ({ type, $patch: 'delete' })),
  };
}

/**
 * Strategic merge patch for the status of a claim whose node starts to grow it; undefined if the status already shows
 * that.
 */
export const startedOnNode = (claim: PersistentVolumeClaim): object | undefined =>
  resizeStatusOf(claim) === PENDING_ON_NODE
    ? { allocatedResourceStatuses: { storage: IN_PROGRESS_ON_NODE } }
    : undefined;

/**
 * Strategic merge patch for the status of a claim that its node cannot grow. `infeasible`: the node does not retry, and
 * the claim may request a smaller size. Source: pkg/volume/util MarkNodeExpansionInfeasible,
 * MarkNodeExpansionFailedCondition.
 */
export function failedOnNode(
  { status }: PersistentVolumeClaim,
  { message, infeasible, time }: { readonly message: string; readonly infeasible: boolean; readonly time: string },
): object {
  const known = status?.conditions?.find(({ type }) => type === NODE_RESIZE_ERROR);
  const lastTransitionTime = known?.lastTransitionTime ?? time;
  const text = `failed to expand pvc with ${message}`;
  return {
    ...(infeasible ? { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } } : {}),
    conditions: [{ type: NODE_RESIZE_ERROR, status: 'True', lastTransitionTime, message: text }],
  };
}
