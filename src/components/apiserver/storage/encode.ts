/** Objects as the store keeps them: JSON in canonical order, without the revision, which the store is about to give. */
import type { KubeObject, ObjectMeta } from '../../../api/meta/object.ts';

export function encodeObject(gvk: { readonly apiVersion: string; readonly kind: string }, object: KubeObject): Buffer {
  // One object with everything in its place, without another one on the way.
  const all = { apiVersion: gvk.apiVersion, kind: gvk.kind, metadata: NO_METADATA, ...object };
  all.apiVersion = gvk.apiVersion;
  all.kind = gvk.kind;
  all.metadata = inOrder(object.metadata ?? NO_METADATA);
  return Buffer.from(JSON.stringify(all));
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
