/** API objects of revisions: reports of hosts, `revision-status-N`, installer pods and operator status. */

import type { ConfigMap, Pod } from '../../api/generated/core/v1.ts';
import { transitionTime } from '../../api/meta/conditions.ts';
import type { ResourceType } from '../../api/meta/object.ts';
import { decodeJson, number, object, own } from '../../base/decode.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { NodeStatus, OperatorCondition, StaticPodOperator } from '../operators/kinds/operator/index.ts';
import type { NodeProgress, NodeReport, Revision, RevisionPhase, RevisionPlan } from './core/index.ts';
import { OPERANDS, type Operand } from './port.ts';

const KINDS: Readonly<Record<Operand, string>> = {
  etcd: 'Etcd',
  'kube-apiserver': 'KubeAPIServer',
  'kube-controller-manager': 'KubeControllerManager',
  'kube-scheduler': 'KubeScheduler',
};

export function operatorType(operand: Operand): ResourceType<StaticPodOperator> {
  const kind = KINDS[operand];
  return { group: 'operator.openshift.io', version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced: false };
}

export const namespaceOf = (operand: Operand): string => `openshift-${operand}`;
export const OPERATOR_NAME = 'cluster';
export const OPERATOR_VERSION = 'operator.openshift.io/v1';

/** Labels of the objects that the leader watches: reports, revisions and installer pods. */
export const REPORT_LABEL = 'hyperedge.dev/revision-report';
export const REVISION_LABEL = 'hyperedge.dev/revision-status';
export const POD_LABEL = 'hyperedge.dev/revision-pod';
const REPORT_NAMESPACE = 'kube-system';
const PREFIX = 'revisions-';

/**
 * Settings of an operator object that override the files of each host, as JSON. Empty if the object has no such
 * settings.
 */
export function overlayOf({ spec = {} }: StaticPodOperator): string {
  const { forceRedeploymentReason = '', logLevel = '', unsupportedConfigOverrides } = spec;
  const settings = {
    ...(forceRedeploymentReason === '' ? {} : { forceRedeploymentReason }),
    ...(logLevel === '' || logLevel === 'Normal' ? {} : { logLevel }),
    ...(isEmpty(unsupportedConfigOverrides) ? {} : { unsupportedConfigOverrides }),
  };
  return isEmpty(settings) ? '' : JSON.stringify(settings);
}

const isEmpty = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || Object.keys(value).length === 0;

export function reportMap(node: string, reports: ReadonlyMap<Operand, NodeReport>): ConfigMap {
  return {
    metadata: { name: `${PREFIX}${node}`, namespace: REPORT_NAMESPACE, labels: { [REPORT_LABEL]: 'true' } },
    data: Object.fromEntries([...reports].map(([operand, report]) => [operand, JSON.stringify(report)])),
  };
}

const REPORT = own<NodeReport>(object({ attempt: object({ revision: number }) }));

/** Reads the reports. Invalid reports are ignored. */
export function reportsOf(map: ConfigMap): { readonly node: string; readonly of: ReadonlyMap<Operand, NodeReport> } {
  const found = OPERANDS.flatMap((operand): [Operand, NodeReport][] => {
    try {
      return [[operand, decodeJson(REPORT, map.data?.[operand] ?? '', operand)]];
    } catch {
      return [];
    }
  });
  return { node: (map.metadata?.name ?? '').slice(PREFIX.length), of: new Map(found) };
}

export const revisionMapName = (revision: number): string => `revision-status-${revision}`;

export function revisionMap(operand: Operand, { revision, phase, reason, overlay }: Revision): ConfigMap {
  return {
    metadata: {
      name: revisionMapName(revision),
      namespace: namespaceOf(operand),
      labels: { [REVISION_LABEL]: 'true' },
    },
    data: { revision: String(revision), status: phase, reason, settings: overlay },
  };
}

const PHASES: readonly RevisionPhase[] = ['InProgress', 'Succeeded', 'Failed', 'Abandoned'];

export function revisionOf({ data = {} }: ConfigMap): Revision | undefined {
  const revision = Number(data['revision']);
  const phase = PHASES.find((each) => each === data['status']);
  if (!Number.isSafeInteger(revision) || revision <= 0 || phase === undefined) return undefined;
  return { revision, phase, reason: data['reason'] ?? '', overlay: data['settings'] ?? '' };
}

export function progressOf({ status }: StaticPodOperator): NodeProgress[] {
  return (status?.nodeStatuses ?? []).map((each) => ({
    nodeName: each.nodeName,
    currentRevision: each.currentRevision ?? 0,
    targetRevision: each.targetRevision ?? 0,
    lastFailedRevision: each.lastFailedRevision ?? 0,
    lastFailedTimeMs: each.lastFailedTime === undefined ? 0 : Date.parse(each.lastFailedTime),
    lastFailedReason: each.lastFailedReason ?? '',
    lastFailedCount: each.lastFailedCount ?? 0,
    lastFallbackCount: each.lastFallbackCount ?? 0,
    errors: each.lastFailedRevisionErrors ?? [],
  }));
}

function nodeStatus(each: NodeProgress): NodeStatus {
  return {
    nodeName: each.nodeName,
    currentRevision: each.currentRevision,
    ...(each.targetRevision === 0 ? {} : { targetRevision: each.targetRevision }),
    ...(each.lastFailedRevision === 0
      ? {}
      : {
          lastFailedRevision: each.lastFailedRevision,
          lastFailedTime: timestamp(each.lastFailedTimeMs),
          lastFailedReason: each.lastFailedReason,
          lastFailedCount: each.lastFailedCount,
          lastFallbackCount: each.lastFallbackCount,
          lastFailedRevisionErrors: [...each.errors],
        }),
  };
}

/** Status of an operator's object. Unchanged conditions keep their transition times. */
export function statusOf(
  operator: StaticPodOperator,
  plan: RevisionPlan,
  nowMs: number,
): NonNullable<StaticPodOperator['status']> {
  const latest = plan.revisions.at(-1);
  const before = new Map((operator.status?.conditions ?? []).map((each) => [each.type, each]));
  const conditions = conditionsOf(plan).map((each): OperatorCondition => {
    const old = before.get(each.type);
    return { ...each, lastTransitionTime: transitionTime(old, each.status, timestamp(nowMs)) };
  });
  return {
    ...operator.status,
    observedGeneration: operator.metadata?.generation ?? 0,
    latestAvailableRevision: plan.latest,
    ...(latest === undefined ? {} : { latestAvailableRevisionReason: latest.reason }),
    readyReplicas: plan.progress.filter(({ currentRevision }) => currentRevision === plan.latest).length,
    nodeStatuses: plan.progress.map(nodeStatus),
    conditions,
  };
}

/** Conditions of an operator's status. Source: library-go, installer controller. */
function conditionsOf({ latest, progress }: RevisionPlan): OperatorCondition[] {
  const active = progress.filter(({ currentRevision }) => currentRevision > 0).length;
  const counts = new Map<number, number>();
  for (const { currentRevision } of progress) counts.set(currentRevision, (counts.get(currentRevision) ?? 0) + 1);
  const spread = [...counts]
    .sort(([left], [right]) => left - right)
    .map(([revision, nodes]) => `${nodes} nodes are at revision ${revision}`)
    .join('; ');
  const behind = progress.filter(({ currentRevision }) => currentRevision !== latest);
  const failed = progress.filter(({ lastFailedRevision }) => lastFailedRevision === latest && latest > 0);
  return [
    {
      type: 'StaticPodsAvailable',
      status: active > 0 ? 'True' : 'False',
      ...(active > 0 ? {} : { reason: 'ZeroNodesActive' }),
      message: `${active} nodes are active; ${spread}`,
    },
    {
      type: 'NodeInstallerProgressing',
      status: behind.length > 0 ? 'True' : 'False',
      ...(behind.length > 0 ? {} : { reason: 'AllNodesAtLatestRevision' }),
      message: behind.length > 0 ? `${spread}; the newest is ${latest}` : spread,
    },
    {
      type: 'NodeInstallerDegraded',
      status: failed.length > 0 ? 'True' : 'False',
      ...(failed.length > 0 ? { reason: 'InstallerPodFailed' } : {}),
      message: failed
        .map(({ nodeName, errors }) => `node ${nodeName} failed revision ${latest}: ${errors.join('; ')}`)
        .join('\n'),
    },
  ];
}

export type PodPhase = 'Running' | 'Succeeded' | 'Failed';

/** Pods that show in `oc get pods` which revisions the hosts install. The host processes do the work, not the pods. */
export function podsOf(plan: RevisionPlan): ReadonlyMap<string, { readonly node: string; readonly phase: PodPhase }> {
  const pods = new Map<string, { node: string; phase: PodPhase }>();
  for (const each of plan.progress) {
    const node = each.nodeName;
    const installer = (revision: number, failures: number): string =>
      failures === 0 ? `installer-${revision}-${node}` : `installer-${revision}-retry-${failures}-${node}`;
    const { currentRevision: current, targetRevision: target, lastFailedRevision: failed, lastFailedCount } = each;
    const failures = failed === plan.latest ? lastFailedCount : 0;
    if (failed > 0) pods.set(installer(failed, lastFailedCount - 1), { node, phase: 'Failed' });
    if (target > 0) pods.set(installer(target, failures), { node, phase: 'Running' });
    // A host starts with the first revision, so this revision has no installer pod.
    if (current > 1) {
      pods.set(installer(current, 0), { node, phase: 'Succeeded' });
      pods.set(`revision-pruner-${current}-${node}`, { node, phase: 'Succeeded' });
    }
  }
  return pods;
}

export function shownPod(operand: Operand, name: string, image: string): Pod {
  return {
    metadata: {
      name,
      namespace: namespaceOf(operand),
      labels: { app: name.startsWith('installer') ? 'installer' : 'pruner', [POD_LABEL]: 'true' },
    },
    spec: {
      // No scheduler has this name, so the pod is never started. The host process does the work.
      schedulerName: 'hyperedge-revisions',
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      containers: [{ name: name.startsWith('installer') ? 'installer' : 'pruner', image, imagePullPolicy: 'Never' }],
      tolerations: [{ operator: 'Exists' }],
    },
  };
}

/** Revision number in the name of an installer or pruner pod; NaN for other names. */
export const revisionOfPod = (name: string): number => Number(/^(?:installer|revision-pruner)-(\d+)-/.exec(name)?.[1]);
