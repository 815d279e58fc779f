/**
 * Which containers start again after their end: the pod's policy, the container's own, and its rules. Source: KEP-5307
 * (container restart rules); pkg/kubelet/container/helpers.go ShouldContainerBeRestarted.
 */
import type { Container, EphemeralContainer, Pod } from 'kubernetes-types/core/v1';
import type { ContainerStatus } from './port.ts';
import { type RestartPolicy, restartPolicyOf } from './snapshot.ts';

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
  if (action !== 'Restart' || exitCodes === undefined) return false;
  const listed = (exitCodes.values ?? []).includes(exitCode);
  return exitCodes.operator === 'In' ? listed : exitCodes.operator === 'NotIn' && !listed;
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
