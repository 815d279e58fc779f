/** The reason why a deployment is not ready, from its status and the status of its pods. */

export interface DeploymentState {
  readonly metadata: { readonly name: string; readonly generation?: number };
  readonly spec: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}

export interface PodState {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly Condition[];
    readonly initContainerStatuses?: readonly ContainerState[];
    readonly containerStatuses?: readonly ContainerState[];
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

interface Ended {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
}

interface ContainerState {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: Ended;
    readonly running?: object;
  };
  readonly lastState?: { readonly terminated?: Ended };
}

/**
 * Lines about the deployment and about each pod that is not ready; none if all replicas have the current template and
 * are ready. The condition `Progressing` is ignored, because it may result from an earlier start.
 */
export function notReady(deployment: DeploymentState, pods: readonly PodState[]): string[] {
  const { metadata, spec, status = {} } = deployment;
  const { replicas = 1 } = spec;
  const { observedGeneration = 0, updatedReplicas = 0, readyReplicas = 0 } = status;
  if (observedGeneration >= (metadata.generation ?? 0) && updatedReplicas >= replicas && readyReplicas >= replicas)
    return [];
  const failure = status.conditions?.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
  return [
    `deployment/${metadata.name}: ${readyReplicas} of ${replicas} replicas ready${told(failure?.reason, failure?.message)}`,
    ...pods.filter((pod) => !isReady(pod)).map((pod) => `pod/${pod.metadata.name}: ${podReason(pod)}`),
  ];
}

const isReady = ({ status }: PodState): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

const told = (...parts: readonly (string | undefined)[]): string =>
  parts.map((part) => (part === undefined || part === '' ? '' : `: ${part}`)).join('');

function podReason({ status = {} }: PodState): string {
  const { phase = 'Unknown', reason, message, conditions = [] } = status;
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const reasons = containers.flatMap((each) => {
    const text = containerReason(each);
    return text === undefined ? [] : [`container ${each.name}: ${text}`];
  });
  if (reasons.length > 0) return reasons.join('; ');
  const scheduled = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  return `${phase}${told(reason ?? scheduled?.reason, message ?? scheduled?.message)}`;
}

function containerReason({ ready, restartCount, state = {}, lastState }: ContainerState): string | undefined {
  const { waiting, terminated, running } = state;
  const ended = terminated ?? lastState?.terminated;
  const last = ended === undefined ? '' : `, last exit code ${ended.exitCode}${told(ended.reason, ended.message)}`;
  const restarts = restartCount === 0 ? '' : ` (${restartCount} restarts${last})`;
  if (waiting !== undefined) return `${waiting.reason ?? 'waiting'}${told(waiting.message)}${restarts}`;
  if (terminated !== undefined && terminated.exitCode !== 0)
    return `exit code ${terminated.exitCode}${told(terminated.reason, terminated.message)}`;
  if (running !== undefined && !ready) return `runs, but its readiness probe fails${restarts}`;
  return undefined;
}
