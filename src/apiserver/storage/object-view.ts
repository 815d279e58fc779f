/**
 * Views convert stored objects to the served version. Custom resources may be stored in another version or with an
 * older schema.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';

export interface ObjectView {
  /** Synchronous unless a conversion webhook is called. Rejects with an ApiError if the conversion fails. */
  of(object: CachedObject): CachedObject | Promise<CachedObject>;
  /** Converts many objects in order, yielding to the event loop. */
  ofAll(objects: readonly CachedObject[]): Promise<CachedObject[]>;
  /** Reports whether a converted object is stored in a version other than the current storage version. */
  isStale(object: CachedObject): boolean;
  /** Converts an object of this version to the storage version. */
  toStorage(object: KubeObject): KubeObject | Promise<KubeObject>;
}
