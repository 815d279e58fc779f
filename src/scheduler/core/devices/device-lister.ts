/** Read access to the cluster for the allocation of devices. */
import type { Device, DeviceClass, ResourceClaim, ResourceSlice } from '../../../api/devices/types.ts';
import type { Consumed } from './shared-capacity.ts';

export interface DeviceLister {
  claim(namespace: string, name: string): ResourceClaim | undefined;
  deviceClass(name: string): DeviceClass | undefined;
  /** The class that provides an extended resource. */
  classOfResource(resource: string): DeviceClass | undefined;
  /** The claim created for the pod's extended resources in an earlier scheduling attempt. */
  extendedClaimOf(podUid: string): ResourceClaim | undefined;
  /** Slices with devices that may be available on the node. */
  slicesFor(node: string): readonly ResourceSlice[];
  /** Whether the device is exclusively allocated to a claim, or about to be. */
  isAllocated(driver: string, pool: string, device: string): boolean;
  /** Amounts that claims consume of a shared device; undefined if no claim has a share. */
  consumed(driver: string, pool: string, device: string): Consumed | undefined;
  /** Reason why the device cannot be allocated; undefined if it can. */
  withheld(driver: string, device: string): string | undefined;
  /** A UUID for a share of a device. */
  newShareId(): string;
  /** Whether binding conditions of the claim's devices have failed or timed out. */
  hasFailedBinding(claim: ResourceClaim, timeoutMs: number): boolean;
  /** Whether the claim's devices are being selected for another pod. */
  isPending(claim: ResourceClaim): boolean;
  /** Whether the device satisfies a CEL selector; false if the selector cannot be evaluated. */
  meets(expression: string, driver: string, device: Device): boolean;
}
