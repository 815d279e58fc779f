/**
 * Computes the PodStatus to report from snapshot and plan. Source: pkg/kubelet/kubelet_pods.go generateAPIPodStatus.
 */
import type { Pod, PodCondition, PodStatus } from '../../../api/generated/core/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { podConditions } from './conditions.ts';
import { containerStatuses } from './container-status.ts';
import { phaseOf } from './phase.ts';
import type { PodPlan } from './plan.ts';
import { type RestartRound, restartRound } from './restart.ts';
import { type PodSnapshot, readySandboxes } from './snapshot.ts';

/** Reason why a pod does not have the requested resources (KEP-1287). */
export interface ResizeState {
  readonly type: 'PodResizePending' | 'PodResizeInProgress';
  /** Absent while the request is being applied. */
  readonly reason?: 'Deferred' | 'Infeasible' | 'Error';
  readonly message?: string;
}

export interface StatusInput {
  readonly snapshot: PodSnapshot;
  readonly plan: PodPlan;
  /** Last reported status; initially the one in the API. */
  readonly previous: PodStatus;
  readonly hostIps: readonly string[];
  readonly qosClass: string;
  readonly runtimeName: string;
  readonly recursiveReadOnlyMounts: boolean;
  /** Reason for which the pod was rejected or evicted. */
  readonly failure?: { readonly reason: string; readonly message: string };
  /** Reason for which the pod waits indefinitely. Its phase stays Pending. */
  readonly blocked?: { readonly reason: string; readonly message: string };
  /** Whether the pod was rejected at admission, so it never had containers. */
  readonly rejected?: boolean;
  readonly resize?: ResizeState;
  readonly nowMs: number;
}

/** Reason of pods terminated by a shutdown of their node (KEP-2000). */
export const TERMINATED = 'Terminated';
const DISRUPTION_TARGET = 'DisruptionTarget';
const DISRUPTIONS: readonly string[] = ['Evicted', TERMINATED];

/** Conditions that are present only while true. */
export const RESIZE_CONDITIONS: readonly string[] = ['PodResizePending', 'PodResizeInProgress'];
const OWNED = new Set([
  ...['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'],
  ...RESIZE_CONDITIONS,
  'AllContainersRestarting',
]);

/**
 * Whether the kubelet owns the condition. Other conditions, such as readiness gates, are only read. Source:
 * pkg/kubelet/types/pod_status.go.
 */
export const isKubeletCondition = (type: string): boolean => OWNED.has(type) || type === DISRUPTION_TARGET;

export function podStatus(input: StatusInput): PodStatus {
  const { snapshot, plan, previous, nowMs } = input;
  const { pod } = snapshot;
  const others = foreignConditions(pod, previous);
  const failure =
    input.failure ??
    (plan.deadlineExceeded
      ? {
          reason: 'DeadlineExceeded',
          message: 'Pod was active on the node longer than the specified deadline',
        }
      : undefined);
  const statuses = containerStatuses({
    snapshot,
    waiting: plan.waiting,
    previous: {
      init: previous.initContainerStatuses ?? [],
      containers: previous.containerStatuses ?? [],
      ephemeral: previous.ephemeralContainerStatuses ?? [],
    },
    runtimeName: input.runtimeName,
    recursiveReadOnlyMounts: input.recursiveReadOnlyMounts,
    finished: plan.finished,
  });
  const [sandbox] = readySandboxes(snapshot.sandboxes);
  const round = snapshot.termination === undefined ? restartRound(pod, snapshot.containers) : undefined;
  let phase = phaseOf(pod, statuses, plan.finished);
  if (previous.phase === 'Failed' || previous.phase === 'Succeeded') phase = previous.phase;
  else if (failure !== undefined) phase = 'Failed';
  else if (plan.finished && phase !== 'Succeeded') phase = 'Failed';
  else if (!plan.finished && round?.pending === true) phase = previous.phase === 'Pending' ? 'Pending' : 'Running';
  const hostNetwork = pod.spec?.hostNetwork === true;
  const ips = sandbox === undefined ? [] : hostNetwork ? input.hostIps : sandbox.ips;
  const sandboxReady = sandbox !== undefined && (hostNetwork || sandbox.ips.length > 0);
  const conditions = podConditions({
    pod,
    phase,
    statuses,
    sandboxReady,
    previous: [...(previous.conditions ?? []).filter(({ type }) => OWNED.has(type)), ...others],
    nowMs,
  });
  const podIps =
    ips.length > 0 ? ips : (previous.podIPs ?? []).flatMap((each) => (each.ip === undefined ? [] : [each.ip]));
  const keepIps =
    ips.length > 0 ||
    plan.finished ||
    phase === 'Succeeded' ||
    phase === 'Failed' ||
    snapshot.termination !== undefined;
  const status: PodStatus = {
    ...observedGeneration(pod),
    phase,
    conditions: [
      ...conditions,
      ...resizeCondition(input),
      ...disruptionCondition(input),
      ...roundCondition(input, round),
      ...others,
    ],
    ...(failure ?? input.blocked ?? reported(previous)),
    qosClass: input.qosClass,
    startTime: previous.startTime ?? timestamp(snapshot.startedAtMs),
  };
  if (input.rejected === true) return status;
  status.containerStatuses = statuses.containers;
  const [hostIp] = input.hostIps;
  if (hostIp !== undefined) {
    status.hostIP = hostIp;
    status.hostIPs = input.hostIps.map((ip) => ({ ip }));
  }
  const [podIp] = keepIps ? podIps : [];
  if (podIp !== undefined) {
    status.podIP = podIp;
    status.podIPs = podIps.map((ip) => ({ ip }));
  }
  if (statuses.init.length > 0) status.initContainerStatuses = statuses.init;
  if (statuses.ephemeral.length > 0) status.ephemeralContainerStatuses = statuses.ephemeral;
  return status;
}

/**
 * Conditions of other owners from the API, such as readiness gates. A DisruptionTarget condition of the last report is
 * added if the API does not have it yet.
 */
function foreignConditions({ status }: Pod, { conditions = [] }: PodStatus): PodCondition[] {
  const current = (status?.conditions ?? []).filter(({ type }) => !OWNED.has(type));
  const disruption = conditions.find(({ type }) => type === DISRUPTION_TARGET);
  return disruption === undefined || current.some(({ type }) => type === DISRUPTION_TARGET)
    ? current
    : [...current, disruption];
}

/** Returns `status` with the phase, reason and message of `other`. */
export function withPhaseOf(other: PodStatus, status: PodStatus): PodStatus {
  const { phase: _phase, reason: _reason, message: _message, ...rest } = status;
  return { ...rest, ...(other.phase === undefined ? {} : { phase: other.phase }), ...reported(other) };
}

function reported({ reason, message }: PodStatus): Pick<PodStatus, 'reason' | 'message'> {
  return { ...(reason === undefined ? {} : { reason }), ...(message === undefined ? {} : { message }) };
}

/** Source: KEP-3329; pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/nodeshutdown. */
function disruptionCondition({ snapshot, failure, rejected, previous, nowMs }: StatusInput): PodCondition[] {
  if (failure === undefined || !DISRUPTIONS.includes(failure.reason) || rejected === true) return [];
  if (previous.conditions?.some(({ type }) => type === DISRUPTION_TARGET) === true) return [];
  const { message } = failure;
  return [
    {
      type: DISRUPTION_TARGET,
      ...observedGeneration(snapshot.pod),
      status: 'True',
      reason: 'TerminationByKubelet',
      message,
      lastTransitionTime: timestamp(nowMs),
    },
  ];
}

/** Condition that is present after the first restart of all containers. Source: KEP-5532. */
function roundCondition({ snapshot, previous, nowMs }: StatusInput, round: RestartRound | undefined): PodCondition[] {
  const type = 'AllContainersRestarting';
  const before = previous.conditions?.find((condition) => condition.type === type);
  if (round === undefined && before === undefined) return [];
  const status = round !== undefined && (round.old.length > 0 || round.pending) ? 'True' : 'False';
  const lastTransitionTime = transitionTime(before, status, timestamp(nowMs));
  const generation = observedGeneration(snapshot.pod);
  return [{ type, ...generation, status, lastTransitionTime }];
}

/** Condition of a resize. A resize in progress keeps the generation with which it started. */
function resizeCondition({ snapshot, resize, previous, nowMs }: StatusInput): PodCondition[] {
  if (resize === undefined) return [];
  const before = previous.conditions?.find((condition) => condition.type === resize.type);
  const begun = resize.type === 'PodResizeInProgress' ? before?.observedGeneration : undefined;
  const generation = begun === undefined ? observedGeneration(snapshot.pod) : { observedGeneration: begun };
  const lastTransitionTime = before?.lastTransitionTime ?? timestamp(nowMs);
  return [{ ...resize, ...generation, status: 'True', lastTransitionTime }];
}
