/** Rows of the table before hosts are claimed: the common form of routes, ingresses and HTTP routes. */
import type { Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { isIdled } from '../../../api/kinds/network/services/idling.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { Backend, Certificate, Endpoint, Pool } from './port.ts';

export interface PathMatch {
  /** `prefix` compares whole path segments. */
  readonly kind: 'exact' | 'prefix';
  /** Path to compare with; '' matches every path. */
  readonly value: string;
}

export interface HeaderMatch {
  readonly name: string;
  readonly value: string;
}

export interface Row {
  readonly backend: Backend;
  /** Lower case; '' for every host. For a wildcard, the part after `*.`. */
  readonly host: string;
  /** Names that a wildcard matches. `label`: one label before the host; `any`: one or more labels. */
  readonly wildcard: 'none' | 'label' | 'any';
  readonly path: PathMatch;
  readonly method: string | undefined;
  readonly headers: readonly HeaderMatch[];
  /**
   * `terminate`: TLS ends at this router; `passthrough`: TLS ends at the server; `refused`: the certificate cannot be
   * served.
   */
  readonly tls: 'none' | 'terminate' | 'passthrough' | 'refused';
  readonly insecure: 'serve' | 'redirect' | 'none';
  readonly certificate: Certificate | undefined;
  readonly age: Age;
}

/** Sort key: creation time, then name. */
export interface Age {
  readonly created: string;
  readonly key: string;
}

export const ageOf = ({ metadata }: KubeObject): Age => ({
  created: metadata?.creationTimestamp ?? '',
  key: `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`,
});

export function compareAges(a: Age, b: Age): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** Ports of a service: undefined for all ports, otherwise the name or number of the servers' port. */
export type PortChoice = string | number | undefined;

/** Lookup of services by `NAMESPACE/NAME`. */
export interface ServiceSource {
  service(key: string): Service | undefined;
  slices(service: string): readonly EndpointSlice[];
  /** Cache of the servers of a service and port during one plan, because thousands of paths may lead to one service. */
  readonly found?: Map<string, Servers> | undefined;
}

type Servers = Omit<Pool, 'service' | 'weight'>;

export function poolOf(source: ServiceSource, service: string, port: PortChoice, weight: number): Pool {
  const key = `${service} ${typeof port} ${port}`;
  const servers = source.found?.get(key) ?? serversOf(source, service, port);
  source.found?.set(key, servers);
  return { service, weight, ...servers };
}

function serversOf(source: ServiceSource, service: string, port: PortChoice): Servers {
  const endpoints = new Map<string, Endpoint>();
  let http2 = false;
  for (const { addressType, ports = [], endpoints: found } of source.slices(service)) {
    if (addressType !== 'IPv4' && addressType !== 'IPv6') continue;
    for (const { name = '', port: number, protocol = 'TCP', appProtocol } of ports ?? []) {
      if (number === undefined || protocol !== 'TCP') continue;
      if (typeof port === 'string' ? port !== name : port !== undefined && port !== number) continue;
      http2 ||= appProtocol === 'kubernetes.io/h2c' || appProtocol === 'h2c' || appProtocol === 'grpc';
      for (const { conditions, addresses } of found ?? []) {
        if (conditions?.ready === false) continue;
        for (const address of addresses) endpoints.set(`${address} ${number}`, { address, port: number });
      }
    }
  }
  const idled = endpoints.size === 0 && isIdled(source.service(service));
  return { endpoints: [...endpoints.values()], http2, ...(idled ? { idled } : {}) };
}

export function matchesPath({ kind, value }: PathMatch, path: string): boolean {
  if (value === '' || value === '/') return kind === 'prefix' || path === value;
  if (kind === 'exact') return path === value;
  if (!path.startsWith(value)) return false;
  return path.length === value.length || value.endsWith('/') || path[value.length] === '/';
}

/** Replaces the matched part of the path. Source: OpenShift's table of `rewrite-target`. */
export function rewrittenPath(path: string, matched: string, target: string): string {
  const rest = path.slice(matched === '/' ? 0 : matched.length);
  if (rest === '') return target;
  if (target.endsWith('/') && rest.startsWith('/')) return target + rest.slice(1);
  return target.endsWith('/') || rest.startsWith('/') ? target + rest : `${target}/${rest}`;
}
