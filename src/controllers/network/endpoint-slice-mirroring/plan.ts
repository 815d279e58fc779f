/**
 * Endpoint slices that mirror user-managed Endpoints of a service without a selector. Source: KEP-752, upstream's
 * pkg/controller/endpointslicemirroring.
 */
import type { EndpointAddress, Endpoints, Service } from '../../../api/generated/core/v1.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import {
  arrangeSlices,
  groupKey,
  identity,
  MANAGED_BY,
  SERVICE_NAME,
  type SliceGroup,
  type SlicePlan,
} from '../endpoint-slice/plan.ts';
import { hasManagedBackends } from '../service-backends/plan.ts';

export const MIRRORING_MANAGER = 'endpointslicemirroring-controller.k8s.io';
export const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';
const NOT_MIRRORED = [
  'endpoints.kubernetes.io/last-change-trigger-time',
  'kubectl.kubernetes.io/last-applied-configuration',
];
/** Addresses of a subset above this number are not mirrored. Upstream's value. */
const MAX_ADDRESSES = 1000;

export interface MirrorSnapshot {
  readonly service: Service | undefined;
  readonly endpoints: Endpoints | undefined;
  /** Slices that this controller manages for the service. */
  readonly existing: readonly EndpointSlice[];
}

export function planMirror({ service, endpoints, existing }: MirrorSnapshot): SlicePlan {
  if (service === undefined || endpoints === undefined || !isMirrored(service, endpoints)) {
    return { create: [], update: [], delete: existing };
  }
  const groups = new Map<string, SliceGroup>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of endpoints.subsets ?? []) {
    const slicePorts = ports.map(
      (port): EndpointPort => ({
        name: port.name ?? '',
        port: port.port,
        protocol: port.protocol ?? 'TCP',
        ...(port.appProtocol === undefined ? {} : { appProtocol: port.appProtocol }),
      }),
    );
    const all = [
      ...addresses.map((address) => endpointOf(address, { ready: true })),
      ...notReadyAddresses.map((address) => endpointOf(address, { ready: false })),
    ];
    for (const endpoint of all.slice(0, MAX_ADDRESSES)) place(groups, endpoint, slicePorts);
  }
  const { name = '', namespace = '', labels, annotations } = endpoints.metadata ?? {};
  const mirrored = Object.entries(annotations ?? {}).filter(([key]) => !NOT_MIRRORED.includes(key));
  const owner = {
    name,
    namespace,
    labels: { ...labels, [SERVICE_NAME]: name, [MANAGED_BY]: MIRRORING_MANAGER },
    annotations: Object.fromEntries(mirrored),
    reference: controllerReference(endpoints, { group: '', version: 'v1', kind: 'Endpoints' }),
  };
  return arrangeSlices(owner, ['IPv4', 'IPv6'], groups, existing);
}

function isMirrored(service: Service, endpoints: Endpoints): boolean {
  const { labels, annotations, deletionTimestamp } = endpoints.metadata ?? {};
  if (deletionTimestamp !== undefined || hasManagedBackends(service)) return false;
  return labels?.[SKIP_MIRROR] !== 'true' && annotations?.[LEADER] === undefined;
}

function endpointOf(address: EndpointAddress, { ready }: { readonly ready: boolean }): Endpoint {
  return {
    addresses: [address.ip],
    conditions: { ready },
    ...(address.hostname === undefined ? {} : { hostname: address.hostname }),
    ...(address.nodeName === undefined ? {} : { nodeName: address.nodeName }),
    ...(address.targetRef === undefined ? {} : { targetRef: address.targetRef }),
  };
}

function place(groups: Map<string, SliceGroup>, endpoint: Endpoint, ports: EndpointPort[]): void {
  const addressType = endpoint.addresses[0]?.includes(':') === true ? 'IPv6' : 'IPv4';
  const key = groupKey(addressType, ports);
  let group = groups.get(key);
  if (group === undefined) {
    group = { addressType, ports, endpoints: new Map() };
    groups.set(key, group);
  }
  group.endpoints.set(identity(endpoint), endpoint);
}
