import type { Container, EphemeralContainer, Pod, PodStatus } from '../../../api/generated/core/v1.ts';
import type { ContainerStatus, SandboxStatus } from '../../../runtime/port.ts';
import type { BackOffEntry } from './back-off.ts';

/**
 * Keys of the labels and annotations that the kubelet sets on sandboxes and containers, so that it can adopt them after
 * a restart. The same as upstream's.
 */
export const LABELS = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;
export const ANNOTATIONS = {
  containerHash: 'io.kubernetes.container.hash',
  /** Seconds. Used for pods whose object was deleted before their kubelet restarted. */
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
} as const;

/** Last results of the probes of one running container; absent while undecided. */
export interface ProbeResults {
  readonly liveness?: 'success' | 'failure';
  readonly readiness?: 'success' | 'failure';
  readonly startup?: 'success' | 'failure';
}

/** Reason why a container waits: `ErrImagePull`, `CrashLoopBackOff` … */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** Input of all decisions about one pod. */
export interface PodSnapshot {
  readonly pod: Pod;
  /** All sandboxes of this pod in any order, including terminated ones. */
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ContainerStatus[];
  /** Results of probes by container ID. */
  readonly probeResults: ReadonlyMap<string, ProbeResults>;
  /** By container name, the reason why the last attempt to start it failed. */
  readonly startFailures: ReadonlyMap<string, WaitingReason>;
  /** Restart delays by container name. */
  readonly backOff: ReadonlyMap<string, BackOffEntry>;
  /** Restart counts from the status in the API, for containers of which the runtime has no record. */
  readonly restartCounts: ReadonlyMap<string, number>;
  /** Containers that the API status reports as started, converted to exited containers by `startedContainers`. */
  readonly started?: readonly ContainerStatus[];
  /** The pod must terminate: it was deleted, evicted or rejected, or its manifest was removed. */
  readonly termination?: {
    readonly startedAtMs: number;
    readonly graceSeconds: number;
  };
  /** Time at which the kubelet first saw the pod. */
  readonly startedAtMs: number;
}

const LOST_EXIT_CODE = 137;

/**
 * Converts containers that the status in the API reports as started to exited containers. A container whose exit is not
 * in the status gets the exit code of a lost one.
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

/** Started containers of which the runtime has no record, for example after the loss of its state. */
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

/**
 * Attempts of a container, the newest first. Containers of the same attempt (after a partly failed creation) are sorted
 * by age.
 */
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
