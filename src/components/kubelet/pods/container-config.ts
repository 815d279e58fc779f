/**
 * Pod spec → what the runtime is asked to create. Source: kuberuntime_container.go, kuberuntime_container_linux.go,
 * security_context.go.
 */
import type { Container, EphemeralContainer, Pod } from 'kubernetes-types/core/v1';
import { amountOf, CPU_PERIOD_US, oomScoreAdjOf, quotaOfMilli, sharesOfMilli } from '../../../core/cgroup/resources.ts';
import { containerHash } from '../../../core/podplan/hash.ts';
import { graceOf } from '../../../core/podplan/plan.ts';
import type {
  ContainerConfig,
  ContainerSecurity,
  ImageStatus,
  LinuxResources,
  Mount,
} from '../../../core/podplan/port.ts';
import { ANNOTATIONS, LABELS } from '../../../core/podplan/snapshot.ts';
import { ExpansionBudget, expand, MAX_CONTAINER_BYTES } from './expansion.ts';

export interface ContainerConfigInput extends NodeLimits {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly attempt: number;
  readonly image: ImageStatus;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly mounts: readonly Mount[];
  readonly devices: ContainerConfig['devices'];
  readonly pidNamespaceOf: string | undefined;
  /** The pod's source may use the host's root, and the image is that. */
  readonly hostRoot: boolean;
  /** Containers that name no seccomp profile run with the runtime's default one. */
  readonly seccompDefault: boolean;
}

/** Throws an Error whose message becomes that of CreateContainerConfigError. */
export function containerConfig(input: ContainerConfigInput): ContainerConfig {
  const { pod, image, attempt } = input;
  const container = input.container as Container;
  const variables = new Map(input.env.map((variable) => [variable.name, variable.value]));
  const lookup = (name: string): string | undefined => variables.get(name);
  const budget = new ExpansionBudget('env, command and args', MAX_CONTAINER_BYTES);
  for (const variable of input.env) {
    budget.text(variable.name);
    budget.text(variable.value);
  }
  const { name = '', namespace = 'default', uid = '' } = pod.metadata ?? {};
  return {
    name: container.name,
    attempt,
    image: container.image ?? '',
    imageId: image.id,
    ...(input.hostRoot ? { hostRoot: true } : {}),
    ...(container.command === undefined || container.command.length === 0
      ? {}
      : { command: container.command.map((part) => expand(part, lookup, budget)) }),
    ...(container.args === undefined || container.args.length === 0
      ? {}
      : { args: container.args.map((part) => expand(part, lookup, budget)) }),
    ...(container.workingDir === undefined || container.workingDir === '' ? {} : { workingDir: container.workingDir }),
    env: input.env,
    mounts: input.mounts,
    devices: input.devices,
    labels: {
      [LABELS.podName]: name,
      [LABELS.podNamespace]: namespace,
      [LABELS.podUid]: uid,
      [LABELS.containerName]: container.name,
    },
    annotations: {
      [ANNOTATIONS.containerHash]: containerHash(container),
      [ANNOTATIONS.terminationGracePeriod]: String(graceOf(pod)),
      [ANNOTATIONS.terminationMessagePath]: container.terminationMessagePath ?? '/dev/termination-log',
      [ANNOTATIONS.terminationMessagePolicy]: container.terminationMessagePolicy ?? 'File',
    },
    logPath: `${container.name}/${attempt}.log`,
    stdin: container.stdin === true,
    stdinOnce: container.stdinOnce === true,
    tty: container.tty === true,
    ...stopSignalOf(container),
    resources: containerResources(pod, container, input),
    security: security(pod, container, image, input.seccompDefault),
    ...(input.pidNamespaceOf === undefined ? {} : { pidNamespaceOf: input.pidNamespaceOf }),
  };
}

/** Facts about the node that a container's limits depend on. */
export interface NodeLimits {
  readonly memoryCapacityBytes: number;
  readonly oomScoreFloor: number;
  readonly cpuCfsQuota: boolean;
}

export function containerResources(pod: Pod, container: Container, node: NodeLimits): LinuxResources {
  const cpuLimit = amountOf(container, 'limits', 'cpu');
  return {
    cpuShares: sharesOfMilli(amountOf(container, 'requests', 'cpu')),
    cpuQuota: node.cpuCfsQuota ? quotaOfMilli(cpuLimit) : 0,
    cpuPeriod: CPU_PERIOD_US,
    memoryLimitBytes: amountOf(container, 'limits', 'memory'),
    oomScoreAdj: Math.max(node.oomScoreFloor, oomScoreAdjOf(pod, container, node.memoryCapacityBytes)),
    pidsLimit: 0,
  };
}

/** kubernetes-types stops before KEP-4960's field. */
function stopSignalOf({ lifecycle }: Container): Pick<ContainerConfig, 'stopSignal'> {
  const { stopSignal } = (lifecycle ?? {}) as { readonly stopSignal?: string };
  return stopSignal === undefined ? {} : { stopSignal };
}

function security(pod: Pod, container: Container, image: ImageStatus, seccompDefault: boolean): ContainerSecurity {
  const own = container.securityContext ?? {};
  const shared = pod.spec?.securityContext ?? {};
  const { supplementalGroupsPolicy } = shared as { readonly supplementalGroupsPolicy?: string };
  const runAsUser = own.runAsUser ?? shared.runAsUser;
  const runAsGroup = own.runAsGroup ?? shared.runAsGroup;
  verifyNonRoot(pod, container, own.runAsNonRoot ?? shared.runAsNonRoot ?? false, runAsUser, image);
  const privileged = own.privileged === true;
  const profile = own.seccompProfile ?? shared.seccompProfile;
  const profileType = profile?.type ?? (seccompDefault ? 'RuntimeDefault' : 'Unconfined');
  // Running it unconfined instead would be less than what was asked for.
  if (!privileged && profile?.type === 'Localhost') {
    throw new Error(
      `cannot load seccomp profile ${JSON.stringify(profile.localhostProfile ?? '')}: this node has none`,
    );
  }
  return {
    privileged,
    ...(runAsUser === undefined ? {} : { runAsUser }),
    ...(runAsGroup === undefined ? {} : { runAsGroup }),
    supplementalGroups: [
      ...(shared.fsGroup === undefined ? [] : [shared.fsGroup]),
      ...(shared.supplementalGroups ?? []),
    ],
    strictSupplementalGroups: supplementalGroupsPolicy === 'Strict',
    readOnlyRootFilesystem: own.readOnlyRootFilesystem === true,
    allowPrivilegeEscalation: own.allowPrivilegeEscalation !== false,
    addCapabilities: own.capabilities?.add ?? [],
    dropCapabilities: own.capabilities?.drop ?? [],
    seccomp: !privileged && profileType === 'RuntimeDefault' ? 'runtime/default' : 'unconfined',
    procMount: own.procMount === 'Unmasked' ? 'unmasked' : 'default',
  };
}

function verifyNonRoot(
  pod: Pod,
  container: Container,
  required: boolean,
  runAsUser: number | undefined,
  image: ImageStatus,
): void {
  if (!required) return;
  const who = `(pod: "${pod.metadata?.name}_${pod.metadata?.namespace}(${pod.metadata?.uid})", container: ${container.name})`;
  if (runAsUser !== undefined) {
    if (runAsUser === 0) throw new Error(`container's runAsUser breaks non-root policy ${who}`);
    return;
  }
  if (image.uid !== undefined) {
    if (image.uid === 0) throw new Error(`container has runAsNonRoot and image will run as root ${who}`);
    return;
  }
  if (image.username !== undefined && image.username !== '') {
    throw new Error(
      `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${who}`,
    );
  }
  throw new Error(`container has runAsNonRoot and image will run as root ${who}`);
}
