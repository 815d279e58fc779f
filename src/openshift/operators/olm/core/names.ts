/** Labels, annotations and names that operators and consoles use. Source: operator-lifecycle-manager. */
import type { ClusterServiceVersion } from '../kinds/types.ts';

export const OWNER_LABEL = 'olm.owner';
export const OWNER_NAMESPACE_LABEL = 'olm.owner.namespace';
const OWNER_KIND_LABEL = 'olm.owner.kind';
export const MANAGED_LABEL = 'olm.managed';
export const SPEC_HASH_LABEL = 'olm.deployment-spec-hash';
export const COPIED_LABEL = 'olm.copiedFrom';
export const OPERATOR_NAMESPACE = 'olm.operatorNamespace';
export const OPERATOR_GROUP = 'olm.operatorGroup';
export const TARGET_NAMESPACES = 'olm.targetNamespaces';
export const PROVIDED_APIS = 'olm.providedAPIs';
export const CLEANUP_FINALIZER = 'operators.coreos.com/csv-cleanup';
export const COMPONENT_LABEL_PREFIX = 'operators.coreos.com/';
/** User with whose permissions operators are installed if the operator group names no service account. */
export const LIFECYCLE_MANAGER = 'system:controller:operator-lifecycle-manager';

const LABEL_LIMIT = 63;
const OFFSETS = [0x811c9dc5, 0x01000193] as const;
const PRIME = 0x01000193;

/**
 * Digest of `value` with 13 characters of base 36 (two FNV-1a hashes). It is not cryptographic, so use it only for
 * names.
 */
export function digestOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return OFFSETS.map((offset) => {
    let hash = offset;
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME) >>> 0;
    return hash.toString(36).padStart(7, '0');
  })
    .join('')
    .slice(0, 13);
}

/** Shortens a name that is too long for a label value, and appends a digest of the name to keep the value unique. */
export const labelValue = (name: string): string =>
  name.length <= LABEL_LIMIT
    ? name
    : `${name.slice(0, LABEL_LIMIT - 14).replace(/[^a-z0-9]+$/i, '')}-${digestOf(name)}`;

/** Creates a name `prefix-digest` within the length limit of names. */
export const nameWithDigest = (prefix: string, value: unknown): string =>
  `${prefix.slice(0, 200).replace(/[^a-z0-9]+$/, '')}-${digestOf(value)}`;

export function ownerLabels(csv: ClusterServiceVersion): Record<string, string> {
  return {
    [OWNER_LABEL]: labelValue(csv.metadata?.name ?? ''),
    [OWNER_NAMESPACE_LABEL]: csv.metadata?.namespace ?? '',
    [OWNER_KIND_LABEL]: 'ClusterServiceVersion',
    [MANAGED_LABEL]: 'true',
  };
}

/** Label `operators.coreos.com/<package>.<namespace>`, shortened to the length limit of labels. */
export function componentLabel(owner: string, namespace: string): string {
  const name = `${owner}.${namespace}`;
  return `${COMPONENT_LABEL_PREFIX}${labelValue(name)}`;
}
