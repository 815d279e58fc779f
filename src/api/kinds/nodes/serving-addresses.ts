/**
 * Records that decide which names a kubelet's serving certificate may have. A node writes its own `status.addresses`,
 * so they prove nothing; these records are written by the API server, the controllers and administrators only.
 */
import type { KubeObject } from '../../meta/object.ts';

/** Extra of the requester: the address from which the API server received a request for a serving certificate. */
export const SOURCE_EXTRA = 'hyperedge.dev/source-address';

/** Annotation of a Node: addresses and names that an administrator declares to be the node's, separated by commas. */
export const DECLARED_ANNOTATION = 'hyperedge.dev/serving-addresses';

/** Annotation of a Node: the names of its last approved serving certificate. Written by the approving controller. */
export const APPROVED_ANNOTATION = 'hyperedge.dev/approved-addresses';

/** Annotations that a node may not change on its own Node. */
export const PROTECTED_ANNOTATIONS: readonly string[] = [DECLARED_ANNOTATION, APPROVED_ANNOTATION];

/** Entries of one of the annotations; undefined: the Node does not have it. */
export function namesIn(node: KubeObject, annotation: string): string[] | undefined {
  const text = node.metadata?.annotations?.[annotation];
  if (text === undefined) return undefined;
  return text.split(/[\s,]+/).filter((each) => each !== '');
}
