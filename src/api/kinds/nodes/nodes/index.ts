/** Nodes. Source: k8s.io/kubernetes/pkg/registry/core/node. */
import type { Node, NodeSystemInfo } from '../../../generated/core/v1.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition, StrategyContext } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { APPROVED_ANNOTATION, SOURCE_ANNOTATION } from './serving-addresses.ts';
import { validateNode, validateNodeUpdate } from './validation.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

const { strategy, statusStrategy } = specStatusStrategies<Node>({
  generations: false,
  // A kubelet sends the measured status when it registers its Node.
  initialStatus: (node) => node.status ?? {},
  prepareForCreate(node, context) {
    dropConfigSource(node, undefined);
    annotate(node, APPROVED_ANNOTATION, node.metadata?.annotations?.[APPROVED_ANNOTATION] ?? '');
    recordSource(node, context);
  },
  prepareForUpdate(node, old, context) {
    dropConfigSource(node, old);
    recordSource(node, context);
  },
  prepareForStatusUpdate(node, old, context) {
    if (old.status?.config === undefined) delete node.status?.config;
    recordSource(node, context);
  },
  validate: validateNode,
  warnings: ({ spec }, old) => [
    ...(spec?.configSource === undefined ? [] : ['spec.configSource: the feature is removed']),
    // Kubelets of earlier releases set externalID, which is immutable, so only a change causes a warning.
    ...(isSet(spec?.externalID) && spec?.externalID !== old?.spec?.externalID
      ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes']
      : []),
  ],
  validateUpdate: (node, old) => [...validateNode(node), ...validateNodeUpdate(node, old)],
  validateStatusUpdate: (node, old) => [...validateNode(node), ...validateNodeUpdate(node, old)],
});

/** Drops `configSource` unless the stored object has it. Dynamic kubelet configuration no longer exists. */
function dropConfigSource(node: Node, old: Node | undefined): void {
  if (old?.spec?.configSource === undefined) delete node.spec?.configSource;
  if (old === undefined) delete node.status?.config;
}

/** Records the source address of the request if the node itself writes its Node. */
function recordSource(node: Node, { user, sourceAddress }: StrategyContext): void {
  if (sourceAddress !== undefined && user.name === `system:node:${node.metadata?.name}`)
    annotate(node, SOURCE_ANNOTATION, sourceAddress);
}

function annotate(node: Node, annotation: string, value: string): void {
  node.metadata = { ...node.metadata, annotations: { ...node.metadata?.annotations, [annotation]: value } };
}

export function nodeRoles(node: Node): string[] {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata?.labels ?? {})) {
    if (key.startsWith(ROLE_PREFIX)) {
      const role = key.slice(ROLE_PREFIX.length);
      if (role !== '') roles.add(role);
    } else if (key === ROLE_LABEL && value !== '') roles.add(value);
  }
  return [...roles].sort();
}

function statusText(node: Node): string {
  const ready = node.status?.conditions?.find((each) => each.type === 'Ready');
  const states = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'];
  if (node.spec?.unschedulable === true) states.push('SchedulingDisabled');
  return states.join(',');
}

function address(type: string): (node: Node) => string {
  return (node) => node.status?.addresses?.find((each) => each.type === type)?.address ?? NONE;
}

function info(field: 'osImage' | 'kernelVersion' | 'containerRuntimeVersion', missing: string): (node: Node) => string {
  return (node) => node.status?.nodeInfo?.[field] || missing;
}

/** Fields of nodeInfo that are always present in responses, even if empty. */
const NODE_INFO = [
  'machineID',
  'systemUUID',
  'bootID',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'kubeletVersion',
  'kubeProxyVersion',
  'operatingSystem',
  'architecture',
] as const;

const wide = { wide: true };

export const nodes: KindDefinition<Node> = {
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  listKind: 'NodeList',
  namespaced: false,
  shortNames: ['no'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Node',
  skeleton: { spec: {}, status: { daemonEndpoints: { kubeletEndpoint: {} }, nodeInfo: {} } },
  storagePrefix: 'minions',
  essentialUpdates: ['object', 'status'],
  setDefaults(node) {
    const { spec } = node;
    // podCIDR is always the first entry of podCIDRs. If they differ, the client knows podCIDR only.
    if (isSet(spec?.podCIDR) && spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR];
    else if (spec !== undefined && !isSet(spec.podCIDR) && spec.podCIDRs?.[0] !== undefined)
      spec.podCIDR = spec.podCIDRs[0];
    const status = node.status ?? {};
    Object.assign(node, { status });
    status.daemonEndpoints ??= {};
    status.daemonEndpoints.kubeletEndpoint ??= { Port: 0 };
    const info: Partial<NodeSystemInfo> = status.nodeInfo ?? {};
    for (const field of NODE_INFO) info[field] ??= '';
    status.nodeInfo = info as NodeSystemInfo;
    if (status?.capacity !== undefined && status.allocatable === undefined) status.allocatable = { ...status.capacity };
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Node>('Status', 'The status of the node.', statusText),
    column<Node>('Roles', 'The roles of the node.', (node) => nodeRoles(node).join(',') || NONE),
    ageColumn,
    column<Node>('Version', 'Kubelet version of the node.', (node) => node.status?.nodeInfo?.kubeletVersion ?? ''),
    column<Node>('Internal-IP', 'Address of the node inside the cluster.', address('InternalIP'), wide),
    column<Node>('External-IP', 'Address of the node outside the cluster.', address('ExternalIP'), wide),
    column<Node>('OS-Image', 'Operating system of the node.', info('osImage', '<unknown>'), wide),
    column<Node>('Kernel-Version', 'Kernel of the node.', info('kernelVersion', '<unknown>'), wide),
    column<Node>(
      'Container-Runtime',
      'Container runtime of the node.',
      info('containerRuntimeVersion', '<unknown>'),
      wide,
    ),
  ],
  fieldSelectors: { 'spec.unschedulable': (node) => String(node.spec?.unschedulable ?? false) },
  extraSubresources: [
    { name: 'proxy', kind: 'NodeProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
  ],
};
