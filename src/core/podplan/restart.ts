/**
 * Which containers start again after their end: the pod's policy, the container's own, and its rules. Source: KEP-5307
 * (container restart rules), KEP-5532 (restart of all containers); pkg/kubelet/container/helpers.go
 * ShouldContainerBeRestarted.
 */
import type { Container, EphemeralContainer, Pod } from 'kubernetes-types/core/v1';
import type { ContainerStatus } from './port.ts';
import { containersOf, initContainersOf, type RestartPolicy, restartPolicyOf } from './snapshot.ts';

const RESTART_ALL = 'RestartAllContainers';

/** kubernetes-types stops before KEP-5307's fields. */
interface Restartable {
  readonly restartPolicy?: string;
  readonly restartPolicyRules?: readonly {
    readonly action: string;
    readonly exitCodes?: { readonly operator: string; readonly values?: readonly number[] };
  }[];
}

/** The container's own policy, otherwise its pod's; an ephemeral container never starts again. */
export function policyOf(pod: Pod, container: Container | EphemeralContainer): RestartPolicy {
  if (pod.spec?.ephemeralContainers?.some((each) => each.name === container.name) === true) return 'Never';
  const own = (container as Restartable).restartPolicy;
  return own === 'Always' || own === 'OnFailure' || own === 'Never' ? own : restartPolicyOf(pod);
}

/** Whether a container that ended with this exit code is to run again. The first rule that matches decides. */
export function restartsAfter(pod: Pod, container: Container | EphemeralContainer, exitCode: number): boolean {
  const { restartPolicy, restartPolicyRules = [] } = container as Restartable;
  if (restartPolicy !== undefined && restartPolicyRules.some((rule) => matches(rule, exitCode))) return true;
  const policy = policyOf(pod, container);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function matches(
  { action, exitCodes }: NonNullable<Restartable['restartPolicyRules']>[number],
  exitCode: number,
): boolean {
  if ((action !== 'Restart' && action !== RESTART_ALL) || exitCodes === undefined) return false;
  const listed = (exitCodes.values ?? []).includes(exitCode);
  return exitCodes.operator === 'In' ? listed : exitCodes.operator === 'NotIn' && !listed;
}

/** What has ended with an exit code whose rule restarts all containers, last; undefined: nothing has. */
function lastTrigger(pod: Pod, containers: readonly ContainerStatus[]): number | undefined {
  let atMs: number | undefined;
  for (const { name, state, exitCode, finishedAtMs } of containers) {
    if (state !== 'exited') continue;
    const spec = [...initContainersOf(pod), ...containersOf(pod)].find((each) => each.name === name);
    const rule = (spec as Restartable | undefined)?.restartPolicyRules?.find((each) => matches(each, exitCode));
    if (rule?.action === RESTART_ALL) atMs = Math.max(atMs ?? 0, finishedAtMs);
  }
  return atMs;
}

/** All containers of a pod, from its init containers on, that run again in its sandbox. */
export interface RestartRound {
  /** Containers that run since before, which end first. */
  readonly old: readonly ContainerStatus[];
  /** What belongs to the present round. */
  readonly current: readonly ContainerStatus[];
  /** Some container has not run in this round. */
  readonly pending: boolean;
}

/** Undefined: no rule has asked for it. Ephemeral containers take no part. */
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

/** Whether a container in this state is to be started (again). */
export function shouldStart(
  pod: Pod,
  container: Container | EphemeralContainer,
  status: ContainerStatus | undefined,
): boolean {
  if (status === undefined || status.state === 'created' || status.state === 'unknown') return true;
  return status.state !== 'running' && restartsAfter(pod, container, status.exitCode);
}
