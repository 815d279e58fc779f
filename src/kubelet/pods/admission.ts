/**
 * Admission of a pod on this node, after a scheduler or the pod's own `nodeName` selected it. Reasons and messages
 * match upstream's, because other programs parse them. Source: pkg/kubelet/lifecycle/predicate.go,
 * pkg/kubelet/sysctl/allowlist.go.
 */
import type { Node, Pod, Service } from '../../api/generated/core/v1.ts';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { matchesNode } from '../../api/podspec/scheduling/node-affinity.ts';
import { podRequests } from '../../api/podspec/scheduling/node-resources.ts';
import { hostPortsOnAllAddresses, podInfoOf, portsConflict } from '../../api/podspec/scheduling/pod-info.ts';
import { untoleratedTaint } from '../../api/podspec/scheduling/tolerations.ts';
import { type Quantity, quantityMilliValue, quantityValue } from '../../base/quantity.ts';

/**
 * Refusal of a pod. It becomes the pod's `status.reason` and an event; the status message starts with `Pod was
 * rejected: `.
 */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

export interface AdmissionInput {
  readonly pod: Pod;
  /** Other pods that hold resources of the node. */
  readonly others: readonly Pod[];
  /** Undefined while the Node has not been read from the API, so its labels and taints are unknown. */
  readonly node: Node | undefined;
  readonly allocatable: Readonly<Record<string, Quantity>>;
  readonly maxPods: number;
  readonly reservedPorts: readonly ReservedPort[];
  readonly services: () => readonly Service[];
  /** Rejection of the pod because of node pressure. Undefined when pressure does not affect it. */
  readonly underPressure: Rejection | undefined;
  readonly allowedUnsafeSysctls: readonly string[];
}

/**
 * Resources that the kubelet checks itself. Extended resources are not among them: the DeviceManager checks those of
 * device plug-ins, and the cluster manages the others.
 */
const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'] as const;

/** Reason for which the node rejects the pod; undefined when it is admitted. */
export function admissionRejection(input: AdmissionInput): Rejection | undefined {
  return (
    input.underPressure ??
    operatingSystem(input.pod) ??
    sysctls(input.pod, input.allowedUnsafeSysctls) ??
    inCluster(input)
  );
}

/** Admission of static pods, which no scheduler placed: checks only requirements that this node can never meet. */
export function manifestRejection(pod: Pod, allowedUnsafeSysctls: readonly string[]): Rejection | undefined {
  return operatingSystem(pod) ?? sysctls(pod, allowedUnsafeSysctls);
}

const inCluster = (input: AdmissionInput): Rejection | undefined =>
  resources(input) ?? placement(input) ?? hostPortRejection(input) ?? taints(input);

const OS_LABEL = 'kubernetes.io/os';
const OPERATING_SYSTEM = 'linux';

/** Rejects pods of another operating system, because API validation skips many rules for them. */
function operatingSystem(pod: Pod): Rejection | undefined {
  const label = pod.metadata?.labels?.[OS_LABEL];
  if (label !== undefined && label !== OPERATING_SYSTEM) {
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    };
  }
  const name = pod.spec?.os?.name;
  if (name === undefined || name === OPERATING_SYSTEM) return undefined;
  return { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS" };
}

const IPC_SYSCTL = /^(?:kernel\.(?:shm|msg|sem)|fs\.mqueue\.)/;

/** Sysctls that are namespaced and cannot harm other pods. Source: pkg/kubelet/sysctl/safe_sysctls.go. */
const SAFE_SYSCTLS = new Set([
  'kernel.shm_rmid_forced',
  ...[
    'ip_local_port_range',
    'tcp_syncookies',
    'ping_group_range',
    'ip_unprivileged_port_start',
    'ip_local_reserved_ports',
    'tcp_keepalive_time',
    'tcp_fin_timeout',
    'tcp_keepalive_intvl',
    'tcp_keepalive_probes',
    'tcp_rmem',
    'tcp_wmem',
  ].map((name) => `net.ipv4.${name}`),
]);

const isAllowed = (name: string, unsafe: readonly string[]): boolean =>
  SAFE_SYSCTLS.has(name) ||
  unsafe.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each.replaceAll('/', '.') === name));

/** Rejects sysctls that are not allowed. Sysctls of a namespace shared with the host would change the host. */
function sysctls(pod: Pod, unsafe: readonly string[]): Rejection | undefined {
  const { hostNetwork, hostIPC } = pod.spec ?? {};
  for (const { name } of pod.spec?.securityContext?.sysctls ?? []) {
    const dotted = name.replaceAll('/', '.');
    const host =
      hostNetwork === true && dotted.startsWith('net.')
        ? 'net'
        : hostIPC === true && IPC_SYSCTL.test(dotted)
          ? 'ipc'
          : undefined;
    if (host === undefined && isAllowed(dotted, unsafe)) continue;
    if (host === undefined)
      return { reason: 'SysctlForbidden', message: `forbidden sysctl: ${JSON.stringify(name)} not allowlisted` };
    return {
      reason: 'SysctlForbidden',
      message: `forbidden sysctl: ${JSON.stringify(name)} not allowed with host ${host} enabled`,
    };
  }
  return undefined;
}

function resources({ pod, others, allocatable, maxPods }: AdmissionInput): Rejection | undefined {
  if (others.length + 1 > maxPods) return insufficient('pods', 1, others.length, maxPods);
  return resourceShortage(pod, others, allocatable);
}

/**
 * Rejection that names the node resource that does not suffice for the pod and the other pods. Undefined when there is
 * room.
 */
export function resourceShortage(
  pod: Pod,
  others: readonly Pod[],
  allocatable: Readonly<Record<string, Quantity>>,
): Rejection | undefined {
  const wanted = podRequests(pod);
  const pages = [...wanted.keys()].filter((name) => name.startsWith('hugepages-'));
  const requested = [...COMPUTE, ...pages].filter((name) => (wanted.get(name) ?? 0) > 0);
  if (requested.length === 0) return undefined;
  const held = others.map(podRequests);
  for (const name of requested) {
    const requested = wanted.get(name) ?? 0;
    const used = held.reduce((sum, amounts) => sum + (amounts.get(name) ?? 0), 0);
    const quantity = allocatable[name];
    const capacity =
      quantity === undefined ? 0 : name === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity);
    if (requested > capacity - used) return insufficient(name, requested, used, capacity);
  }
  return undefined;
}

const insufficient = (name: string, requested: number, used: number, capacity: number): Rejection => ({
  reason: `OutOf${name}`,
  message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
});

const failed = (predicate: string, why: string): Rejection => ({
  reason: predicate,
  message: `Predicate ${predicate} failed: ${why}`,
});

function placement({ pod, node }: AdmissionInput): Rejection | undefined {
  if (node === undefined || matchesNode(pod, node)) return undefined;
  return failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
}

/**
 * Rejects host ports in use by the host, another pod or a service of another namespace. Returns undefined when all
 * ports are free.
 */
export function hostPortRejection(
  input: Pick<AdmissionInput, 'pod' | 'others' | 'reservedPorts' | 'services'>,
): Rejection | undefined {
  const { pod, others, reservedPorts } = input;
  const wanted = podInfoOf(pod).hostPorts;
  if (wanted.length === 0) return undefined;
  const inUse = [
    ...others.flatMap((other) => podInfoOf(other).hostPorts),
    ...hostPortsOnAllAddresses([...reservedPorts, ...foreignNodePorts(input)]),
  ];
  const free = wanted.every((port) => !inUse.some((each) => portsConflict(each, port)));
  return free ? undefined : failed('NodePorts', "node(s) didn't have free ports for the requested pod ports");
}

/**
 * Node ports of services in other namespaces. Host ports precede them in the packet filter, so the pod would receive
 * traffic of a foreign service. Pods in the host network only listen and receive no forwarded traffic, so they are
 * exempt.
 */
function foreignNodePorts({ pod, services }: Pick<AdmissionInput, 'pod' | 'services'>): ReservedPort[] {
  if (pod.spec?.hostNetwork === true) return [];
  return services()
    .filter(({ metadata }) => metadata?.namespace !== pod.metadata?.namespace)
    .flatMap(({ spec }) => spec?.ports ?? [])
    .filter(({ nodePort }) => nodePort !== undefined && nodePort > 0)
    .map(({ nodePort = 0, protocol = 'TCP' }) => ({ protocol: protocol as ReservedPort['protocol'], port: nodePort }));
}

function taints({ pod, node }: AdmissionInput): Rejection | undefined {
  if (untoleratedTaint(node?.spec?.taints, pod.spec?.tolerations, ['NoExecute']) === undefined) return undefined;
  return failed('TaintToleration', "node(s) had taints that the pod didn't tolerate");
}
