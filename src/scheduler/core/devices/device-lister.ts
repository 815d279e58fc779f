/** Data of the cluster that the allocation of devices reads. */
import type { Device, DeviceClass, ResourceClaim, ResourceSlice } from '../../../api/devices/types.ts';
import type { Consumed } from './shared-capacity.ts';

export interface DeviceLister {
  claim(namespace: string, name: string): ResourceClaim | undefined;
  deviceClass(name: string): DeviceClass | undefined;
  /** Device class that provides an extended resource; undefined if there is none. */
  classOfResource(resource: string): DeviceClass | undefined;
  /**
   * Claim that an earlier scheduling attempt has created for the pod's extended resources; undefined if there is none.
   */
  extendedClaimOf(podUid: string): ResourceClaim | undefined;
  /** Slices with devices that may be available on the node. */
  slicesFor(node: string): readonly ResourceSlice[];
  /** Whether the device is exclusively allocated to a claim, including allocations that are not written yet. */
  isAllocated(driver: string, pool: string, device: string): boolean;
  /** Amounts that claims consume of a shared device; undefined if no claim has a share. */
  consumed(driver: string, pool: string, device: string): Consumed | undefined;
  /** Reason why the device cannot be allocated; undefined if it can. */
  withheld(driver: string, device: string): string | undefined;
  /** Returns a new UUID for a share of a device. */
  newShareId(): string;
  /** Whether binding conditions of the claim's devices have failed or timed out. */
  hasFailedBinding(claim: ResourceClaim, timeoutMs: number): boolean;
  /** Whether the claim's devices are being selected for another pod. */
  isPending(claim: ResourceClaim): boolean;
  /** Whether the device satisfies a CEL selector; false if the selector cannot be evaluated. */
  meets(expression: string, driver: string, device: Device): boolean;
}
