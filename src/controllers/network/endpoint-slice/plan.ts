/**
 * Endpoint slices of a service, updated with few changes. Source: KEP-752, KEP-1672, upstream's endpointslice
 * reconciler.
 */
import type { Node, Pod, Service } from '../../../api/generated/core/v1.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import { equalIgnoringEmptyLists, jsonIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import { isPodReady } from '../../framework/core/pods.ts';
import { backendHostname, isBackend, isHeadless, type TargetPorts, targetPortsOf } from '../service-backends/plan.ts';

export const SERVICE_NAME = 'kubernetes.io/service-name';
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
const HEADLESS = 'service.kubernetes.io/headless';
const ZONE = 'topology.kubernetes.io/zone';
export const MAX_ENDPOINTS = 100;

type AddressType = 'IPv4' | 'IPv6';

export interface SlicePlan {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

export interface SliceSnapshot {
  readonly service: Service;
  readonly pods: readonly Pod[];
  /** Slices of the service that this controller manages. */
  readonly existing: readonly EndpointSlice[];
  nodeOf(name: string): Node | undefined;
}

/** Owner and common fields of the slices. */
export interface SliceOwner {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly reference: OwnerReference;
}

/** Endpoints of one address family with the same ports. */
export interface SliceGroup {
  readonly addressType: AddressType;
  readonly ports: EndpointPort[];
  readonly endpoints: Map<string, Endpoint>;
}

export function planEndpointSlices(snapshot: SliceSnapshot): SlicePlan {
  const { service } = snapshot;
  const families = addressTypes(service);
  const groups = new Map<string, SliceGroup>();
  const portsOfPod = portsByPod(service);
  for (const pod of snapshot.pods) {
    if (!isBackend(pod, { includeTerminating: true })) continue;
    for (const addressType of families) place(groups, snapshot, pod, addressType, portsOfPod);
  }
  // Every address family has at least one slice, possibly empty, so that consumers see that there are no backends.
  for (const addressType of families) {
    if (![...groups.values()].some((group) => group.addressType === addressType)) {
      groups.set(groupKey(addressType, []), { addressType, ports: [], endpoints: new Map() });
    }
  }
  return arrangeSlices(ownerOf(service), families, groups, snapshot.existing);
}

/** Distributes the groups over the existing slices with the fewest writes. */
export function arrangeSlices(
  owner: SliceOwner,
  families: readonly string[],
  groups: ReadonlyMap<string, SliceGroup>,
  existing: readonly EndpointSlice[],
): SlicePlan {
  const byGroup = new Map<string, EndpointSlice[]>();
  const doomed: EndpointSlice[] = [];
  for (const slice of existing) {
    if (slice.metadata?.deletionTimestamp !== undefined) continue;
    if (!families.includes(slice.addressType as AddressType)) {
      doomed.push(slice);
      continue;
    }
    const key = groupKey(slice.addressType as AddressType, slice.ports ?? []);
    const slices = byGroup.get(key);
    if (slices === undefined) byGroup.set(key, [slice]);
    else slices.push(slice);
  }
  const create: EndpointSlice[] = [];
  const update: EndpointSlice[] = [];
  for (const [key, group] of groups) {
    const plan = planGroup(owner, group, byGroup.get(key) ?? []);
    byGroup.delete(key);
    create.push(...plan.create);
    update.push(...plan.update);
    doomed.push(...plan.delete);
  }
  for (const slices of byGroup.values()) doomed.push(...slices);
  return reuse({ create, update, delete: doomed });
}

function place(
  groups: Map<string, SliceGroup>,
  snapshot: SliceSnapshot,
  pod: Pod,
  addressType: AddressType,
  portsOfPod: (pod: Pod) => BackendPorts | undefined,
): void {
  const addresses = (pod.status?.podIPs ?? [{ ip: pod.status?.podIP ?? '' }])
    .map((each) => each.ip ?? '')
    .filter((ip) => ip !== '' && (addressType === 'IPv6') === ip.includes(':'));
  if (addresses.length === 0) return;
  const found = portsOfPod(pod);
  if (found === undefined) return;
  const { ports } = found;
  const key = `${addressType}|${found.text}`;
  let group = groups.get(key);
  if (group === undefined) {
    group = { addressType, ports, endpoints: new Map() };
    groups.set(key, group);
  }
  const endpoint = endpointOf(snapshot, pod, addresses);
  group.endpoints.set(identity(endpoint), endpoint);
}

function addressTypes(service: Service): AddressType[] {
  const families = service.spec?.ipFamilies ?? [];
  const types = families.filter((family): family is AddressType => family === 'IPv4' || family === 'IPv6');
  if (types.length > 0) return types;
  return [service.spec?.clusterIP?.includes(':') === true ? 'IPv6' : 'IPv4'];
}

interface BackendPorts {
  readonly ports: EndpointPort[];
  /** Equal for equal ports. */
  readonly text: string;
}

/** Computes the ports of pods, once for all pods with the same target ports. */
function portsByPod(service: Service): (pod: Pod) => BackendPorts | undefined {
  const targets = targetPortsOf(service);
  const known = new Map<TargetPorts, BackendPorts>();
  if ((service.spec?.ports ?? []).length === 0)
    return () => (isHeadless(service) ? { ports: [], text: portsText([]) } : undefined);
  return (pod) => {
    const numbers = targets(pod);
    const found = known.get(numbers);
    if (found !== undefined) return found;
    const ports = portsOf(service, numbers);
    const made = { ports, text: portsText(ports) };
    known.set(numbers, made);
    return made;
  };
}

function portsOf(service: Service, numbers: TargetPorts): EndpointPort[] {
  const ports: EndpointPort[] = [];
  for (const [index, each] of (service.spec?.ports ?? []).entries()) {
    const port = numbers[index];
    if (port === undefined) continue;
    ports.push({
      name: each.name ?? '',
      port,
      protocol: each.protocol ?? 'TCP',
      ...(each.appProtocol === undefined ? {} : { appProtocol: each.appProtocol }),
    });
  }
  return ports;
}

/** Key that distinguishes slices: address type and ports. */
export const groupKey = (addressType: string, ports: readonly EndpointPort[]): string =>
  `${addressType}|${portsText(ports)}`;

/** Texts by port list, because each plan reads the ports of all existing slices. */
const portsTexts = new WeakMap<readonly EndpointPort[], string>();

function portsText(ports: readonly EndpointPort[]): string {
  const known = portsTexts.get(ports);
  if (known !== undefined) return known;
  const texts = ports.map((port) =>
    jsonIgnoringEmptyLists({ ...port, name: port.name ?? '', protocol: port.protocol ?? 'TCP' }),
  );
  const text = texts.sort().join('|');
  portsTexts.set(ports, text);
  return text;
}

function endpointOf(snapshot: SliceSnapshot, pod: Pod, addresses: readonly string[]): Endpoint {
  const { service } = snapshot;
  const serving = isPodReady(pod);
  const terminating = pod.metadata?.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const hostname = backendHostname(pod, service);
  const nodeName = pod.spec?.nodeName;
  const zone = nodeName === undefined ? undefined : snapshot.nodeOf(nodeName)?.metadata?.labels?.[ZONE];
  return {
    addresses: [...addresses],
    conditions: {
      ready,
      serving,
      terminating,
    },
    ...(hostname === undefined ? {} : { hostname }),
    ...(nodeName === undefined || nodeName === '' ? {} : { nodeName }),
    targetRef: {
      kind: 'Pod',
      namespace: pod.metadata?.namespace ?? '',
      name: pod.metadata?.name ?? '',
      uid: pod.metadata?.uid ?? '',
    },
    ...(zone === undefined ? {} : { zone }),
    ...(ready ? hintsOf(service, nodeName, zone) : {}),
  };
}

/** Hints for the endpoint (KEP-3015, KEP-4444): it serves clients of its own zone, or preferably of its own node. */
function hintsOf(service: Service, nodeName: string | undefined, zone: string | undefined): Pick<Endpoint, 'hints'> {
  const distribution = service.spec?.trafficDistribution;
  const forZones = zone === undefined ? {} : { forZones: [{ name: zone }] };
  if (distribution === 'PreferSameNode' && nodeName !== undefined && nodeName !== '') {
    return { hints: { forNodes: [{ name: nodeName }], ...forZones } };
  }
  const bySameZone = distribution === 'PreferClose' || distribution === 'PreferSameZone';
  return bySameZone && zone !== undefined ? { hints: forZones } : {};
}

/** Identity of a backend. Conditions are not part of it, so a backend keeps its slice when its conditions change. */
export function identity(endpoint: Endpoint): string {
  return `${endpoint.targetRef?.uid ?? ''}|${endpoint.addresses.join(',')}`;
}

function planGroup(owner: SliceOwner, group: SliceGroup, existing: readonly EndpointSlice[]): SlicePlan {
  const missing = new Map(group.endpoints);
  const { labels, annotations } = owner;
  const kept: { slice: EndpointSlice; endpoints: Endpoint[]; isChanged: boolean }[] = [];
  for (const slice of existing) {
    const endpoints: Endpoint[] = [];
    let isChanged =
      !equalIgnoringEmptyLists(slice.metadata?.labels ?? {}, labels) ||
      (annotations !== undefined && !equalIgnoringEmptyLists(slice.metadata?.annotations ?? {}, annotations));
    for (const old of slice.endpoints ?? []) {
      const id = identity(old);
      const wanted = missing.get(id);
      if (wanted === undefined) {
        isChanged = true;
        continue;
      }
      missing.delete(id);
      if (!equalIgnoringEmptyLists(old, wanted)) isChanged = true;
      endpoints.push(wanted);
    }
    kept.push({ slice, endpoints, isChanged });
  }
  const rest = [...missing.values()];
  // New endpoints are added first to slices that are written anyway, then to the fullest slices.
  const roomy = kept
    .filter((each) => each.endpoints.length < MAX_ENDPOINTS)
    .sort((a, b) => Number(b.isChanged) - Number(a.isChanged) || b.endpoints.length - a.endpoints.length);
  for (const each of roomy) {
    if (rest.length === 0) break;
    each.endpoints.push(...rest.splice(0, MAX_ENDPOINTS - each.endpoints.length));
    each.isChanged = true;
  }
  const create: EndpointSlice[] = [];
  while (rest.length > 0) create.push(newSlice(owner, group, rest.splice(0, MAX_ENDPOINTS)));
  const isPlaceholder = group.endpoints.size === 0;
  if (isPlaceholder && kept.length === 0) create.push(newSlice(owner, group, []));
  const update: EndpointSlice[] = [];
  const doomed: EndpointSlice[] = [];
  for (const [index, each] of kept.entries()) {
    if (each.endpoints.length === 0 && !(isPlaceholder && index === 0)) doomed.push(each.slice);
    else if (each.isChanged) {
      update.push({
        ...each.slice,
        metadata: { ...each.slice.metadata, labels, ...(annotations === undefined ? {} : { annotations }) },
        endpoints: each.endpoints,
        ports: group.ports,
      });
    }
  }
  return { create, update, delete: doomed };
}

function newSlice(owner: SliceOwner, group: SliceGroup, endpoints: Endpoint[]): EndpointSlice {
  const { name, namespace, labels, annotations, reference } = owner;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels,
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [reference],
    },
    addressType: group.addressType,
    endpoints,
    ports: group.ports,
  };
}

function ownerOf(service: Service): SliceOwner {
  return {
    name: service.metadata?.name ?? '',
    namespace: service.metadata?.namespace ?? '',
    labels: sliceLabels(service),
    reference: controllerReference(service, { group: '', version: 'v1', kind: 'Service' }),
  };
}

function sliceLabels(service: Service): Record<string, string> {
  const labels: Record<string, string> = { ...service.metadata?.labels };
  delete labels[HEADLESS];
  labels[SERVICE_NAME] = service.metadata?.name ?? '';
  labels[MANAGED_BY] = MANAGER;
  if (isHeadless(service)) labels[HEADLESS] = '';
  return labels;
}

/**
 * Merges the deletion of one slice and the creation of another slice of the same family into one update. This saves
 * writes, and watchers see no gap.
 */
function reuse(plan: SlicePlan): SlicePlan {
  const create: EndpointSlice[] = [];
  const update = [...plan.update];
  const doomed = [...plan.delete];
  for (const wanted of plan.create) {
    const index = doomed.findIndex((slice) => slice.addressType === wanted.addressType);
    const slice = doomed[index];
    if (slice === undefined) {
      create.push(wanted);
      continue;
    }
    doomed.splice(index, 1);
    update.push({
      ...slice,
      metadata: {
        ...slice.metadata,
        labels: wanted.metadata?.labels ?? {},
        ...(wanted.metadata?.annotations === undefined ? {} : { annotations: wanted.metadata.annotations }),
      },
      endpoints: wanted.endpoints ?? [],
      ...(wanted.ports === undefined ? {} : { ports: wanted.ports }),
    });
  }
  return { create, update, delete: doomed };
}
