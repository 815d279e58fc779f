/**
 * Views convert stored objects to the served version. Custom resources may be stored in another version, or by another
 * schema than the current one.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { CachedObject } from '../watchcache/cached-object.ts';

export interface ObjectView {
  /** Synchronous unless a conversion webhook is called. Rejects with an ApiError when the conversion fails. */
  of(object: CachedObject): CachedObject | Promise<CachedObject>;
  /** Converts many objects in order, yielding to the event loop. */
  ofAll(objects: readonly CachedObject[]): Promise<CachedObject[]>;
  /** True for a shown object that is stored in another version than it would be now. */
  isStale(object: CachedObject): boolean;
  /** An object of this version in the version that is stored. */
  toStorage(object: KubeObject): KubeObject | Promise<KubeObject>;
}
