/** Endpoints of a service in one object. Source: upstream's endpoint controller and RepackSubsets. */
import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Endpoints,
  Pod,
  Service,
} from '../../../api/generated/core/v1.ts';
import { equalIgnoringEmptyLists, jsonIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { isPodReady } from '../../framework/core/pods.ts';
import { backendHostname, isBackend, isHeadless, type TargetPorts, targetPortsOf } from '../service-backends/plan.ts';

const HEADLESS = 'service.kubernetes.io/headless';
const MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';
/** Upstream's limit of addresses in one object. */
const MAX_ADDRESSES = 1000;

export type EndpointsPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'create' | 'update'; readonly endpoints: Endpoints };

interface Backend {
  readonly address: EndpointAddress;
  readonly isReady: boolean;
  readonly ports: readonly EndpointPort[];
}

export function planEndpoints(service: Service, pods: readonly Pod[], existing: Endpoints | undefined): EndpointsPlan {
  const backends = backendsOf(service, pods);
  const kept = truncate(backends);
  const subsets = repack(kept);
  const labels: Record<string, string> = {
    ...service.metadata?.labels,
    [MANAGED_BY]: 'endpoint-controller',
  };
  if (isHeadless(service)) labels[HEADLESS] = '';
  else delete labels[HEADLESS];
  const annotations = { ...existing?.metadata?.annotations };
  if (kept.length < backends.length) annotations[OVER_CAPACITY] = 'truncated';
  else delete annotations[OVER_CAPACITY];
  if (
    existing !== undefined &&
    equalIgnoringEmptyLists(existing.subsets, subsets) &&
    equalIgnoringEmptyLists(existing.metadata?.labels ?? {}, labels) &&
    equalIgnoringEmptyLists(existing.metadata?.annotations ?? {}, annotations)
  ) {
    return { kind: 'none' };
  }
  const endpoints: Endpoints = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      ...(existing?.metadata ?? { name: service.metadata?.name ?? '', namespace: service.metadata?.namespace ?? '' }),
      labels,
      ...(Object.keys(annotations).length > 0 || existing?.metadata?.annotations !== undefined ? { annotations } : {}),
    },
    ...(subsets.length > 0 ? { subsets } : {}),
  };
  return { kind: existing === undefined ? 'create' : 'update', endpoints };
}

function backendsOf(service: Service, pods: readonly Pod[]): Backend[] {
  const publishNotReady = service.spec?.publishNotReadyAddresses === true;
  const backends: Backend[] = [];
  const targets = targetPortsOf(service);
  // Pods with the same target ports share their ports, so that they are compared once.
  const known = new Map<TargetPorts, readonly EndpointPort[] | undefined>();
  for (const pod of pods) {
    if (!isBackend(pod, { includeTerminating: publishNotReady })) continue;
    const numbers = targets(pod);
    const ports = known.has(numbers) ? known.get(numbers) : portsOf(service, numbers);
    known.set(numbers, ports);
    const ip = ports === undefined ? undefined : podIpFor(service, pod);
    if (ports === undefined || ip === undefined) continue;
    backends.push({ address: addressOf(service, pod, ip), isReady: publishNotReady || isPodReady(pod), ports });
  }
  return backends;
}

/**
 * Ports of the service on this pod; undefined if the pod has none of them. A headless service without ports lists
 * addresses only.
 */
function portsOf(service: Service, numbers: TargetPorts): EndpointPort[] | undefined {
  const declared = service.spec?.ports ?? [];
  if (declared.length === 0) return isHeadless(service) ? [] : undefined;
  const ports: EndpointPort[] = [];
  for (const [index, each] of declared.entries()) {
    const port = numbers[index];
    if (port === undefined) continue;
    ports.push({
      ...(each.name === undefined || each.name === '' ? {} : { name: each.name }),
      port,
      protocol: each.protocol ?? 'TCP',
      ...(each.appProtocol === undefined ? {} : { appProtocol: each.appProtocol }),
    });
  }
  return ports.length === 0 ? undefined : ports;
}

/**
 * Address of the pod in the primary family of the service, if it has one. Source: upstream's
 * podToEndpointAddressForService.
 */
function podIpFor({ spec }: Service, { status }: Pod): string | undefined {
  const ips = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)].filter((ip) => ip !== undefined);
  const clusterIp = spec?.clusterIP ?? '';
  const isAddress = clusterIp !== '' && clusterIp !== 'None';
  const family = spec?.ipFamilies?.[0] ?? (isAddress ? familyOf(clusterIp) : familyOf(ips[0] ?? ''));
  return ips.find((ip) => ip !== '' && familyOf(ip) === family);
}

const familyOf = (address: string): string => (address.includes(':') ? 'IPv6' : 'IPv4');

function addressOf(service: Service, pod: Pod, ip: string): EndpointAddress {
  const hostname = backendHostname(pod, service);
  return {
    ip,
    ...(hostname === undefined ? {} : { hostname }),
    ...(pod.spec?.nodeName === undefined ? {} : { nodeName: pod.spec.nodeName }),
    targetRef: {
      kind: 'Pod',
      namespace: pod.metadata?.namespace ?? '',
      name: pod.metadata?.name ?? '',
      uid: pod.metadata?.uid ?? '',
    },
  };
}

/** Truncates the list to the limit and prefers ready backends. */
function truncate(backends: readonly Backend[]): readonly Backend[] {
  if (backends.length <= MAX_ADDRESSES) return backends;
  return [...backends].sort((a, b) => Number(b.isReady) - Number(a.isReady)).slice(0, MAX_ADDRESSES);
}

function sortedPorts(ports: readonly EndpointPort[]): { readonly sorted: EndpointPort[]; readonly key: string } {
  const texts = ports.map((port) => ({ port, text: jsonIgnoringEmptyLists(port) }));
  texts.sort((a, b) => (a.text < b.text ? -1 : 1));
  return { sorted: texts.map(({ port }) => port), key: `[${texts.map(({ text }) => text).join()}]` };
}

/** Builds one subset per distinct set of ports. The order is fixed, so that equal contents produce equal objects. */
function repack(backends: readonly Backend[]): EndpointSubset[] {
  const byPorts = new Map<string, { ports: EndpointPort[]; ready: EndpointAddress[]; notReady: EndpointAddress[] }>();
  const known = new Map<readonly EndpointPort[], { readonly sorted: EndpointPort[]; readonly key: string }>();
  for (const { address, isReady, ports } of backends) {
    const found = known.get(ports) ?? sortedPorts(ports);
    known.set(ports, found);
    const { sorted, key } = found;
    let subset = byPorts.get(key);
    if (subset === undefined) {
      subset = { ports: sorted, ready: [], notReady: [] };
      byPorts.set(key, subset);
    }
    (isReady ? subset.ready : subset.notReady).push(address);
  }
  return [...byPorts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { ports, ready, notReady }]) => ({
      ...(ready.length > 0 ? { addresses: ready.sort(byAddress) } : {}),
      ...(notReady.length > 0 ? { notReadyAddresses: notReady.sort(byAddress) } : {}),
      ...(ports.length > 0 ? { ports } : {}),
    }));
}

function byAddress(a: EndpointAddress, b: EndpointAddress): number {
  if (a.ip !== b.ip) return a.ip < b.ip ? -1 : 1;
  return (a.targetRef?.uid ?? '') < (b.targetRef?.uid ?? '') ? -1 : 1;
}
