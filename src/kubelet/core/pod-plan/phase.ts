import type { Container, ContainerStatus, Pod } from '../../../api/generated/core/v1.ts';
import type { ContainerStatuses } from './container-status.ts';
import { restartsAfter } from './restart.ts';
import { containersOf, initContainersOf, isSidecar } from './snapshot.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/**
 * Computes the pod phase. `finished`: no container of the pod will run again. Source: pkg/kubelet/kubelet_pods.go
 * getPhase.
 */
export function phaseOf(pod: Pod, statuses: ContainerStatuses, finished: boolean): PodPhase {
  const counts = { pendingInit: 0, pendingSidecar: 0, failedInit: 0, lostInit: 0 };
  const initFailed = (container: Container, exitCode: number): void => {
    if (exitCode === 0) return;
    counts.failedInit += 1;
    if (!restartsAfter(pod, container, exitCode)) counts.lostInit += 1;
  };
  for (const container of initContainersOf(pod)) {
    const status = find(statuses.init, container.name);
    if (isSidecar(container)) {
      if (status?.state?.running === undefined || status.started !== true) counts.pendingSidecar += 1;
      continue;
    }
    const terminated = status?.state?.terminated;
    const before = status?.lastState?.terminated;
    if (terminated !== undefined) {
      initFailed(container, terminated.exitCode);
    } else if (status?.state?.waiting !== undefined && before !== undefined && before !== null) {
      initFailed(container, before.exitCode);
    } else {
      counts.pendingInit += 1;
    }
  }
  let waiting = 0;
  let running = 0;
  let stopped = 0;
  let succeeded = 0;
  let restarts = false;
  for (const container of containersOf(pod)) {
    const status = find(statuses.containers, container.name);
    if (status?.state?.running !== undefined) running += 1;
    else if (status?.state?.terminated !== undefined) {
      stopped += 1;
      if (status.state.terminated.exitCode === 0) succeeded += 1;
      if (restartsAfter(pod, container, status.state.terminated.exitCode)) restarts = true;
    } else if (status?.lastState?.terminated !== undefined) {
      stopped += 1;
      if (restartsAfter(pod, container, status.lastState.terminated.exitCode)) restarts = true;
    } else waiting += 1;
  }
  if (counts.lostInit > 0) return 'Failed';
  const begun = running > 0 || stopped > 0;
  if (counts.pendingInit > 0 || counts.failedInit > 0 || (counts.pendingSidecar > 0 && !begun)) return 'Pending';
  if (waiting > 0) return 'Pending';
  if (running > 0) return 'Running';
  if (stopped === 0) return 'Pending';
  if (finished) return stopped === succeeded ? 'Succeeded' : 'Failed';
  if (restarts) return 'Running';
  // Sidecars are still being stopped, so the pod has not finished yet.
  const sidecarRuns = initContainersOf(pod).some(
    (container) => isSidecar(container) && find(statuses.init, container.name)?.state?.running !== undefined,
  );
  if (sidecarRuns) return 'Running';
  if (stopped === succeeded) return 'Succeeded';
  return 'Failed';
}

const find = (statuses: readonly ContainerStatus[], name: string): ContainerStatus | undefined =>
  statuses.find((status) => status.name === name);

/** Whether the phase never changes again. */
export const isFinal = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

/** Age of a pod that an earlier kubelet started; 0 for a new pod, and for a start time in the future. */
export const podAgeMs = ({ status }: Pod, nowMs: number): number =>
  Math.max(0, nowMs - (Date.parse(status?.startTime ?? '') || nowMs));
