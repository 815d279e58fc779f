/**
 * Converts observed containers to `status.containerStatuses`. Source: pkg/kubelet/kubelet_pods.go
 * convertToAPIContainerStatuses.
 */

import type {
  ContainerStatus as ApiContainerStatus,
  Container,
  ContainerState,
  EphemeralContainer,
  VolumeMount,
  VolumeMountStatus,
} from '../../../api/generated/core/v1.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ContainerStatus } from '../../../runtime/port.ts';
import { shouldStart } from './restart.ts';
import {
  attemptsOf,
  containersOf,
  ephemeralContainersOf,
  initContainersOf,
  isSidecar,
  type PodSnapshot,
  type WaitingReason,
} from './snapshot.ts';
import { isRecursivelyReadOnly } from './volume-mounts.ts';

export interface ContainerStatuses {
  readonly init: ApiContainerStatus[];
  readonly containers: ApiContainerStatus[];
  readonly ephemeral: ApiContainerStatus[];
}

export interface ContainerStatusInput {
  readonly snapshot: PodSnapshot;
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  readonly previous: ContainerStatuses;
  /** Scheme of container IDs, such as `runc` or `containerd`. */
  readonly runtimeName: string;
  /**
   * Whether the runtime supports recursive read-only mounts. Without support, a container that requires them is
   * rejected when it is created.
   */
  readonly recursiveReadOnlyMounts: boolean;
  /** Whether the pod has finished. Containers that cannot be found are then reported as lost instead of waiting. */
  readonly finished: boolean;
}

const LOST: ContainerState = {
  terminated: {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container could not be located when the pod was terminated',
    // Upstream reports Go's zero time here, which is null in JSON.
    ...({ startedAt: null, finishedAt: null } as object),
  },
};

export function containerStatuses(input: ContainerStatusInput): ContainerStatuses {
  const { pod } = input.snapshot;
  const init = initContainersOf(pod);
  const creating = init.length > 0 ? 'PodInitializing' : 'ContainerCreating';
  return {
    init: init.map((container) => one(input, container, 'PodInitializing', { init: true }, input.previous.init)),
    containers: containersOf(pod)
      .map((container) => one(input, container, creating, { init: false }, input.previous.containers))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    ephemeral: ephemeralContainersOf(pod).map((container) =>
      one(input, container, 'ContainerCreating', { init: false }, input.previous.ephemeral),
    ),
  };
}

function one(
  input: ContainerStatusInput,
  container: Container | EphemeralContainer,
  defaultReason: string,
  { init }: { readonly init: boolean },
  previous: readonly ApiContainerStatus[],
): ApiContainerStatus {
  const { snapshot } = input;
  const attempts = attemptsOf(snapshot.containers, container.name);
  const [latest, ...older] = attempts;
  const before = previous.find((status) => status.name === container.name);
  const status: ApiContainerStatus =
    latest === undefined
      ? forgotten(container, before, defaultReason)
      : observed(container, latest, older, before, defaultReason, input.runtimeName);
  const reason = input.waiting.get(container.name) ?? snapshot.startFailures.get(container.name);
  const regularInit = init && !isSidecar(container as Container);
  const due =
    snapshot.termination === undefined &&
    !(regularInit && latest?.state === 'exited' && latest.exitCode === 0) &&
    shouldStart(snapshot.pod, container, latest);
  if (due && reason !== undefined) {
    if (status.state?.terminated !== undefined) status.lastState = status.state;
    status.state = {
      waiting: { reason: reason.reason, ...(reason.message === '' ? {} : { message: reason.message }) },
    };
  }
  if (input.finished && status.state?.terminated === undefined) {
    if (status.state?.running !== undefined || latest !== undefined || before?.containerID !== undefined) {
      status.state = LOST;
      if (latest === undefined && before !== undefined) {
        status.restartCount = before.restartCount;
        status.lastState = before.lastState ?? {};
      }
    }
  }
  decide(status, snapshot, container as Container, latest, init);
  const mounts = mountStatuses(container, input.recursiveReadOnlyMounts);
  if (mounts.length > 0) status.volumeMounts = mounts;
  return status;
}

function mountStatuses(container: Container | EphemeralContainer, recursive: boolean): VolumeMountStatus[] {
  const mode = (mount: VolumeMount): 'Enabled' | 'Disabled' => {
    try {
      return isRecursivelyReadOnly(mount, recursive) ? 'Enabled' : 'Disabled';
    } catch {
      return 'Disabled';
    }
  };
  return (container.volumeMounts ?? []).map((mount) => ({
    name: mount.name,
    mountPath: mount.mountPath,
    ...(mount.readOnly === true ? { readOnly: true, recursiveReadOnly: mode(mount) } : {}),
  }));
}

/** Allocated resources as in the spec, and the user of the container. */
function allotment(container: Container | EphemeralContainer, latest: ContainerStatus): Partial<ApiContainerStatus> {
  const { requests, limits } = container.resources ?? {};
  const { user, stopSignal } = latest;
  return {
    ...(stopSignal === undefined ? {} : { stopSignal }),
    ...(requests === undefined ? {} : { allocatedResources: requests }),
    resources: { ...(limits === undefined ? {} : { limits }), ...(requests === undefined ? {} : { requests }) },
    ...(user === undefined
      ? {}
      : {
          user: {
            linux: {
              uid: user.uid,
              gid: user.gid,
              ...(user.supplementalGroups.length === 0 ? {} : { supplementalGroups: [...user.supplementalGroups] }),
            },
          },
        }),
  };
}

function forgotten(
  container: Container | EphemeralContainer,
  before: ApiContainerStatus | undefined,
  defaultReason: string,
): ApiContainerStatus {
  if (before?.state?.terminated !== undefined) return structuredClone(before);
  const status = waitingStatus(container, defaultReason);
  if (before === undefined) return status;
  status.restartCount = before.restartCount;
  if (before.lastState !== undefined) status.lastState = before.lastState;
  if (before.state?.running !== undefined) {
    // The container ran, but the runtime has no record of it: the host was rebooted, or the container was removed
    // externally.
    status.lastState = LOST;
    status.restartCount += 1;
  }
  return status;
}

function waitingStatus(container: Container | EphemeralContainer, reason: string): ApiContainerStatus {
  return {
    name: container.name,
    state: { waiting: { reason } },
    lastState: {},
    ready: false,
    restartCount: 0,
    image: container.image ?? '',
    imageID: '',
  };
}

function observed(
  container: Container | EphemeralContainer,
  latest: ContainerStatus,
  older: readonly ContainerStatus[],
  before: ApiContainerStatus | undefined,
  defaultReason: string,
  runtimeName: string,
): ApiContainerStatus {
  const status: ApiContainerStatus = {
    name: container.name,
    state: stateOf(latest, defaultReason, runtimeName),
    lastState: {},
    ready: false,
    restartCount: latest.attempt,
    image: latest.image,
    imageID: latest.imageId,
    containerID: `${runtimeName}://${latest.id}`,
    ...allotment(container, latest),
  };
  const last = older.find((each) => each.state === 'exited');
  if (last !== undefined) status.lastState = stateOf(last, defaultReason, runtimeName);
  else if (before?.lastState !== undefined) status.lastState = before.lastState;
  return status;
}

function stateOf(status: ContainerStatus, defaultReason: string, runtimeName: string): ContainerState {
  switch (status.state) {
    case 'running':
      return { running: { startedAt: timestamp(status.startedAtMs) } };
    case 'exited':
      return {
        terminated: {
          exitCode: status.exitCode,
          ...(status.reason === '' ? {} : { reason: status.reason }),
          ...(status.message === '' ? {} : { message: status.message }),
          startedAt: timestamp(status.startedAtMs),
          finishedAt: timestamp(status.finishedAtMs),
          containerID: `${runtimeName}://${status.id}`,
        },
      };
    case 'created':
      return { waiting: { reason: defaultReason } };
    case 'unknown':
      return LOST;
  }
}

/** Sets `started` and `ready`. Source: prober_manager UpdatePodStatus. */
function decide(
  status: ApiContainerStatus,
  snapshot: PodSnapshot,
  container: Container,
  latest: ContainerStatus | undefined,
  init: boolean,
): void {
  const running = status.state?.running !== undefined;
  const results = latest === undefined ? {} : (snapshot.probeResults.get(latest.id) ?? {});
  status.started = running && (container.startupProbe === undefined || results.startup === 'success');
  if (init && !isSidecar(container)) {
    status.started = false;
    status.ready = status.state?.terminated?.exitCode === 0;
    return;
  }
  status.ready = status.started && (container.readinessProbe === undefined || results.readiness === 'success');
}
