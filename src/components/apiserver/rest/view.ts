/**
 * Views convert stored objects to the served version. Custom resources may be stored in another version, or by another schema
 * than the current one.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { encodeObject, encodeSteps } from '../storage/encode.ts';
import type { Place } from '../storage/object-store.ts';
import { CachedObject, spliceRevision } from '../watchcache/cached-object.ts';
import type { ServedKind } from './kinds.ts';
import { inTurns } from './turns.ts';

export interface ObjectView {
  /** Synchronous unless a conversion webhook is called. Rejects with an ApiError when the conversion fails. */
  of(object: CachedObject): CachedObject | Promise<CachedObject>;
  /** Converts many objects in order, yielding to the event loop. */
  ofAll(objects: readonly CachedObject[]): Promise<CachedObject[]>;
  /** An object of this version in the version that is stored. */
  toStorage(object: KubeObject): KubeObject | Promise<KubeObject>;
}

/** The object as the kind serves it. */
export function shown(kind: ServedKind, object: CachedObject): CachedObject | Promise<CachedObject> {
  return kind.view === undefined ? object : kind.view.of(object);
}

/** Of what is `large`, in turns with others. */
export function encoded(
  type: { readonly apiVersion: string; readonly kind: string },
  object: KubeObject,
  large: boolean,
): Buffer | Promise<Buffer> {
  return large ? inTurns(encodeSteps(type, object)) : encodeObject(type, object);
}

/** `next` at the revision of `current`: an answer that was not stored. */
export async function rendered(
  place: Place,
  current: CachedObject,
  next: KubeObject,
  large: boolean,
): Promise<CachedObject> {
  const type = { apiVersion: next.apiVersion ?? '', kind: next.kind ?? '' };
  const bytes = spliceRevision(await encoded(type, next, large), current.revision);
  return new CachedObject(place.namespace, place.name, bytes, current.revision, current.createRevision);
}
