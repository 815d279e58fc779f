import type { ContainerStatus, Pod, PodCondition } from '../../../api/generated/core/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ContainerStatuses } from './container-status.ts';
import type { PodPhase } from './phase.ts';
import { containersOf, initContainersOf, isSidecar } from './snapshot.ts';

type ConditionState = Pick<PodCondition, 'status' | 'reason' | 'message'>;

export interface ConditionInput {
  readonly pod: Pod;
  readonly phase: PodPhase;
  readonly statuses: ContainerStatuses;
  /** Whether a sandbox is ready and has an address. */
  readonly sandboxReady: boolean;
  /** Previous conditions, including those of other owners (readiness gates). */
  readonly previous: readonly PodCondition[];
  readonly nowMs: number;
}

/** The five conditions that a kubelet owns. Source: pkg/kubelet/status/generate.go. */
export function podConditions(input: ConditionInput): PodCondition[] {
  const { pod, phase, statuses } = input;
  const containersReady = containersReadyState(pod, phase, statuses);
  const states: [string, ConditionState][] = [
    ['PodReadyToStartContainers', { status: input.sandboxReady ? 'True' : 'False' }],
    ['Initialized', initializedState(pod, phase, statuses)],
    ['Ready', readyState(pod, containersReady, input.previous)],
    ['ContainersReady', containersReady],
    ['PodScheduled', { status: 'True' }],
  ];
  return states.map(([type, state]) => withTimes(type, state, input));
}

function withTimes(type: string, state: ConditionState, input: ConditionInput): PodCondition {
  const before = input.previous.find((condition) => condition.type === type);
  return {
    type,
    ...observedGeneration(input.pod),
    ...state,
    lastTransitionTime: transitionTime(before, state.status, timestamp(input.nowMs)),
  };
}

function containersReadyState(pod: Pod, phase: PodPhase, statuses: ContainerStatuses): ConditionState {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const sidecars = initContainersOf(pod).filter(isSidecar);
  const unready = [
    ...sidecars.filter((container) => statusOf(statuses.init, container.name)?.ready !== true),
    ...containersOf(pod).filter((container) => statusOf(statuses.containers, container.name)?.ready !== true),
  ].map((container) => container.name);
  if (unready.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  };
}

function readyState(pod: Pod, containersReady: ConditionState, conditions: readonly PodCondition[]): ConditionState {
  if (containersReady.status !== 'True') return containersReady;
  const missing: string[] = [];
  for (const gate of pod.spec?.readinessGates ?? []) {
    const condition = conditions.find((each) => each.type === gate.conditionType);
    if (condition === undefined) {
      missing.push(`corresponding condition of pod readiness gate "${gate.conditionType}" does not exist.`);
    } else if (condition.status !== 'True') {
      missing.push(`the status of pod readiness gate "${gate.conditionType}" is not "True", but ${condition.status}`);
    }
  }
  if (missing.length === 0) return { status: 'True' };
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: missing.join(', ') };
}

function initializedState(pod: Pod, phase: PodPhase, statuses: ContainerStatuses): ConditionState {
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' };
  const begun = statuses.containers.some(
    (status) => status.state?.running !== undefined || status.state?.terminated !== undefined,
  );
  if (begun) return { status: 'True' };
  const incomplete = initContainersOf(pod)
    .filter((container) => {
      const status = statusOf(statuses.init, container.name);
      return isSidecar(container) ? status?.started !== true : status?.ready !== true;
    })
    .map((container) => container.name);
  if (incomplete.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incomplete.join(' ')}]`,
  };
}

const statusOf = (statuses: readonly ContainerStatus[], name: string): ContainerStatus | undefined =>
  statuses.find((status) => status.name === name);
