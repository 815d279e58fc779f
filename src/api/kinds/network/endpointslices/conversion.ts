/**
 * Conversion of v1beta1 endpoint slices, which have the location of an endpoint in a topology map. Source:
 * k8s.io/kubernetes/pkg/apis/discovery/v1beta1 conversion.
 */
import type { Endpoint, EndpointSlice } from '../../../generated/discovery/v1.ts';
import type { KindAlias } from '../../../registry/definition.ts';

const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';

type OlderEndpoint = Omit<Endpoint, 'deprecatedTopology' | 'zone'> & { topology?: Record<string, string> };

function endpointTo({ topology, ...rest }: OlderEndpoint): Endpoint {
  if (topology === undefined) return rest;
  const { [ZONE]: zone, ...others } = topology;
  // The host name in the map is kept if it differs from the node name.
  if (others[HOSTNAME] === rest.nodeName) delete others[HOSTNAME];
  return {
    ...rest,
    ...(zone === undefined ? {} : { zone }),
    ...(Object.keys(others).length === 0 ? {} : { deprecatedTopology: others }),
  };
}

function endpointFrom({ deprecatedTopology, zone, ...rest }: Endpoint): OlderEndpoint {
  const topology = {
    ...deprecatedTopology,
    ...(zone === undefined ? {} : { [ZONE]: zone }),
    ...(rest.nodeName === undefined || deprecatedTopology?.[HOSTNAME] !== undefined
      ? {}
      : { [HOSTNAME]: rest.nodeName }),
  };
  return Object.keys(topology).length === 0 ? rest : { ...rest, topology };
}

export const v1beta1: KindAlias<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1beta1',
  deprecated: { since: '1.21', removed: '1.25' },
  convertTo(object) {
    const slice = object as EndpointSlice;
    if (slice.endpoints === undefined) return slice;
    return { ...slice, endpoints: slice.endpoints.map((each) => endpointTo(each as OlderEndpoint)) };
  },
  convertFrom(slice) {
    if (slice.endpoints === undefined) return slice;
    return { ...slice, endpoints: slice.endpoints.map(endpointFrom) } as EndpointSlice;
  },
};
