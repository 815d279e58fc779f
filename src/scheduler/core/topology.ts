/**
 * Topology spread constraints, parsed once for the filter and the scorer. Source: KEP-895, KEP-3022, KEP-3094,
 * KEP-3243.
 */
import type { Pod, TopologySpreadConstraint } from '../../api/generated/core/v1.ts';
import { matchesNode } from '../../api/podspec/scheduling/node-affinity.ts';
import { type PodInfo, safeSelector, withLabelKeys } from '../../api/podspec/scheduling/pod-info.ts';
import { untoleratedTaint } from '../../api/podspec/scheduling/tolerations.ts';
import { type LabelSelector, matchesLabels } from '../../base/selector.ts';
import type { ClusterView } from './cluster.ts';
import type { NodeInfo } from './node-info.ts';
import type { PluginArgs } from './plugin-args.ts';
import { type PodSelection, selectionInNamespace } from './pod-selection.ts';

export interface SpreadConstraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly selection: PodSelection;
  readonly selectsSelf: boolean;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
}

export interface SpreadConstraints {
  readonly constraints: readonly SpreadConstraint[];
  /** Whether upstream's system defaults apply. With them, nodes without the topology labels are scored too. */
  readonly areSystemDefaults: boolean;
}

/**
 * Constraints of the pod. If the pod has none and belongs to a service or controller, the defaults of the profile
 * apply.
 */
export function constraintsOf(
  pod: PodInfo,
  whenUnsatisfiable: string,
  { defaultConstraints }: Pick<PluginArgs, 'defaultConstraints'>,
  view: ClusterView,
): SpreadConstraints {
  const own = pod.pod.spec?.topologySpreadConstraints ?? [];
  const areSystemDefaults = own.length === 0 && defaultConstraints === undefined;
  const wanted = (own.length > 0 ? own : (defaultConstraints ?? SYSTEM_DEFAULTS)).filter(
    (constraint) => constraint.whenUnsatisfiable === whenUnsatisfiable,
  );
  if (wanted.length === 0) return { constraints: [], areSystemDefaults };
  if (own.length > 0) {
    return { constraints: wanted.map((constraint) => readConstraint(constraint, pod)), areSystemDefaults };
  }
  const peers = view.peersOf?.(pod.pod) ?? [];
  if (peers.length === 0) return { constraints: [], areSystemDefaults };
  const selection = selectionInNamespace(pod.namespace, peers);
  const constraints = wanted.map((constraint) => ({
    ...readConstraint(constraint, pod),
    selection,
    selectsSelf: true,
  }));
  return { constraints, areSystemDefaults };
}

/** Upstream's system defaults, which spread the replicas of a service or set over hosts and zones. */
const SYSTEM_DEFAULTS: readonly TopologySpreadConstraint[] = [
  { topologyKey: 'kubernetes.io/hostname', maxSkew: 3, whenUnsatisfiable: 'ScheduleAnyway' },
  { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 5, whenUnsatisfiable: 'ScheduleAnyway' },
];

function readConstraint(constraint: TopologySpreadConstraint, pod: PodInfo): SpreadConstraint {
  const selector: LabelSelector = withLabelKeys(
    safeSelector(constraint.labelSelector),
    pod.pod,
    constraint.matchLabelKeys,
  );
  return {
    topologyKey: constraint.topologyKey,
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    selection: selectionInNamespace(pod.namespace, [selector]),
    selectsSelf: matchesLabels(selector, pod.pod.metadata?.labels),
    honorsAffinity: (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  };
}

/**
 * Whether all nodes with the constraint's label are counted. If so, the counts by domain suffice, and no single nodes
 * must be inspected.
 */
export function countsAllNodes(constraint: SpreadConstraint, { pod }: PodInfo): boolean {
  const { nodeSelector, affinity } = pod.spec ?? {};
  const isFree =
    nodeSelector === undefined && affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution === undefined;
  return !constraint.honorsTaints && (isFree || !constraint.honorsAffinity);
}

/** Whether a node is counted for this constraint. */
export function isEligible(constraint: SpreadConstraint, pod: Pod, node: NodeInfo): boolean {
  if (constraint.honorsAffinity && !matchesNode(pod, node.node)) return false;
  return (
    !constraint.honorsTaints ||
    untoleratedTaint(node.node.spec?.taints, pod.spec?.tolerations, ['NoSchedule', 'NoExecute']) === undefined
  );
}
