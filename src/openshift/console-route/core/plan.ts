/**
 * Plans the objects through which a route leads to the console of the API servers. The objects have their own label, so
 * that a console that an administrator has installed in the same namespace is not changed.
 */
import type { Endpoints, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { Route } from '../../../network/router/kinds/routes/types.ts';

export const CONSOLE_NAMESPACE = 'openshift-console';
export const CONSOLE_NAME = 'console';
export const MANAGED_LABEL = 'console.hyperedge.dev/managed';
const PORT_NAME = 'https';
const HTTPS_PORT = 443;

export interface ConsoleFacts {
  /** Whether the route must exist. */
  readonly isWanted: boolean;
  /** Domain of routes, from which the host of the route is derived. */
  readonly domain: string;
  /** CA certificates (PEM) that verify the certificates of the API servers. */
  readonly caPem: string;
  /** Endpoints of the service `default/kubernetes`, which are all API servers. */
  readonly servers: Endpoints | undefined;
}

export interface ConsoleObjects {
  readonly service: Service | undefined;
  readonly slice: EndpointSlice | undefined;
  readonly route: Route | undefined;
}

export type Step<T> =
  | { readonly kind: 'create'; readonly object: T }
  | { readonly kind: 'patch'; readonly change: object }
  | { readonly kind: 'delete' };

export interface ConsolePlan {
  readonly service?: Step<Service> | undefined;
  readonly slice?: Step<EndpointSlice> | undefined;
  readonly route?: Step<Route> | undefined;
}

/** Default host of the route `console` in the namespace `openshift-console`. */
export const consoleHost = (domain: string): string => `${CONSOLE_NAME}-${CONSOLE_NAMESPACE}.${domain}`;

const isOwn = (object: KubeObject): boolean => object.metadata?.labels?.[MANAGED_LABEL] === 'true';

/** Steps for the objects that differ from the facts. Empty if the present objects belong to another console. */
export function planConsole(present: ConsoleObjects, facts: ConsoleFacts): ConsolePlan {
  const { service, slice, route } = present;
  const found = [service, slice, route].filter((each) => each !== undefined);
  if (!facts.isWanted) {
    const removal = (object: KubeObject | undefined): { readonly kind: 'delete' } | undefined =>
      object !== undefined && isOwn(object) && object.metadata?.deletionTimestamp === undefined
        ? { kind: 'delete' }
        : undefined;
    return { route: removal(route), slice: removal(slice), service: removal(service) };
  }
  if (!found.every(isOwn)) return {};
  const port = facts.servers?.subsets?.[0]?.ports?.[0]?.port;
  const addresses = (facts.servers?.subsets ?? []).flatMap((each) => each.addresses ?? []).map(({ ip }) => ip);
  const [first] = addresses;
  // Without API servers in the Endpoints object, a router could not reach the console.
  if (port === undefined || first === undefined) return {};
  return {
    service: stepTo(service, serviceOf(port)),
    slice: stepTo(slice, sliceOf(addresses, port)),
    route: stepTo(route, routeOf(facts)),
  };
}

const metadata = (labels: Readonly<Record<string, string>> = {}) => ({
  name: CONSOLE_NAME,
  namespace: CONSOLE_NAMESPACE,
  labels: { [MANAGED_LABEL]: 'true', ...labels },
});

/** Service for the router, which connects to the endpoints directly, so the service needs no cluster IP. */
const serviceOf = (port: number): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(),
  spec: {
    clusterIP: 'None',
    ports: [{ name: PORT_NAME, port: HTTPS_PORT, protocol: 'TCP', targetPort: port }],
  },
});

const sliceOf = (addresses: readonly string[], port: number): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: metadata({
    'kubernetes.io/service-name': CONSOLE_NAME,
    'endpointslice.kubernetes.io/managed-by': 'console-route.hyperedge.dev',
  }),
  addressType: addresses[0]?.includes(':') === true ? 'IPv6' : 'IPv4',
  endpoints: addresses.map((each) => ({ addresses: [each], conditions: { ready: true } })),
  ports: [{ name: PORT_NAME, port, protocol: 'TCP' }],
});

/**
 * Route whose TLS is terminated by the router with its own certificate. The router verifies the API servers'
 * certificates.
 */
const routeOf = ({ domain, caPem }: ConsoleFacts): Route => ({
  apiVersion: 'route.openshift.io/v1',
  kind: 'Route',
  metadata: metadata(),
  spec: {
    host: consoleHost(domain),
    to: { kind: 'Service', name: CONSOLE_NAME, weight: 100 },
    port: { targetPort: PORT_NAME },
    tls: {
      termination: 'reencrypt',
      insecureEdgeTerminationPolicy: 'Redirect',
      destinationCACertificate: caPem,
    },
  },
});

/**
 * Step that creates `wanted`, or patches its fields except the metadata. Undefined if the present object has these
 * fields.
 */
function stepTo<T extends KubeObject>(present: T | undefined, wanted: T): Step<T> | undefined {
  if (present === undefined) return { kind: 'create', object: wanted };
  const { metadata: _, ...change } = wanted;
  return covers(present, change) ? undefined : { kind: 'patch', change };
}

/** Whether `present` has all fields of `wanted` with the same values. Lists must have the same length. */
function covers(present: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return present === wanted;
  if (typeof present !== 'object' || present === null) return false;
  if (Array.isArray(wanted) && (!Array.isArray(present) || present.length !== wanted.length)) return false;
  const found = present as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).every(([name, value]) => covers(found[name], value));
}
