/**
 * Labels and annotations of an ApplySet. They identify the objects of the set, so that objects that were removed from
 * its manifest can be pruned. Source: KEP-3659 "ApplySet: kubectl apply --prune redesign".
 */

export const ID_LABEL = 'applyset.kubernetes.io/id';
export const PART_OF_LABEL = 'applyset.kubernetes.io/part-of';
export const TOOLING_ANNOTATION = 'applyset.kubernetes.io/tooling';
export const KINDS_ANNOTATION = 'applyset.kubernetes.io/contains-group-kinds';
export const NAMESPACES_ANNOTATION = 'applyset.kubernetes.io/additional-namespaces';

/** @param hash Returns the SHA-256 in URL-safe base64 (RFC 4648) without padding. */
export function applySetId(
  parent: { readonly name: string; readonly namespace: string; readonly kind: string; readonly group: string },
  hash: (text: string) => string,
): string {
  return `applyset-${hash(`${parent.name}.${parent.namespace}.${parent.kind}.${parent.group}`)}-v1`;
}

export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

/** Formats as `Deployment.apps`; kinds of the core group have no dot. */
export const groupKindText = ({ group, kind }: GroupKind): string => (group === '' ? kind : `${kind}.${group}`);

export function parseGroupKinds(text: string | undefined): GroupKind[] {
  return (text ?? '')
    .split(',')
    .filter((each) => each !== '')
    .map((each) => {
      const dot = each.indexOf('.');
      return dot < 0 ? { group: '', kind: each } : { group: each.slice(dot + 1), kind: each.slice(0, dot) };
    });
}

/** The kinds in the annotation's format: sorted, without duplicates, separated by commas. */
export const groupKindsText = (kinds: Iterable<GroupKind>): string =>
  [...new Set([...kinds].map(groupKindText))].sort().join(',');

/** Sorts namespaces and definitions first, because the other objects of a file depend on them. */
export function inApplyOrder<T extends GroupKind>(objects: readonly T[]): T[] {
  const rank = ({ group, kind }: GroupKind): number =>
    group === '' && kind === 'Namespace' ? 0 : group === 'apiextensions.k8s.io' ? 1 : 2;
  return objects.toSorted((left, right) => rank(left) - rank(right));
}
