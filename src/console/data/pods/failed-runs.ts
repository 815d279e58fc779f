/** Runs of containers that failed, whose last output often names the cause. */
import type { ContainerStatus, Pod } from '../../../api/generated/core/v1.ts';

export interface LogRun {
  readonly container: string;
  /** Whether the log of the run before the present one is meant. */
  readonly isPrevious: boolean;
}

/** The failed runs of the containers of a pod, at most one for each container. */
export function failedRuns({ status }: Pod): readonly LogRun[] {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return statuses.flatMap((each) => failedRun(each) ?? []);
}

function failedRun({ name = '', state, lastState, ready }: ContainerStatus): LogRun | undefined {
  if (state?.terminated !== undefined && state.terminated.exitCode !== 0) return { container: name, isPrevious: false };
  // A container that waits for its next start has no run of its own; its log is that of the run before.
  if (state?.waiting?.reason === 'CrashLoopBackOff') return { container: name, isPrevious: true };
  const hasFailed = lastState?.terminated !== undefined && lastState.terminated.exitCode !== 0;
  return hasFailed && ready !== true ? { container: name, isPrevious: true } : undefined;
}
