/** Encodes objects for the store: JSON in canonical order, without resourceVersion, which the store assigns. */

import type { KubeObject, ObjectMeta } from '../../api/meta/object.ts';
import type { Steps } from '../../base/concurrency/steps.ts';
import { jsonSteps } from '../../base/json/json-steps.ts';
import { runSteps } from '../server/event-loop.ts';
import { CachedObject, spliceRevision } from '../watch-cache/cached-object.ts';

export function encodeObject(gvk: Gvk, object: KubeObject): Buffer {
  return Buffer.from(JSON.stringify(inPlace(gvk, object)));
}

/** Like `encodeObject`, but yields between the parts of a large object. */
export function* encodeSteps(gvk: Gvk, object: KubeObject): Steps<Buffer> {
  const text = yield* jsonSteps(inPlace(gvk, object));
  yield;
  return Buffer.from(text);
}

/** Encodes an object. With `large`, yields to the event loop. */
export function encodeInSteps(
  type: { readonly apiVersion: string; readonly kind: string },
  object: KubeObject,
  large: boolean,
): Buffer | Promise<Buffer> {
  return large ? runSteps(encodeSteps(type, object)) : encodeObject(type, object);
}

/** `next` with the revision of `current`, for a response without a write. */
export async function rendered(
  place: { readonly namespace: string; readonly name: string },
  current: CachedObject,
  next: KubeObject,
  large: boolean,
): Promise<CachedObject> {
  const type = { apiVersion: next.apiVersion ?? '', kind: next.kind ?? '' };
  const bytes = spliceRevision(await encodeInSteps(type, next, large), current.revision);
  return new CachedObject(place.namespace, place.name, bytes, current.revision, current.createRevision);
}

interface Gvk {
  readonly apiVersion: string;
  readonly kind: string;
}

function inPlace(gvk: Gvk, object: KubeObject): KubeObject {
  // Builds the object with all fields in order at once, without a temporary copy.
  const all = { apiVersion: gvk.apiVersion, kind: gvk.kind, metadata: NO_METADATA, ...object };
  all.apiVersion = gvk.apiVersion;
  all.kind = gvk.kind;
  all.metadata = inOrder(object.metadata ?? NO_METADATA);
  return all;
}

const NO_METADATA: ObjectMeta = {};

/**
 * Metadata fields in the order of upstream's encoder. Other parts of the object keep their order. Undefined fields are
 * not encoded; a literal gives all objects the same hidden class.
 */
function inOrder(metadata: ObjectMeta): ObjectMeta {
  return {
    name: metadata.name,
    generateName: metadata.generateName,
    namespace: metadata.namespace,
    uid: metadata.uid,
    generation: metadata.generation,
    creationTimestamp: metadata.creationTimestamp,
    deletionTimestamp: metadata.deletionTimestamp,
    deletionGracePeriodSeconds: metadata.deletionGracePeriodSeconds,
    labels: metadata.labels,
    annotations: metadata.annotations,
    ownerReferences: metadata.ownerReferences,
    finalizers: metadata.finalizers,
    managedFields: metadata.managedFields,
  } as ObjectMeta;
}
