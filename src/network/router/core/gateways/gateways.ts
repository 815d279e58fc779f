/** HTTP routes of the Gateway API as rows. Source: gateway-api.sigs.k8s.io, release 1 (`v1`), core features. */
import type { KubeObject, ResourceType } from '../../../../api/meta/object.ts';
import { readOptions } from '../annotations.ts';
import { claimAge, classClaim, hostClaim, listenerClaim, parentClaim, youngestAge } from '../claim-times.ts';
import { fnv } from '../hash.ts';
import { type IngressSource, portName, ROUTER_CLASS } from '../ingresses.ts';
import type { Certificate, Pool, Redirect } from '../port.ts';
import { type Age, compareAges, type PathMatch, poolOf, type Row } from '../table-rows.ts';
import { type CertificateProblem, certificateOfListener, type Listener, listenerProblem } from './listeners.ts';
import type { Permits } from './reference-grants.ts';

export interface Gateway extends KubeObject {
  spec?: { gatewayClassName?: string; listeners?: Listener[] };
  status?: object;
}

export interface ParentReference {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly sectionName?: string;
  readonly port?: number;
}

interface Filter {
  readonly type?: string;
  readonly requestRedirect?: {
    readonly scheme?: string;
    readonly hostname?: string;
    readonly port?: number;
    readonly statusCode?: number;
    readonly path?: { readonly type?: string; readonly replaceFullPath?: string; readonly replacePrefixMatch?: string };
  };
}

interface Match {
  readonly path?: { readonly type?: string; readonly value?: string };
  readonly method?: string;
  readonly headers?: readonly { readonly type?: string; readonly name?: string; readonly value?: string }[];
}

interface HttpRouteRule {
  readonly matches?: readonly Match[];
  readonly filters?: readonly Filter[];
  readonly backendRefs?: readonly {
    readonly group?: string;
    readonly kind?: string;
    readonly name?: string;
    readonly namespace?: string;
    readonly port?: number;
    readonly weight?: number;
  }[];
}

export interface HttpRoute extends KubeObject {
  spec?: { parentRefs?: ParentReference[]; hostnames?: string[]; rules?: HttpRouteRule[] };
  status?: { parents?: { parentRef?: ParentReference; controllerName?: string; conditions?: object[] }[] };
}

const GATEWAYS = {
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'Gateway',
  plural: 'gateways',
  namespaced: true,
} as const;
/** Custom kinds, whose definitions the controller creates. */
export const gateways: ResourceType<Gateway> = GATEWAYS;
export const httpRoutes: ResourceType<HttpRoute> = { ...GATEWAYS, kind: 'HTTPRoute', plural: 'httproutes' };
export const gatewayClasses: ResourceType = {
  ...GATEWAYS,
  kind: 'GatewayClass',
  plural: 'gatewayclasses',
  namespaced: false,
};

export const isOwnGateway = ({ spec }: Gateway): boolean => spec?.gatewayClassName === ROUTER_CLASS;

/** Relation of a route to a parent, with the reason if the parent does not accept it. */
export interface Attachment {
  readonly parent: ParentReference;
  readonly gateway: Gateway;
  readonly listeners: readonly Listener[];
  readonly refusal: { readonly reason: string; readonly message: string } | undefined;
}

/** Parents of a route that are Gateways of this router. Other parents belong to other controllers. */
export function attachments(
  route: HttpRoute,
  gateway: (key: string) => Gateway | undefined,
  permits: Permits,
): Attachment[] {
  const { namespace = '' } = route.metadata ?? {};
  return (route.spec?.parentRefs ?? []).flatMap((parent): Attachment[] => {
    const at = parent.namespace ?? namespace;
    const found = gateway(`${at}/${parent.name ?? ''}`);
    if ((parent.kind ?? 'Gateway') !== 'Gateway' || found?.spec?.gatewayClassName !== ROUTER_CLASS) return [];
    const refuse = (reason: string, message: string) => [
      { parent, gateway: found, listeners: [], refusal: { reason, message } },
    ];
    const unsupported = unsupportedOf(route);
    if (unsupported !== undefined) return refuse('UnsupportedValue', unsupported);
    const named = (found.spec.listeners ?? []).filter(
      (each) =>
        (parent.sectionName === undefined || parent.sectionName === each.name) &&
        (parent.port === undefined || parent.port === each.port) &&
        listenerProblem(found, each, permits) === undefined,
    );
    if (named.length === 0)
      return refuse('NoMatchingParent', 'no listener of the Gateway that is served matches sectionName and port');
    const allowed = named.filter(({ allowedRoutes }) => allowedRoutes?.namespaces?.from === 'All' || at === namespace);
    if (allowed.length === 0)
      return refuse('NotAllowedByListeners', `the listeners do not allow routes of namespace ${namespace}`);
    const matching = allowed.filter((each) => hostsOf(route, each).length > 0);
    if (matching.length === 0)
      return refuse('NoMatchingListenerHostname', 'no host name of the route matches a listener');
    return [{ parent, gateway: found, listeners: matching, refusal: undefined }];
  });
}

/** Name of the first field whose value this router does not support; undefined if there is none. */
function unsupportedOf({ spec }: HttpRoute): string | undefined {
  for (const { matches = [], filters = [] } of spec?.rules ?? []) {
    const filter = filters.find(({ type }) => type !== 'RequestRedirect');
    if (filter !== undefined) return `spec.rules.filters.type: ${filter.type} is not supported; use RequestRedirect`;
    if (matches.some(({ path }) => path?.type === 'RegularExpression'))
      return 'spec.rules.matches.path.type: RegularExpression is not supported; use Exact or PathPrefix';
    if (matches.some(({ headers = [] }) => headers.some(({ type }) => type === 'RegularExpression')))
      return 'spec.rules.matches.headers.type: RegularExpression is not supported; use Exact';
  }
  return undefined;
}

/** Host names of the route, restricted by the listener. '' means every host. */
function hostsOf({ spec }: HttpRoute, { hostname = '' }: Listener): string[] {
  const names = spec?.hostnames ?? [];
  if (names.length === 0) return [hostname];
  return names.flatMap((name) => {
    if (hostname === '' || name === hostname) return [name];
    if (hostname.startsWith('*.') && name.endsWith(hostname.slice(1))) return [name];
    return name.startsWith('*.') && hostname.endsWith(name.slice(1)) ? [hostname] : [];
  });
}

interface Place {
  readonly host: string;
  http: boolean;
  https: boolean;
  /** Whether the listener's certificate cannot be served. */
  refused: boolean;
  certificate: Certificate | undefined;
  age: Age;
}

/** Age of the youngest claim that makes the route serve the host: its own, its parent reference or the listener. */
function ageOfPlace(
  route: HttpRoute,
  parent: ParentReference,
  host: string,
  gateway: Gateway,
  listener: Listener,
): Age {
  const own = (route.spec?.hostnames ?? []).some((each) => each.toLowerCase() === host.toLowerCase());
  // A host that results from the listener's restriction is not in the route's list, so the claims of all listed names
  // count.
  const hosts = own ? [host] : (route.spec?.hostnames ?? ['']);
  const { namespace = '' } = route.metadata ?? {};
  return youngestAge(
    claimAge(route, [parentClaim(namespace, parent), ...hosts.map(hostClaim)]),
    claimAge(gateway, [classClaim(gateway.spec?.gatewayClassName), listenerClaim(listener)]),
  );
}

export function rowsOfHttpRoute(
  route: HttpRoute,
  source: IngressSource & {
    gateway(key: string): Gateway | undefined;
    readonly permits: Permits;
    readonly certificates: CertificateProblem;
  },
): Row[] {
  const { namespace = '', name = '', annotations = {} } = route.metadata ?? {};
  const id = `httproute/${namespace}/${name}`;
  const { options } = readOptions(annotations, fnv(id), { passthrough: false });
  const places = new Map<string, Place>();
  for (const { parent, gateway, listeners } of attachments(route, source.gateway, source.permits))
    for (const listener of listeners) {
      const secret = certificateOfListener(gateway, listener);
      for (const host of hostsOf(route, listener)) {
        const age = ageOfPlace(route, parent, host, gateway, listener);
        const place = places.get(host) ?? {
          host,
          http: false,
          https: false,
          refused: false,
          certificate: undefined,
          age,
        };
        places.set(host, place);
        if (compareAges(age, place.age) < 0) place.age = age;
        if (listener.protocol !== 'HTTPS') place.http = true;
        else if (listenerProblem(gateway, listener, source.permits, source.certificates) !== undefined)
          place.refused = true;
        else place.https = true;
        if (secret !== undefined && place.https)
          place.certificate ??= source.certificate(secret.namespace, secret.name);
      }
    }
  return [...places.values()].flatMap(({ host: given, http, https, refused, certificate, age }) =>
    (route.spec?.rules ?? []).flatMap((rule) => {
      const matches = rule.matches === undefined || rule.matches.length === 0 ? [{}] : rule.matches;
      const pools = (rule.backendRefs ?? []).flatMap((each) => poolOfReference(namespace, each, source));
      const isWildcard = given.startsWith('*.');
      return matches.map((match: Match): Row => {
        const path = pathOf(match);
        return {
          backend: {
            id,
            namespace,
            name,
            host: given,
            path: path.value,
            pools,
            upstream: { tls: false },
            options: { ...options, cookie: undefined, balance: 'roundrobin' },
            redirect: redirectOf(rule),
          },
          host: (isWildcard ? given.slice(2) : given).toLowerCase(),
          wildcard: isWildcard ? 'any' : 'none',
          path,
          method: match.method,
          headers: (match.headers ?? []).map((each) => ({
            name: (each.name ?? '').toLowerCase(),
            value: each.value ?? '',
          })),
          tls: https ? 'terminate' : refused ? 'refused' : 'none',
          insecure: http ? 'serve' : 'none',
          certificate,
          age,
        };
      });
    }),
  );
}

function pathOf({ path }: Match): PathMatch {
  const { type = 'PathPrefix', value = '/' } = path ?? {};
  return type === 'Exact' ? { kind: 'exact', value } : { kind: 'prefix', value: value.replace(/(?<!\/)\/$/, '') };
}

/** Pool of a reference. A service of another namespace has no servers unless a ReferenceGrant permits it. */
function poolOfReference(
  namespace: string,
  reference: NonNullable<HttpRouteRule['backendRefs']>[number],
  source: IngressSource & { readonly permits: Permits },
): Pool[] {
  const { group = '', kind = 'Service', name = '', namespace: other = namespace, port, weight = 1 } = reference;
  const key = `${other}/${name}`;
  if (group !== '' || kind !== 'Service' || port === undefined || !isPermitted(namespace, reference, source.permits))
    return [{ service: key, weight, endpoints: [], http2: false }];
  return [poolOf(source, key, portName(source.service(key), { number: port }), weight)];
}

const isPermitted = (
  namespace: string,
  { namespace: other = namespace, name = '' }: { readonly namespace?: string; readonly name?: string },
  permits: Permits,
): boolean => permits({ from: { kind: 'HTTPRoute', namespace }, to: { kind: 'Service', namespace: other, name } });

/** The first back end that needs a missing ReferenceGrant. */
export function unpermittedBackend({ metadata, spec }: HttpRoute, permits: Permits): string | undefined {
  const { namespace = '' } = metadata ?? {};
  const references = (spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs);
  const found = references.find((each) => !isPermitted(namespace, each, permits));
  return found === undefined ? undefined : `${found.namespace}/${found.name}`;
}

function redirectOf({ filters = [] }: HttpRouteRule): Redirect | undefined {
  const found = filters.find(({ type }) => type === 'RequestRedirect')?.requestRedirect;
  if (found === undefined) return undefined;
  const { scheme, hostname, port, statusCode = 302, path } = found;
  return {
    scheme,
    host: hostname,
    port,
    status: statusCode,
    path:
      path?.type === 'ReplaceFullPath'
        ? { kind: 'full', value: path.replaceFullPath ?? '/' }
        : path?.type === 'ReplacePrefixMatch'
          ? { kind: 'prefix', value: path.replacePrefixMatch ?? '/' }
          : undefined,
  };
}
