/** How a claim records that it grows. Source: KEP-1790, KEP-284; k8s.io/api core/v1 ClaimResourceStatus. */
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from 'kubernetes-types/core/v1';

/** kubernetes-types stops before KEP-1790's fields. */
export interface ExpandingStatus {
  allocatedResources?: Record<string, string> | null;
  allocatedResourceStatuses?: Record<string, string> | null;
}

export const RESIZING = 'Resizing';
export const FILE_SYSTEM_RESIZE_PENDING = 'FileSystemResizePending';

export const resizeStatusOf = ({ status }: PersistentVolumeClaim): string | undefined =>
  (status as ExpandingStatus | undefined)?.allocatedResourceStatuses?.['storage'];

/** The volume has its new size; the node that mounts it is next. */
export function awaitsNodeExpansion(claim: PersistentVolumeClaim): boolean {
  const status = resizeStatusOf(claim);
  if (status === 'NodeResizePending' || status === 'NodeResizeInProgress') return true;
  return claim.status?.conditions?.some(({ type }) => type === FILE_SYSTEM_RESIZE_PENDING) === true;
}

export const withoutResizing = (
  conditions: readonly PersistentVolumeClaimCondition[] | undefined,
): PersistentVolumeClaimCondition[] =>
  (conditions ?? []).filter(({ type }) => type !== RESIZING && type !== FILE_SYSTEM_RESIZE_PENDING);

/** A merge patch of the status of a claim that has grown to `size`. */
export function expandedStatus({ status }: PersistentVolumeClaim, size: string): object {
  return {
    capacity: { ...status?.capacity, storage: size },
    allocatedResources: null,
    allocatedResourceStatuses: null,
    conditions: withoutResizing(status?.conditions),
  };
}
