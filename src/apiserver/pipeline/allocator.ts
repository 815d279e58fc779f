/** Allocation of shared values, such as cluster IPs, in the same commit as the object. */
import type { KubeObject } from '../../api/meta/object.ts';
import type { Guard } from '../../store/port.ts';
import type { Effects } from '../storage/object-store.ts';

export interface Allocator {
  /** Sets unset fields of `object` and allocates its values. `old` is undefined on creates. Throws an ApiError. */
  allocate(object: KubeObject, old: KubeObject | undefined): Effects;
  /** Releases the values of a deleted object. */
  release(object: KubeObject): Effects;
  /** Reports whether the client requested the value behind the guard's key, so that no other value may be allocated. */
  isRequested(object: KubeObject, key: string): boolean;
  /** The error of an object whose value another API server allocated first. */
  allocationError(object: KubeObject, guard: Guard): Error;
}
