/** Builds the Node object of this host. Source: pkg/kubelet/nodestatus/setters.go; OKD 3.11's node object. */

import type { ContainerImage, Node, NodeCondition, NodeStatus } from '../../api/generated/core/v1.ts';
import { formatReservedPorts, RESERVED_PORTS_ANNOTATION } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { transitionTime } from '../../api/meta/conditions.ts';
import { formatQuantity, parseQuantity, type Quantity, quantityOf, subtractQuantity } from '../../base/quantity.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { ImageStatus, RuntimeFeatures } from '../../runtime/port.ts';
import type { KubeletConfig } from '../config/kubelet-config.ts';
import type { Pressure } from '../core/eviction/thresholds.ts';
import type { FileSystemUsage, HostInfo } from '../port.ts';

export interface NodeStatusInput {
  readonly config: KubeletConfig;
  readonly info: HostInfo;
  readonly pressures: readonly Pressure[];
  readonly disk: FileSystemUsage;
  readonly runtimeVersion: string;
  readonly features: RuntimeFeatures;
  readonly images: readonly ImageStatus[];
  readonly port: number;
  /** Capacity and allocatable amount by extended resource. */
  readonly devices?: ReadonlyMap<string, readonly [capacity: number, allocatable: number]>;
  /** Reason why the node is not ready. Undefined when it is ready. */
  readonly notReady: string | undefined;
  /** Conditions of the host beyond those of the kubelet. */
  readonly more: readonly HostCondition[];
  readonly previous: readonly NodeCondition[];
  readonly nowMs: number;
}

export interface HostCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

const MAX_IMAGES = 50;
const MAX_NAMES_PER_IMAGE = 5;

export function capacityOf(
  config: KubeletConfig,
  info: HostInfo,
  disk: FileSystemUsage,
): Readonly<Record<string, Quantity>> {
  return {
    cpu: quantityOf(info.cpus),
    'ephemeral-storage': quantityOf(Math.floor(disk.capacityBytes / 1024) * 1024, 'BinarySI'),
    'hugepages-1Gi': quantityOf(0),
    'hugepages-2Mi': quantityOf(0),
    ...Object.fromEntries(
      Object.entries(info.hugePages ?? {}).map(([name, bytes]) => [
        name,
        quantityOf(bytes, bytes === 0 ? 'DecimalSI' : 'BinarySI'),
      ]),
    ),
    memory: quantityOf(info.memoryBytes, 'BinarySI'),
    pods: quantityOf(config.maxPods),
  };
}

export function allocatableOf(
  config: KubeletConfig,
  capacity: Readonly<Record<string, Quantity>>,
): Readonly<Record<string, Quantity>> {
  const allocatable: Record<string, Quantity> = {};
  for (const [name, quantity] of Object.entries(capacity)) {
    const kept = [config.systemReserved, config.kubeReserved].flatMap((each) =>
      Object.hasOwn(each, name) ? (each[name] ?? []) : [],
    );
    const left = kept.reduce((rest, text) => subtractQuantity(rest, parseQuantity(text)), quantity);
    allocatable[name] = left.nanos < 0n ? quantityOf(0, quantity.format) : left;
  }
  return withoutHugePages(allocatable);
}

/** Subtracts memory that is reserved for huge pages. */
function withoutHugePages(allocatable: Record<string, Quantity>): Record<string, Quantity> {
  const { memory } = allocatable;
  if (memory === undefined) return allocatable;
  const pages = Object.entries(allocatable).filter(([name]) => name.startsWith('hugepages-'));
  const left = pages.reduce((rest, [, quantity]) => subtractQuantity(rest, quantity), memory);
  return { ...allocatable, memory: left.nanos < 0n ? quantityOf(0, memory.format) : left };
}

const asText = (quantities: Readonly<Record<string, Quantity>>): Record<string, string> =>
  Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, formatQuantity(quantity)]));

export function nodeStatus(input: NodeStatusInput): NodeStatus {
  const { config, info } = input;
  const capacity = capacityOf(config, info, input.disk);
  const devices = [...(input.devices ?? [])];
  return {
    addresses: [
      ...config.nodeIps.map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: info.hostname },
    ],
    allocatable: {
      ...asText(allocatableOf(config, capacity)),
      ...Object.fromEntries(devices.map(([name, [, amount]]) => [name, String(amount)])),
    },
    capacity: {
      ...asText(capacity),
      ...Object.fromEntries(devices.map(([name, [amount]]) => [name, String(amount)])),
    },
    conditions: conditions(input),
    daemonEndpoints: { kubeletEndpoint: { Port: input.port } },
    features: { supplementalGroupsPolicy: true },
    images: imageList(input.images),
    nodeInfo: {
      architecture: info.architecture,
      bootID: info.bootId,
      containerRuntimeVersion: input.runtimeVersion,
      kernelVersion: info.kernelVersion,
      kubeProxyVersion: KUBERNETES_VERSION.gitVersion,
      kubeletVersion: KUBERNETES_VERSION.gitVersion,
      machineID: info.machineId,
      operatingSystem: info.operatingSystem,
      osImage: info.osImage,
      systemUUID: info.systemUuid,
    },
    runtimeHandlers: (input.features.handlers ?? [{ name: '', ...input.features }]).map(
      ({ name, recursiveReadOnlyMounts, userNamespaces = false }) => ({
        name,
        features: { recursiveReadOnlyMounts, userNamespaces },
      }),
    ),
  };
}

/** Images sorted by descending size, as in upstream. The scheduler scores nodes by images that are already present. */
function imageList(images: readonly ImageStatus[]): ContainerImage[] {
  return [...images]
    .sort((a, b) => b.sizeBytes - a.sizeBytes)
    .slice(0, MAX_IMAGES)
    .map((image) => ({
      names: [...image.repoDigests, ...image.repoTags].slice(0, MAX_NAMES_PER_IMAGE),
      // The API omits a size of zero, so a reported zero would count as a change in every comparison.
      ...(image.sizeBytes === 0 ? {} : { sizeBytes: image.sizeBytes }),
    }));
}

function conditions(input: NodeStatusInput): NodeCondition[] {
  const { pressures, notReady } = input;
  const pressure = (
    type: Pressure,
    [yes, no]: readonly [string, string],
    [bad, good]: readonly [string, string],
  ): NodeCondition => {
    const active = pressures.includes(type);
    return condition(input, type, active ? 'True' : 'False', active ? yes : no, active ? bad : good);
  };
  return [
    pressure(
      'MemoryPressure',
      ['KubeletHasInsufficientMemory', 'KubeletHasSufficientMemory'],
      ['kubelet has insufficient memory available', 'kubelet has sufficient memory available'],
    ),
    pressure(
      'DiskPressure',
      ['KubeletHasDiskPressure', 'KubeletHasNoDiskPressure'],
      ['kubelet has disk pressure', 'kubelet has no disk pressure'],
    ),
    pressure(
      'PIDPressure',
      ['KubeletHasInsufficientPID', 'KubeletHasSufficientPID'],
      ['kubelet has insufficient PID available', 'kubelet has sufficient PID available'],
    ),
    notReady === undefined
      ? condition(input, 'Ready', 'True', 'KubeletReady', 'kubelet is posting ready status')
      : condition(input, 'Ready', 'False', 'KubeletNotReady', notReady),
    ...input.more.map(({ type, status, reason, message }) => condition(input, type, status, reason, message)),
  ];
}

function condition(
  input: NodeStatusInput,
  type: string,
  status: 'True' | 'False',
  reason: string,
  message: string,
): NodeCondition {
  const before = input.previous.find((each) => each.type === type);
  const now = timestamp(input.nowMs);
  return {
    type,
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: transitionTime(before, status, now),
    reason,
    message,
  };
}

/** Node object with which this host registers. */
export function nodeObject(config: KubeletConfig, info: HostInfo, status: NodeStatus): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: config.nodeName,
      labels: nodeLabels(config, info),
      annotations: {
        'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
        ...nodeAnnotations(config),
      },
    },
    spec: {
      ...(config.registerWithTaints.length === 0 ? {} : { taints: [...config.registerWithTaints] }),
    },
    status,
  };
}

/** Release of the host process; the version of Kubernetes is in the Node's status. */
const VERSION_ANNOTATION = 'hyperedge.dev/version';

/** Annotations that the kubelet sets at every start. */
export function nodeAnnotations({ reservedPorts }: Pick<KubeletConfig, 'reservedPorts'>): Record<string, string> {
  return {
    [VERSION_ANNOTATION]: PRODUCT_VERSION,
    ...(reservedPorts.length === 0 ? {} : { [RESERVED_PORTS_ANNOTATION]: formatReservedPorts(reservedPorts) }),
  };
}

/** Labels that the kubelet sets at every start. */
export function nodeLabels(config: KubeletConfig, info: HostInfo): Record<string, string> {
  return {
    ...config.nodeLabels,
    'beta.kubernetes.io/arch': info.architecture,
    'beta.kubernetes.io/os': info.operatingSystem,
    'kubernetes.io/arch': info.architecture,
    'kubernetes.io/hostname': info.hostname,
    'kubernetes.io/os': info.operatingSystem,
  };
}
