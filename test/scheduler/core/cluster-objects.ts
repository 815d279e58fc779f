import type { Container, Node, Pod, PodSpec, Taint } from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { Cluster, type ClusterView } from '../../../src/scheduler/core/cluster.ts';
import type { DisruptionBudget } from '../../../src/scheduler/core/preemption.ts';
import { DEFAULT_PROFILE, type ProfileSettings, profileOf } from '../../../src/scheduler/core/profile.ts';
import { type Decision, schedulePod } from '../../../src/scheduler/core/schedule.ts';

let serial = 0;

export interface NodeFacts {
  cpu?: string;
  memory?: string;
  pods?: string;
  labels?: Record<string, string>;
  taints?: Taint[];
  unschedulable?: boolean;
  images?: { names: string[]; sizeBytes: number }[];
}

export function node(name: string, facts: NodeFacts = {}): Node {
  return {
    metadata: { name, uid: `node-${name}`, labels: { 'kubernetes.io/hostname': name, ...facts.labels } },
    spec: {
      ...(facts.taints === undefined ? {} : { taints: facts.taints }),
      ...(facts.unschedulable === undefined ? {} : { unschedulable: facts.unschedulable }),
    },
    status: {
      allocatable: { cpu: facts.cpu ?? '4', memory: facts.memory ?? '8Gi', pods: facts.pods ?? '110' },
      ...(facts.images === undefined ? {} : { images: facts.images }),
    },
  };
}

export interface PodFacts {
  name?: string;
  namespace?: string;
  cpu?: string;
  memory?: string;
  labels?: Record<string, string>;
  node?: string;
  priority?: number;
  hostPort?: number;
  startTime?: string;
  spec?: Partial<PodSpec>;
}

export function pod(facts: PodFacts = {}): Pod {
  const uid = `pod-${++serial}`;
  const requests: Record<string, string> = {};
  if (facts.cpu !== undefined) requests['cpu'] = facts.cpu;
  if (facts.memory !== undefined) requests['memory'] = facts.memory;
  const container: Container = { name: 'c', image: 'i', resources: { requests } };
  if (facts.hostPort !== undefined) container.ports = [{ containerPort: 80, hostPort: facts.hostPort }];
  return {
    metadata: { name: facts.name ?? uid, namespace: facts.namespace ?? 'ns', uid, labels: facts.labels ?? {} },
    spec: {
      containers: [container],
      ...(facts.node === undefined ? {} : { nodeName: facts.node }),
      ...(facts.priority === undefined ? {} : { priority: facts.priority }),
      ...facts.spec,
    },
    ...(facts.startTime === undefined ? {} : { status: { startTime: facts.startTime } }),
  };
}

export function cluster(nodes: readonly Node[], pods: readonly Pod[] = []): Cluster {
  const made = new Cluster();
  for (const each of nodes) made.setNode(each);
  for (const each of pods) made.setPod(each);
  return made;
}

export function view(of: Cluster, more: Partial<ClusterView> = {}): ClusterView {
  return { ...of.view({ namespaceLabels: () => ({}), volumes: undefined }), ...more };
}

export function decide(
  candidate: Pod,
  of: Cluster,
  more: Partial<ClusterView> & {
    budgets?: DisruptionBudget[];
    random?: () => number;
    profile?: Partial<ProfileSettings>;
  } = {},
): Decision {
  const { budgets = [], random = () => 0, profile = {}, ...rest } = more;
  return schedulePod({
    pod: podInfoOf(candidate),
    cluster: of,
    view: view(of, rest),
    profile: profileOf({ ...DEFAULT_PROFILE, ...profile }),
    budgets,
    random,
  });
}

export function boundTo(decision: Decision): string | undefined {
  return decision.kind === 'bind' ? decision.node : undefined;
}

export function messageOf(decision: Decision): string {
  return decision.kind === 'unschedulable' ? decision.message : `bound to ${decision.node}`;
}
