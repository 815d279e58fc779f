/** Status columns of pods. Source: k8s.io/kubernetes/pkg/printers/internalversion printPod. */
import type { ContainerStatus, Pod } from '../generated/core/v1.ts';
import { humanDuration } from './duration.ts';

export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  /** For example `Running`, `CrashLoopBackOff`, `Init:0/1` or `Terminating`. */
  readonly status: string;
  readonly restarts: number;
  readonly lastRestartMs: number | undefined;
}

export function summarizePod(pod: Pod): PodSummary {
  const sidecars = new Set(
    (pod.spec?.initContainers ?? []).filter((each) => each.restartPolicy === 'Always').map((each) => each.name),
  );
  const counts: ContainerCounts = { ready: 0, restarts: 0, lastRestartMs: undefined };
  let status = pod.status?.reason || pod.status?.phase || '';
  if (condition(pod, 'PodScheduled')?.reason === 'SchedulingGated') status = 'SchedulingGated';
  const initializing = initReason(pod, sidecars, counts);
  if (initializing !== undefined) status = initializing;
  if (initializing === undefined || condition(pod, 'Initialized')?.status === 'True') {
    status = mainReason(pod, sidecars, counts, status);
  }
  if (pod.metadata?.deletionTimestamp !== undefined) {
    if (pod.status?.reason === 'NodeLost') status = 'Unknown';
    else if (pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed') status = 'Terminating';
  }
  return { ...counts, total: (pod.spec?.containers?.length ?? 0) + sidecars.size, status };
}

export function restartsText(summary: PodSummary, nowMs: number): string {
  return summary.restarts > 0 && summary.lastRestartMs !== undefined
    ? `${summary.restarts} (${humanDuration(nowMs - summary.lastRestartMs)} ago)`
    : String(summary.restarts);
}

interface ContainerCounts {
  ready: number;
  restarts: number;
  lastRestartMs: number | undefined;
}

function count(counts: ContainerCounts, status: ContainerStatus): void {
  counts.restarts += status.restartCount ?? 0;
  const finished = Date.parse(status.lastState?.terminated?.finishedAt ?? '');
  if (!Number.isNaN(finished) && (counts.lastRestartMs ?? 0) < finished) counts.lastRestartMs = finished;
}

/** Status text while init containers run or after one failed; undefined after initialization. */
function initReason(pod: Pod, sidecars: ReadonlySet<string>, counts: ContainerCounts): string | undefined {
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    count(counts, status);
    const { terminated, waiting } = status.state ?? {};
    if (terminated !== undefined && (terminated.exitCode ?? 0) === 0) continue;
    if (sidecars.has(status.name) && status.started === true) {
      if (status.ready) counts.ready++;
      continue;
    }
    if (terminated !== undefined) return `Init:${terminationReason(terminated)}`;
    if (waiting?.reason && waiting.reason !== 'PodInitializing') return `Init:${waiting.reason}`;
    return `Init:${index}/${pod.spec?.initContainers?.length ?? 0}`;
  }
  return undefined;
}

function mainReason(pod: Pod, sidecars: ReadonlySet<string>, counts: ContainerCounts, initial: string): string {
  counts.restarts = 0;
  counts.lastRestartMs = undefined;
  for (const status of pod.status?.initContainerStatuses ?? []) if (sidecars.has(status.name)) count(counts, status);
  let reason = initial;
  let running = false;
  for (const status of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    count(counts, status);
    const { waiting, terminated } = status.state ?? {};
    if (waiting?.reason) reason = waiting.reason;
    else if (terminated !== undefined) reason = terminationReason(terminated);
    else if (status.ready && status.state?.running !== undefined) {
      running = true;
      counts.ready++;
    }
  }
  if (reason === 'Completed' && running) {
    return condition(pod, 'Ready')?.status === 'True' ? 'Running' : 'NotReady';
  }
  return reason;
}

function terminationReason(terminated: { reason?: string; signal?: number; exitCode?: number }): string {
  if (terminated.reason) return terminated.reason;
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode ?? 0}`;
}

function condition(pod: Pod, type: string) {
  return pod.status?.conditions?.find((each) => each.type === type);
}
