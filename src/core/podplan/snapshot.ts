import type { Container, EphemeralContainer, Pod, PodStatus } from 'kubernetes-types/core/v1';
import type { BackOffEntry } from './back-off.ts';
import type { ContainerStatus, SandboxStatus } from './port.ts';

/**
 * Keys of what the kubelet writes on sandboxes and containers, so that it can adopt them after a restart. As
 * upstream's.
 */
export const LABELS = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;
export const ANNOTATIONS = {
  containerHash: 'io.kubernetes.container.hash',
  /** Seconds; for pods whose object is gone when their kubelet comes back. */
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
} as const;

/** What the probes of one running container last decided; absent: nothing yet. */
export interface ProbeVerdicts {
  readonly liveness?: 'success' | 'failure';
  readonly readiness?: 'success' | 'failure';
  readonly startup?: 'success' | 'failure';
}

/** Why a container waits: `ErrImagePull`, `CrashLoopBackOff` … */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** Everything a decision about one pod rests on. */
export interface PodSnapshot {
  readonly pod: Pod;
  /** All of this pod's, in any order, dead ones too. */
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ContainerStatus[];
  /** By container id. */
  readonly verdicts: ReadonlyMap<string, ProbeVerdicts>;
  /** By container name: why the last attempt to start it failed. */
  readonly startFailures: ReadonlyMap<string, WaitingReason>;
  /** By container name. */
  readonly backOff: ReadonlyMap<string, BackOffEntry>;
  /** Restart counts that are known from the status at the API, for containers the runtime has forgotten. */
  readonly restartCounts: ReadonlyMap<string, number>;
  /** Containers that the API's status shows as started, as exited containers (see `startedContainers`). */
  readonly started?: readonly ContainerStatus[];
  /** The pod must end: it was deleted, evicted, rejected or its manifest is gone. */
  readonly termination?: {
    readonly startedAtMs: number;
    readonly graceSeconds: number;
  };
  /** When the kubelet first saw the pod. */
  readonly startedAtMs: number;
}

const LOST_EXIT_CODE = 137;

/**
 * Containers that a status at the API shows as started, as exited containers. A container whose end is not in the
 * status has the exit code of a lost one.
 */
export function startedContainers(status: PodStatus | undefined): readonly ContainerStatus[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].flatMap((each) => {
    const { name, containerID = '', restartCount, image, imageID, state, lastState } = each;
    if (containerID === '') return [];
    const end = state?.terminated ?? (state?.running === undefined ? lastState?.terminated : undefined);
    const startedAtMs = Date.parse(end?.startedAt ?? state?.running?.startedAt ?? '') || 0;
    return {
      id: containerID.replace(/^.*:\/\//, ''),
      sandboxId: '',
      name,
      attempt: restartCount,
      image,
      imageId: imageID,
      state: 'exited' as const,
      createdAtMs: startedAtMs,
      startedAtMs,
      finishedAtMs: Date.parse(end?.finishedAt ?? '') || 0,
      exitCode: end?.exitCode ?? LOST_EXIT_CODE,
      reason: end?.reason ?? '',
      message: '',
      logPath: '',
      pid: 0,
      labels: {},
      annotations: {},
    };
  });
}

/** Started containers that the runtime has no record of, as after the loss of its state. */
export function lostContainers({ started = [], containers }: PodSnapshot): readonly ContainerStatus[] {
  return started.filter(({ name }) => containers.every((each) => each.name !== name));
}

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

export function restartPolicyOf(pod: Pod): RestartPolicy {
  const policy = pod.spec?.restartPolicy;
  return policy === 'OnFailure' || policy === 'Never' ? policy : 'Always';
}

export const isSidecar = (container: Container): boolean => container.restartPolicy === 'Always';

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec?.initContainers ?? [];
}

export function containersOf(pod: Pod): readonly Container[] {
  return pod.spec?.containers ?? [];
}

export function ephemeralContainersOf(pod: Pod): readonly EphemeralContainer[] {
  return pod.spec?.ephemeralContainers ?? [];
}

/** Newest attempt first; containers of the same attempt (a create that failed half-way) by age. */
export function attemptsOf(containers: readonly ContainerStatus[], name: string): ContainerStatus[] {
  return containers
    .filter((status) => status.name === name)
    .sort((a, b) => b.attempt - a.attempt || b.createdAtMs - a.createdAtMs);
}

/** Ready sandboxes, newest first. */
export function readySandboxes(sandboxes: readonly SandboxStatus[]): SandboxStatus[] {
  return sandboxes
    .filter((sandbox) => sandbox.state === 'ready')
    .sort((a, b) => b.attempt - a.attempt || b.createdAtMs - a.createdAtMs);
}
