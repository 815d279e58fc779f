/**
 * Converts a pod spec to the container configuration of the runtime. Source: kuberuntime_container.go,
 * kuberuntime_container_linux.go, security_context.go.
 */
import { join } from 'node:path';
import type { Container, EphemeralContainer, Pod } from '../../../api/generated/core/v1.ts';
import { readFields } from '../../../api/podspec/fields/field.ts';
import { CONTAINER_FIELDS, SECURITY_FIELDS } from '../../../api/podspec/fields/table.ts';
import { parseBytes } from '../../../base/quantity.ts';
import type { ContainerConfig, ContainerSecurity, ImageStatus, LinuxResources, Mount } from '../../../runtime/port.ts';
import { amountOf, CPU_PERIOD_US, oomScoreAdjOf, quotaOfMilli, sharesOfMilli } from '../../core/cgroups/resources.ts';
import { type MemoryQos, memoryProtection, swapLimit } from '../../core/cgroups/unified.ts';
import { containerHash } from '../../core/pod-plan/hash.ts';
import { graceOf } from '../../core/pod-plan/plan.ts';
import { ANNOTATIONS, LABELS } from '../../core/pod-plan/snapshot.ts';
import type { Placement } from '../../resources/container-manager.ts';
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
  /** Whether the container uses the host's root as its image, which only some pod sources may do. */
  readonly hostRoot: boolean;
  /** Whether containers without a seccomp profile use the runtime's default one. */
  readonly seccompDefault: boolean;
  /** Directory of profiles that `localhostProfile` references. */
  readonly seccompProfileRoot: string;
  readonly logLimitBytes: number;
}

/**
 * Configuration of a container for the runtime. Throws an Error whose message is shown with CreateContainerConfigError.
 */
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
    ...readFields(CONTAINER_FIELDS, { pod, container }),
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
    logLimitBytes: input.logLimitBytes,
    resources: containerResources(pod, container, input),
    security: security(pod, container, image, input),
    ...(input.pidNamespaceOf === undefined ? {} : { pidNamespaceOf: input.pidNamespaceOf }),
  };
}

/** Node facts that influence the limits of a container. */
export interface NodeLimits {
  readonly memoryCapacityBytes: number;
  readonly oomScoreFloor: number;
  readonly cpuCfsQuota: boolean;
  readonly placement?: Placement;
  /** Resource names of the huge page sizes that the machine supports. */
  readonly hugePages?: readonly string[];
  /** Swap that pods may use on cgroup v2; 0 means none. If undefined, swap is not limited. */
  readonly swapBytes?: number;
  /** Memory protection on cgroup v2. If undefined, requests do not protect memory. */
  readonly memoryQos?: MemoryQos;
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
    ...(node.placement?.cpus === undefined ? {} : { cpusetCpus: node.placement.cpus }),
    ...(node.placement?.mems === undefined ? {} : { cpusetMems: node.placement.mems }),
    ...hugePageLimits(container, node.hugePages ?? []),
    ...unifiedFiles(pod, container, node),
  };
}

/** Limits every huge page size that a container does not request to 0, as upstream does. */
function hugePageLimits(container: Container, names: readonly string[]): Pick<LinuxResources, 'hugePageLimits'> {
  if (names.length === 0) return {};
  return {
    hugePageLimits: names.map((name) => ({
      pageSizeBytes: parseBytes(name.slice('hugepages-'.length)),
      limitBytes: amountOf(container, 'limits', name),
    })),
  };
}

function unifiedFiles(pod: Pod, container: Container, node: NodeLimits): Pick<LinuxResources, 'unified'> {
  const { swapBytes, memoryQos, memoryCapacityBytes } = node;
  const unified = {
    ...(swapBytes === undefined
      ? {}
      : { 'memory.swap.max': String(swapLimit(pod, container, memoryCapacityBytes, swapBytes)) }),
    ...(memoryQos === undefined ? {} : memoryProtection(pod, container, memoryQos)),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}

function security(
  pod: Pod,
  container: Container,
  image: ImageStatus,
  { seccompDefault, seccompProfileRoot }: Pick<ContainerConfigInput, 'seccompDefault' | 'seccompProfileRoot'>,
): ContainerSecurity {
  const own = container.securityContext ?? {};
  const shared = pod.spec?.securityContext ?? {};
  const fields = readFields(SECURITY_FIELDS, { pod, container });
  verifyNonRoot(pod, container, own.runAsNonRoot ?? shared.runAsNonRoot ?? false, fields.runAsUser, image);
  const profile = own.seccompProfile ?? shared.seccompProfile;
  const profileType = profile?.type ?? (seccompDefault ? 'RuntimeDefault' : 'Unconfined');
  const path = join(seccompProfileRoot, profile?.localhostProfile ?? '');
  return { ...fields, ...seccompOf(fields.privileged ? 'Unconfined' : profileType, path) };
}

function seccompOf(type: string, path: string): Pick<ContainerSecurity, 'seccomp' | 'seccompProfile'> {
  if (type === 'Localhost') return { seccomp: 'localhost', seccompProfile: path };
  return { seccomp: type === 'RuntimeDefault' ? 'runtime/default' : 'unconfined' };
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
