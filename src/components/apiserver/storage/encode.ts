/** Encodes objects for the store: JSON in canonical order, without resourceVersion, which the store assigns. */
import type { KubeObject, ObjectMeta } from '../../../api/meta/object.ts';
import { jsonSteps } from '../../../base/json-steps.ts';
import type { Steps } from '../../../base/steps.ts';

export function encodeObject(gvk: Gvk, object: KubeObject): Buffer {
  return Buffer.from(JSON.stringify(inPlace(gvk, object)));
}

/** As `encodeObject`, a piece at a time. */
export function* encodeSteps(gvk: Gvk, object: KubeObject): Steps<Buffer> {
  const text = yield* jsonSteps(inPlace(gvk, object));
  yield;
  return Buffer.from(text);
}

interface Gvk {
  readonly apiVersion: string;
  readonly kind: string;
}

function inPlace(gvk: Gvk, object: KubeObject): KubeObject {
  // One object with everything in its place, without another one on the way.
  const all = { apiVersion: gvk.apiVersion, kind: gvk.kind, metadata: NO_METADATA, ...object };
  all.apiVersion = gvk.apiVersion;
  all.kind = gvk.kind;
  all.metadata = inOrder(object.metadata ?? NO_METADATA);
  return all;
}

const NO_METADATA: ObjectMeta = {};

/** Fields in the order that upstream's encoder gives them; other parts of the object keep the order they came in. What is undefined is not printed, and a literal has one shape for all. */
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
