/**
 * Decides whether a container restarts after it has exited, from the pod's policy, the container's policy and its
 * rules. Source: KEP-5307 (container restart rules), KEP-5532 (restart of all containers);
 * pkg/kubelet/container/helpers.go ShouldContainerBeRestarted.
 */
import type { Container, ContainerRestartRule, EphemeralContainer, Pod } from '../../../api/generated/core/v1.ts';
import type { ContainerStatus } from '../../../runtime/port.ts';
import { containersOf, initContainersOf, type RestartPolicy, restartPolicyOf } from './snapshot.ts';

const RESTART_ALL = 'RestartAllContainers';

/**
 * Restart policy of a container: its own policy if it has one, otherwise that of the pod. Ephemeral containers never
 * restart.
 */
export function policyOf(pod: Pod, container: Container | EphemeralContainer): RestartPolicy {
  if (pod.spec?.ephemeralContainers?.some((each) => each.name === container.name) === true) return 'Never';
  const own = container.restartPolicy;
  return own === 'Always' || own === 'OnFailure' || own === 'Never' ? own : restartPolicyOf(pod);
}

/** Whether a container with this exit code restarts. The first matching rule decides. */
export function restartsAfter(pod: Pod, container: Container | EphemeralContainer, exitCode: number): boolean {
  const { restartPolicy, restartPolicyRules = [] } = container;
  if (restartPolicy !== undefined && restartPolicyRules.some((rule) => matches(rule, exitCode))) return true;
  const policy = policyOf(pod, container);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function matches({ action, exitCodes }: ContainerRestartRule, exitCode: number): boolean {
  if ((action !== 'Restart' && action !== RESTART_ALL) || exitCodes === undefined) return false;
  const listed = (exitCodes.values ?? []).includes(exitCode);
  return exitCodes.operator === 'In' ? listed : exitCodes.operator === 'NotIn' && !listed;
}

/** Time of the last exit whose rule restarts all containers; undefined if there is none. */
function lastTrigger(pod: Pod, containers: readonly ContainerStatus[]): number | undefined {
  let atMs: number | undefined;
  for (const { name, state, exitCode, finishedAtMs } of containers) {
    if (state !== 'exited') continue;
    const spec = [...initContainersOf(pod), ...containersOf(pod)].find((each) => each.name === name);
    const rule = spec?.restartPolicyRules?.find((each) => matches(each, exitCode));
    if (rule?.action === RESTART_ALL) atMs = Math.max(atMs ?? 0, finishedAtMs);
  }
  return atMs;
}

/** A restart of all containers of a pod, including its init containers, in the same sandbox. */
export interface RestartRound {
  /** Running containers from before the restart, which are stopped first. */
  readonly old: readonly ContainerStatus[];
  /** Containers of the current round. */
  readonly current: readonly ContainerStatus[];
  /** Whether some containers have not run in this round yet. */
  readonly pending: boolean;
}

/** Current restart round; undefined if no rule has triggered one. Ephemeral containers are not part of it. */
export function restartRound(pod: Pod, containers: readonly ContainerStatus[]): RestartRound | undefined {
  const sinceMs = lastTrigger(pod, containers);
  if (sinceMs === undefined) return undefined;
  const names = new Set([...initContainersOf(pod), ...containersOf(pod)].map(({ name }) => name));
  const isOld = ({ name, startedAtMs, createdAtMs }: ContainerStatus): boolean =>
    names.has(name) && (startedAtMs > 0 ? startedAtMs : createdAtMs) <= sinceMs;
  const current = containers.filter((status) => !isOld(status));
  return {
    old: containers.filter((status) => status.state === 'running' && isOld(status)),
    current,
    pending: [...names].some((name) => !current.some((status) => status.name === name && status.startedAtMs > 0)),
  };
}

/** Whether a container in this state must be started or restarted. */
export function shouldStart(
  pod: Pod,
  container: Container | EphemeralContainer,
  status: ContainerStatus | undefined,
): boolean {
  if (status === undefined || status.state === 'created' || status.state === 'unknown') return true;
  return status.state !== 'running' && restartsAfter(pod, container, status.exitCode);
}
