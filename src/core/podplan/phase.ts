import type { ContainerStatus, Pod } from 'kubernetes-types/core/v1';
import type { ContainerStatuses } from './container-status.ts';
import { containersOf, initContainersOf, isSidecar, restartPolicyOf } from './snapshot.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/** `finished`: the pod's containers are over for good. Source: pkg/kubelet/kubelet_pods.go getPhase. */
export function phaseOf(pod: Pod, statuses: ContainerStatuses, finished: boolean): PodPhase {
  const policy = restartPolicyOf(pod);
  const counts = { pendingInit: 0, pendingSidecar: 0, failedInit: 0 };
  for (const container of initContainersOf(pod)) {
    const status = find(statuses.init, container.name);
    if (isSidecar(container)) {
      if (status?.state?.running === undefined || status.started !== true) counts.pendingSidecar += 1;
      continue;
    }
    const terminated = status?.state?.terminated;
    const before = status?.lastState?.terminated;
    if (terminated !== undefined) {
      if (terminated.exitCode !== 0) counts.failedInit += 1;
    } else if (status?.state?.waiting !== undefined && before !== undefined && before !== null) {
      if (before.exitCode !== 0) counts.failedInit += 1;
    } else {
      counts.pendingInit += 1;
    }
  }
  let waiting = 0;
  let running = 0;
  let stopped = 0;
  let succeeded = 0;
  for (const container of containersOf(pod)) {
    const status = find(statuses.containers, container.name);
    if (status?.state?.running !== undefined) running += 1;
    else if (status?.state?.terminated !== undefined) {
      stopped += 1;
      if (status.state.terminated.exitCode === 0) succeeded += 1;
    } else if (status?.lastState?.terminated !== undefined) stopped += 1;
    else waiting += 1;
  }
  if (counts.failedInit > 0 && policy === 'Never') return 'Failed';
  const begun = running > 0 || stopped > 0;
  if (counts.pendingInit > 0 || counts.failedInit > 0 || (counts.pendingSidecar > 0 && !begun)) return 'Pending';
  if (waiting > 0) return 'Pending';
  if (running > 0) return 'Running';
  if (stopped === 0) return 'Pending';
  if (finished) return stopped === succeeded ? 'Succeeded' : 'Failed';
  if (policy === 'Always') return 'Running';
  // Sidecars are still being stopped: the pod is over only with them.
  const sidecarRuns = initContainersOf(pod).some(
    (container) => isSidecar(container) && find(statuses.init, container.name)?.state?.running !== undefined,
  );
  if (sidecarRuns) return 'Running';
  if (stopped === succeeded) return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}

const find = (statuses: readonly ContainerStatus[], name: string): ContainerStatus | undefined =>
  statuses.find((status) => status.name === name);
