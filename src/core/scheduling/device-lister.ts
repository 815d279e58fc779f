/** What the allocation of devices reads of the cluster. */
import type { Device, DeviceClass, ResourceClaim, ResourceSlice } from '../../api/devices/types.ts';
import type { Consumed } from './shared-capacity.ts';

export interface DeviceLister {
  claim(namespace: string, name: string): ResourceClaim | undefined;
  deviceClass(name: string): DeviceClass | undefined;
  /** The class whose devices an extended resource stands for. */
  classOfResource(resource: string): DeviceClass | undefined;
  /** The claim that was made for the pod's extended resources when it was scheduled before. */
  extendedClaimOf(podUid: string): ResourceClaim | undefined;
  /** Slices that may be about the node. */
  slicesFor(node: string): readonly ResourceSlice[];
  /** Allocated to one claim alone, or about to be. */
  isTaken(driver: string, pool: string, device: string): boolean;
  /** What claims that share the device have of it; undefined: none has a share. */
  consumed(driver: string, pool: string, device: string): Consumed | undefined;
  /** Why no claim may have the device; undefined: claims may. */
  withheld(driver: string, device: string): string | undefined;
  /** A UUID for a share of a device. */
  newShareId(): string;
  /** Binding conditions of the claim's devices have failed, or did not become true in time. */
  hasFailedBinding(claim: ResourceClaim, timeoutMs: number): boolean;
  /** The claim's devices are being chosen for another pod. */
  isPending(claim: ResourceClaim): boolean;
  /** Whether the device meets a CEL selector; false as well when it cannot be evaluated. */
  meets(expression: string, driver: string, device: Device): boolean;
}
