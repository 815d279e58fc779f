/**
 * Kinds whose stored objects are not what they are served as: custom resources may be stored in another version, or by another schema
 * than today's. A view shows stored objects as one version has them now.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { encodeObject, encodeSteps } from '../storage/encode.ts';
import type { Place } from '../storage/object-store.ts';
import { CachedObject, spliceRevision } from '../watchcache/cached-object.ts';
import type { ServedKind } from './kinds.ts';
import { inTurns } from './turns.ts';

export interface ObjectView {
  /** At once where it can be, else when somebody who was asked has answered. Rejects with an ApiError when that fails. */
  of(object: CachedObject): CachedObject | Promise<CachedObject>;
  /** Many, in their order, without holding up everybody else. */
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
