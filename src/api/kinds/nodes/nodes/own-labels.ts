/** Labels that a kubelet may set on its own Node. Source: KEP-279, KEP-2787. */

const RESTRICTED_PREFIX = 'node-restriction.kubernetes.io';
const OWN_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
]);
const OWN_LABEL_PREFIXES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/** Annotation with the node group that the host requests for its Node. */
export const GROUP_CLAIM = 'hyperedge.dev/node-group';
/** Label with the group of a Node. */
export const GROUP_LABEL = 'node-restriction.kubernetes.io/node-group';

/** Namespace of the node groups' ConfigMaps, and the key of a group's NodeConfig. */
export const NODE_GROUPS = { namespace: 'openshift-node', key: 'node-config.yaml' } as const;
/**
 * Annotation of a group's ConfigMap. If it is set, machine config pools apply the group's kubelet arguments from a
 * KubeletConfig, and hosts ignore those of the group.
 */
export const GROUP_BY_POOLS = 'hyperedge.dev/applied-by-pools';

/**
 * ConfigMap with the groups of Nodes that were deleted by their own host. A new Node with the same name gets the same
 * group.
 */
export const DELETED_NODES = { namespace: 'openshift-node', name: 'hyperedge-left-nodes' } as const;

/** Whether the label isolates workloads from nodes. A node must not add or remove such a label on its own Node. */
export function isRestrictedLabel(label: string): boolean {
  const prefix = label.slice(0, Math.max(0, label.indexOf('/')));
  return prefix === RESTRICTED_PREFIX || prefix.endsWith(`.${RESTRICTED_PREFIX}`);
}

export function mayKubeletLabel(label: string): boolean {
  const slash = label.indexOf('/');
  if (slash < 0) return true;
  const prefix = label.slice(0, slash);
  const within = (domain: string): boolean => prefix === domain || prefix.endsWith(`.${domain}`);
  if (isRestrictedLabel(label)) return false;
  if (!within('kubernetes.io') && !within('k8s.io')) return true;
  return OWN_LABELS.has(label) || OWN_LABEL_PREFIXES.some(within);
}
