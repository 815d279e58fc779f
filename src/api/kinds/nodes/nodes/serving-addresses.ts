/**
 * Records that determine the allowed names of a kubelet's serving certificate. They are written by the API server,
 * controllers and administrators. The node's own `status.addresses` is not sufficient, because the node writes it.
 */
import type { KubeObject } from '../../../meta/object.ts';

/** User extra with the source address of a request for a serving certificate, as the API server observed it. */
export const SOURCE_EXTRA = 'hyperedge.dev/source-address';

/**
 * Annotation of a Node: source address of its kubelet's last write of the Node, as the API server observed it. The API
 * server overwrites it in every write of the node.
 */
export const SOURCE_ANNOTATION = 'hyperedge.dev/source-address';

/** Annotation of a Node: addresses and names that an administrator assigns to the node, separated by commas. */
export const DECLARED_ANNOTATION = 'hyperedge.dev/serving-addresses';

/**
 * Annotation of a Node: names in its last approved serving certificate, and proven addresses. Written by controllers
 * and by the hosts of masters. The API server sets it to the empty text when a Node is created, so only a Node of an
 * earlier release has none.
 */
export const APPROVED_ANNOTATION = 'hyperedge.dev/approved-addresses';

/** Annotations that a node must not change on its own Node. */
export const PROTECTED_ANNOTATIONS: readonly string[] = [DECLARED_ANNOTATION, APPROVED_ANNOTATION];

/** Entries of one of the annotations; undefined if the Node does not have it. */
export function namesIn(node: KubeObject, annotation: string): string[] | undefined {
  const text = node.metadata?.annotations?.[annotation];
  if (text === undefined) return undefined;
  return text.split(/[\s,]+/).filter((each) => each !== '');
}
