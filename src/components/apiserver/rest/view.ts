/**
 * Kinds whose stored objects are not what they are served as: custom resources may be stored in another version, or by another schema
 * than today's. A view shows stored objects as one version has them now.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { encodeObject } from '../storage/encode.ts';
import type { Place } from '../storage/object-store.ts';
import { CachedObject, spliceRevision } from '../watchcache/cached-object.ts';
import type { ServedKind } from './kinds.ts';

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

/** `next` at the revision of `current`: an answer that was not stored. */
export function rendered(place: Place, current: CachedObject, next: KubeObject): CachedObject {
  const type = { apiVersion: next.apiVersion ?? '', kind: next.kind ?? '' };
  const bytes = spliceRevision(encodeObject(type, next), current.revision);
  return new CachedObject(place.namespace, place.name, bytes, current.revision, current.createRevision);
}
