/**
 * Rows of the table from routes, and reasons for their rejection. Source: openshift/router pkg/router/controller
 * (unique host, extended validation, status).
 */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import type { Route, RouteTarget } from '../kinds/routes/types.ts';
import { readOptions } from './annotations.ts';
import type { CertificateCheck } from './certificate-check.ts';
import { claimAge, hostClaim } from './claim-times.ts';
import { fnv } from './hash.ts';
import type { Backend, Pool, Upstream } from './port.ts';
import { poolOf, type Row, type ServiceSource } from './table-rows.ts';

export type Rejection = {
  readonly reason:
    | 'HostAlreadyClaimed'
    | 'RouteNotAdmitted'
    | 'NoHostValue'
    | 'InvalidHost'
    | 'ExtendedValidationFailed';
  readonly message: string;
};

const DEFAULT_WEIGHT = 100;
const ALLOW_NON_DNS_HOST = 'route.openshift.io/allow-non-dns-compliant-host';

export const routeId = ({ metadata }: Route): string => `route/${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;

/** Lower-case host of a route; '' if it has none. */
export const hostOf = ({ spec }: Route): string => (spec?.host ?? '').toLowerCase();

/** Reason why the host cannot be served, independent of other routes. */
export function hostProblem(route: Route): Rejection | undefined {
  const host = hostOf(route);
  if (host === '') return { reason: 'NoHostValue', message: 'no host value was defined for the route' };
  const relaxed = route.metadata?.annotations?.[ALLOW_NON_DNS_HOST] === 'true';
  const errors = [
    ...dns1123SubdomainErrors(host),
    ...(relaxed ? [] : host.split('.').flatMap((label) => dns1123LabelErrors(label))),
  ];
  if (errors.length === 0) return undefined;
  return {
    reason: 'InvalidHost',
    message: `host name validation errors: spec.host: Invalid value: "${host}": ${errors[0]}`,
  };
}

export interface RouteRow {
  readonly row: Row;
  readonly problems: readonly string[];
}

export function rowOfRoute(route: Route, services: ServiceSource, check: CertificateCheck): RouteRow {
  const { metadata, spec = {} } = route;
  const { namespace = '', name = '', annotations = {} } = metadata ?? {};
  const { tls } = spec;
  const isPassthrough = tls?.termination === 'passthrough';
  const id = routeId(route);
  const { options, problems } = readOptions(annotations, fnv(id), { passthrough: isPassthrough });
  const pool = ({ name: service = '', weight = DEFAULT_WEIGHT }: RouteTarget): Pool =>
    poolOf(services, `${namespace}/${service}`, spec.port?.targetPort, weight);
  const pools = [spec.to ?? {}, ...(spec.alternateBackends ?? [])].map(pool);
  // OpenShift's router uses round robin between several services, so that their shares are exact.
  const isSplit =
    pools.length > 1 && annotations['haproxy.router.openshift.io/balance'] === undefined && !isPassthrough;
  const host = hostOf(route);
  const path = spec.path ?? '';
  const backend: Backend = {
    id,
    namespace,
    name,
    host,
    path,
    pools,
    upstream: upstreamOf(route),
    options: isSplit ? { ...options, balance: 'roundrobin' } : options,
    redirect: undefined,
  };
  const isWildcard = spec.wildcardPolicy === 'Subdomain';
  const problem = tls === undefined ? undefined : check(tls);
  const certificate =
    tls?.certificate && tls.key
      ? { certificate: [tls.certificate, tls.caCertificate ?? ''].join('\n').trim(), key: tls.key }
      : undefined;
  return {
    row: {
      backend,
      host: isWildcard ? host.slice(host.indexOf('.') + 1) : host,
      wildcard: isWildcard ? 'label' : 'none',
      path: { kind: 'prefix', value: path },
      method: undefined,
      headers: [],
      tls: tls === undefined ? 'none' : isPassthrough ? 'passthrough' : 'terminate',
      insecure: insecureOf(route),
      certificate: problem === undefined ? certificate : undefined,
      age: claimAge(route, [hostClaim(host)]),
    },
    problems: problem === undefined ? problems : [...problems, problem],
  };
}

function insecureOf({ spec }: Route): Row['insecure'] {
  if (spec?.tls === undefined) return 'serve';
  switch (spec.tls.insecureEdgeTerminationPolicy) {
    case 'Allow':
      return 'serve';
    case 'Redirect':
      return 'redirect';
    default:
      return 'none';
  }
}

function upstreamOf({ metadata, spec }: Route): Upstream {
  if (spec?.tls?.termination !== 'reencrypt') return { tls: false };
  const { destinationCACertificate: ca } = spec.tls;
  return { tls: true, ca: ca === '' ? undefined : ca, serverName: `${spec.to?.name}.${metadata?.namespace}.svc` };
}
