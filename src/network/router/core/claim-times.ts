/**
 * Times at which an object claimed its hosts. Admission records the time of each claim that an update adds. Claims
 * without a record are as old as the object.
 */
import type { Ingress } from '../../../api/generated/networking/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { Route } from '../kinds/routes/types.ts';
import { type Age, ageOf } from './table-rows.ts';

/** Annotation with an object's claims and their times (RFC 3339) as JSON. Only admission writes it. */
export const HOST_CLAIMS = 'hyperedge.dev/host-claims';
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

interface ParentReference {
  readonly namespace?: string;
  readonly name?: string;
  readonly sectionName?: string;
  readonly port?: number;
}

interface Listener {
  readonly name?: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly tls?: { readonly mode?: string };
  readonly allowedRoutes?: object;
}

export const hostClaim = (host: string): string => `host:${host.toLowerCase()}`;
export const classClaim = (name: string | undefined): string => `class:${name ?? ''}`;
export const classOf = ({ metadata, spec }: Ingress): string | undefined =>
  spec?.ingressClassName ?? metadata?.annotations?.[CLASS_ANNOTATION];
export const parentClaim = (namespace: string, { namespace: at, name, sectionName, port }: ParentReference): string =>
  `parent:${[at ?? namespace, name, sectionName, port].join('/')}`;
/** Claim of a listener: all its fields that determine the hosts and routes that it serves, without certificates. */
export const listenerClaim = ({ name, hostname, port, protocol, tls, allowedRoutes }: Listener): string =>
  `listener:${JSON.stringify([name, hostname, port, protocol, tls?.mode, allowedRoutes])}`;

type Claims = (object: KubeObject) => string[];

/** Functions that list an object's claims, by `plural.group`. */
export const CLAIMS_BY_KIND: ReadonlyMap<string, Claims> = new Map<string, Claims>([
  ['routes.route.openshift.io', ({ spec }: Route) => [hostClaim(spec?.host ?? '')]],
  [
    'ingresses.networking.k8s.io',
    (object) => {
      const ingress = object as Ingress;
      const hosts = (ingress.spec?.rules ?? []).map(({ host = '' }) => hostClaim(host));
      return [classClaim(classOf(ingress)), ...hosts];
    },
  ],
  [
    'httproutes.gateway.networking.k8s.io',
    (object) => {
      const { metadata, spec } = object as KubeObject & {
        readonly spec?: { readonly parentRefs?: readonly ParentReference[]; readonly hostnames?: readonly string[] };
      };
      const hosts = spec?.hostnames ?? [];
      return [
        ...(spec?.parentRefs ?? []).map((each) => parentClaim(metadata?.namespace ?? '', each)),
        ...(hosts.length === 0 ? [''] : hosts).map(hostClaim),
      ];
    },
  ],
  [
    'gateways.gateway.networking.k8s.io',
    (object) => {
      const { spec } = object as KubeObject & {
        readonly spec?: { readonly gatewayClassName?: string; readonly listeners?: readonly Listener[] };
      };
      return [classClaim(spec?.gatewayClassName), ...(spec?.listeners ?? []).map(listenerClaim)];
    },
  ],
]);

type ClaimRecord = Readonly<Record<string, unknown>>;

/**
 * Parsed annotations by object. The record is looked up for each host of an object, and parsing takes time in
 * proportion to the number of hosts.
 */
const parsedRecords = new WeakMap<KubeObject, { readonly text: string; readonly record: ClaimRecord }>();

/** The object's claims and their recorded times. Records that cannot be parsed are ignored. */
function recordOf(object: KubeObject): ClaimRecord {
  const text = object.metadata?.annotations?.[HOST_CLAIMS] ?? '{}';
  const known = parsedRecords.get(object);
  if (known?.text === text) return known.record;
  const record = parsedRecord(text);
  parsedRecords.set(object, { text, record });
  return record;
}

function parsedRecord(text: string): ClaimRecord {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Age of a host that needs all of `claims`, which is the age of the youngest claim. */
export function claimAge(object: KubeObject, claims: readonly string[]): Age {
  const age = ageOf(object);
  if (object.metadata?.annotations?.[HOST_CLAIMS] === undefined) return age;
  const record = recordOf(object);
  let { created } = age;
  for (const claim of claims) {
    const time = Object.hasOwn(record, claim) ? record[claim] : undefined;
    if (typeof time === 'string' && time > created) created = time;
  }
  return { ...age, created };
}

export const youngestAge = (a: Age, b: Age): Age => (b.created > a.created ? { ...a, created: b.created } : a);

/**
 * Value of the annotation after an update; undefined for none. Claims that `old` already has keep their time. `now` is
 * RFC 3339 with whole seconds, because times are compared with creation timestamps as text.
 */
export function recordedClaims(claims: Claims, object: KubeObject, old: KubeObject, now: string): string | undefined {
  const before = new Set(claims(old));
  const record = recordOf(old);
  const times = new Map<string, string>();
  for (const claim of claims(object)) {
    const kept = Object.hasOwn(record, claim) ? record[claim] : undefined;
    if (!before.has(claim)) times.set(claim, now);
    else if (typeof kept === 'string') times.set(claim, kept);
  }
  if (times.size === 0) return undefined;
  return JSON.stringify(Object.fromEntries([...times].sort(([a], [b]) => (a < b ? -1 : 1))));
}
