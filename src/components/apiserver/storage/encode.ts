/** Objects as the store keeps them: JSON in canonical order, without the revision, which the store is about to give. */
import type { KubeObject } from '../../../api/meta/object.ts';

/** The order that upstream's encoder gives to metadata; other fields keep the order they came in. */
const METADATA_ORDER = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
] as const;

export function encodeObject(gvk: { readonly apiVersion: string; readonly kind: string }, object: KubeObject): Buffer {
  const { metadata = {} } = object;
  const ordered: Record<string, unknown> = {};
  for (const field of METADATA_ORDER) {
    const value = metadata[field];
    if (value !== undefined) ordered[field] = value;
  }
  // One object with everything in its place, without another one on the way.
  const all = { apiVersion: gvk.apiVersion, kind: gvk.kind, metadata: ordered, ...object };
  all.apiVersion = gvk.apiVersion;
  all.kind = gvk.kind;
  all.metadata = ordered;
  return Buffer.from(JSON.stringify(all));
}
