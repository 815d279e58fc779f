/** Pod of a daemon set for a node, with its tolerations and node affinity. Source: upstream's daemon/util. */
import type { DaemonSet } from '../../../api/generated/apps/v1.ts';
import type { NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration } from '../../../api/generated/core/v1.ts';
import { controllerReference } from '../../framework/core/ownership.ts';

export const REVISION_HASH = 'controller-revision-hash';
export const TEMPLATE_GENERATION = 'pod-template-generation';
const DEPRECATED_GENERATION = 'deprecated.daemonset.template.generation';

const TOLERATIONS: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];
const HOST_NETWORK_TOLERATION: Toleration = {
  key: 'node.kubernetes.io/network-unavailable',
  operator: 'Exists',
  effect: 'NoSchedule',
};

export function daemonPod(set: DaemonSet, node: string, hash: string): Pod {
  const template = set.spec?.template;
  const labels: Record<string, string> = { ...template?.metadata?.labels, [REVISION_HASH]: hash };
  const generation = set.metadata?.annotations?.[DEPRECATED_GENERATION];
  if (generation !== undefined) labels[TEMPLATE_GENERATION] = generation;
  const annotations = template?.metadata?.annotations;
  const spec: PodSpec = { ...(template?.spec ?? { containers: [] }) };
  spec.tolerations = withDaemonTolerations(spec);
  spec.affinity = { ...spec.affinity, nodeAffinity: pinned(spec.affinity?.nodeAffinity, node) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: `${set.metadata?.name ?? ''}-`,
      namespace: set.metadata?.namespace ?? '',
      labels,
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ownerReferences: [controllerReference(set, { group: 'apps', version: 'v1', kind: 'DaemonSet' })],
    },
    spec,
  };
}

function withDaemonTolerations(spec: PodSpec): Toleration[] {
  const tolerations = [...(spec.tolerations ?? [])];
  const wanted = spec.hostNetwork === true ? [...TOLERATIONS, HOST_NETWORK_TOLERATION] : TOLERATIONS;
  for (const toleration of wanted) {
    const isThere = tolerations.some(
      (each) =>
        each.key === toleration.key &&
        each.operator === toleration.operator &&
        each.effect === toleration.effect &&
        (each.value ?? '') === '',
    );
    if (!isThere) tolerations.push({ ...toleration });
  }
  return tolerations;
}

/**
 * Restricts a node affinity to one node. The node name is added to each term, so that the template's own requirements
 * also apply. The scheduler places the pod.
 */
function pinned(affinity: NodeAffinity | undefined, node: string): NodeAffinity {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node] }];
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const nodeSelectorTerms: NodeSelectorTerm[] =
    terms.length === 0 ? [{ matchFields }] : terms.map((term) => ({ ...term, matchFields }));
  return { ...affinity, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
}

/** Node on which a daemon pod runs or for which it is intended. */
export function nodeOfDaemonPod(pod: Pod): string | undefined {
  if ((pod.spec?.nodeName ?? '') !== '') return pod.spec?.nodeName;
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  for (const term of terms ?? []) {
    for (const field of term.matchFields ?? []) {
      if (field.key === 'metadata.name' && field.operator === 'In' && field.values?.length === 1)
        return field.values[0];
    }
  }
  return undefined;
}
