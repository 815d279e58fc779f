/** Allocation of shared values, such as cluster IPs, in the commit that writes their object. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { Guard } from '../../../core/mvcc/port.ts';
import type { Effects } from '../storage/object-store.ts';

export interface Allocator {
  /**
   * Fills what `object` leaves to the server and claims its values. `old` is undefined on creates. Throws an ApiError.
   */
  allocate(object: KubeObject, old: KubeObject | undefined): Effects;
  /** Releases the values of a removed object. */
  release(object: KubeObject): Effects;
  /** Whether the client requested the value behind the guard's key, so that no other one may be allocated. */
  isRequested(object: KubeObject, key: string): boolean;
  /** The error of an object whose value another API server allocated first. */
  taken(object: KubeObject, guard: Guard): Error;
}
