/** Filters that depend only on one node and its pods. */
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { matchesNode } from '../../../api/podspec/scheduling/node-affinity.ts';
import { CPU, EPHEMERAL_STORAGE, MEMORY, PODS } from '../../../api/podspec/scheduling/node-resources.ts';
import { type HostPort, portsConflict } from '../../../api/podspec/scheduling/pod-info.ts';
import { untoleratedTaint } from '../../../api/podspec/scheduling/tolerations.ts';
import { isFromDevices } from '../devices/extended-claims.ts';
import type { NodeInfo } from '../node-info.ts';
import { type Filter, type FilterFactory, reject, rejectUnresolvable } from './filter.ts';

const NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports";
const UNSCHEDULABLE_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

export const nodeUnschedulable: Filter = (pod) => (node) => {
  if (node.node.spec?.unschedulable !== true) return undefined;
  const blocked = untoleratedTaint([UNSCHEDULABLE_TAINT], pod.pod.spec?.tolerations, ['NoSchedule']) !== undefined;
  return blocked ? rejectUnresolvable('NodeUnschedulable', 'node(s) were unschedulable') : undefined;
};

export const nodeName: Filter = (pod) => {
  const wanted = pod.pod.spec?.nodeName ?? '';
  if (wanted === '') return undefined;
  return (node) =>
    node.name === wanted ? undefined : rejectUnresolvable('NodeName', "node(s) didn't match the requested node name");
};

export const taintToleration: Filter = (pod) => (node) => {
  const taint = untoleratedTaint(node.node.spec?.taints, pod.pod.spec?.tolerations, ['NoSchedule', 'NoExecute']);
  if (taint === undefined) return undefined;
  const reason = `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
  return rejectUnresolvable('TaintToleration', reason);
};

export const nodeAffinity: FilterFactory =
  ({ addedAffinity }) =>
  (pod) => {
    const spec = pod.pod.spec;
    const added = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    if (
      added === undefined &&
      spec?.nodeSelector === undefined &&
      spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution === undefined
    ) {
      return undefined;
    }
    return (node) => {
      if (added?.some((term) => matchesTerm(term, node.node)) === false) {
        return rejectUnresolvable('NodeAffinity', "node(s) didn't match scheduler-enforced node affinity");
      }
      return matchesNode(pod.pod, node.node)
        ? undefined
        : rejectUnresolvable('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
    };
  };

export const nodePorts: Filter = (pod) => {
  if (pod.hostPorts.length === 0) return undefined;
  const overlaps = (used: readonly HostPort[]): boolean =>
    used.some((each) => pod.hostPorts.some((wanted) => portsConflict(each, wanted)));
  return (node) => {
    // The node itself uses the port, so evicting pods cannot free it.
    if (overlaps(node.reservedPorts)) return rejectUnresolvable('NodePorts', NO_FREE_PORTS);
    for (const other of node.pods.values()) {
      if (overlaps(other.hostPorts)) return reject('NodePorts', NO_FREE_PORTS);
    }
    return undefined;
  };
};

/** Resources that come first in messages, in this order. It is the same in upstream. */
const ORDER = [CPU, MEMORY, EPHEMERAL_STORAGE];

export const nodeResourcesFit: FilterFactory = ({ ignoredResources, ignoredResourceGroups }) => {
  const isIgnored = (name: string): boolean =>
    ignoredResources.includes(name) || ignoredResourceGroups.includes(name.split('/', 1)[0] ?? '');
  return (pod, { devices }) => {
    const names = [...pod.requests.keys()].filter(
      (name) => (pod.requests.get(name) ?? 0) > 0 && name !== PODS && !isIgnored(name),
    );
    const sorted = [...ORDER.filter((name) => names.includes(name)), ...names.filter((name) => !ORDER.includes(name))];
    const amounts = sorted.map((name) => ({ name, wanted: pod.requests.get(name) ?? 0 }));
    return (node) => {
      let reasons: string[] | undefined;
      let unresolvable = false;
      if (node.pods.size + 1 > allocatablePods(node)) reasons = ['Too many pods'];
      for (const { name, wanted } of amounts) {
        const allocatable = node.allocatable.get(name) ?? 0;
        if (wanted <= allocatable - (node.requested.get(name) ?? 0)) continue;
        if (isFromDevices(name, node.allocatable, devices)) continue;
        reasons ??= [];
        reasons.push(`Insufficient ${name}`);
        if (wanted > allocatable) unresolvable = true;
      }
      return reasons === undefined ? undefined : { filter: 'NodeResourcesFit', reasons, unresolvable };
    };
  };
};

const allocatablePods = (node: NodeInfo): number => node.allocatable.get(PODS) ?? 0;
