/** Ingresses as rows of the table. Source: networking.k8s.io/v1, "Ingress" of the Kubernetes documentation. */

import type { Service } from '../../../api/generated/core/v1.ts';
import type { Ingress, IngressBackend, IngressClass, IngressTLS } from '../../../api/generated/networking/v1.ts';
import { readOptions } from './annotations.ts';
import { claimAge, classClaim, classOf, hostClaim } from './claim-times.ts';
import { fnv } from './hash.ts';
import type { Certificate, Pool } from './port.ts';
import { type PathMatch, poolOf, type Row, type ServiceSource } from './table-rows.ts';

/** Controller name of the class `hyperedge` and of the Gateway class. */
export const ROUTER_CONTROLLER = 'hyperedge.dev/router';
export const ROUTER_CLASS = 'hyperedge';

export interface IngressSource extends ServiceSource {
  certificate(namespace: string, secret: string): Certificate | undefined;
}

/** Whether this router serves the ingress, by its class or by the annotation of earlier releases. */
export function isServed(ingress: Ingress, classes: readonly IngressClass[]): boolean {
  const name = classOf(ingress);
  if (name === undefined) return false;
  return classes.some((each) => each.metadata?.name === name && each.spec?.controller === ROUTER_CONTROLLER);
}

/** Secrets with the ingress's certificates, as `NAMESPACE/NAME`. */
export const secretsOf = ({ metadata, spec }: Ingress): string[] =>
  (spec?.tls ?? []).flatMap(({ secretName }) => (secretName ? [`${metadata?.namespace ?? ''}/${secretName}`] : []));

interface Place {
  readonly host: string;
  readonly path: PathMatch;
  readonly target: IngressBackend | undefined;
}

export function rowsOfIngress(ingress: Ingress, source: IngressSource): Row[] {
  const { metadata, spec = {} } = ingress;
  const { namespace = '', name = '', annotations = {} } = metadata ?? {};
  const id = `ingress/${namespace}/${name}`;
  const { options } = readOptions(annotations, fnv(id), { passthrough: false });
  const places: Place[] = (spec.rules ?? []).flatMap(({ host = '', http }) =>
    (http?.paths ?? []).map(({ path = '', pathType, backend }) => ({
      host,
      path: pathOf(path, pathType),
      target: backend,
    })),
  );
  if (spec.defaultBackend !== undefined) {
    const everything: PathMatch = { kind: 'prefix', value: '' };
    for (const host of new Set(['', ...(spec.rules ?? []).map((rule) => rule.host ?? '')]))
      places.push({ host, path: everything, target: spec.defaultBackend });
  }
  const tlsOf = tlsByHost(spec.tls ?? []);
  return places.map(({ host: given, path, target }) => {
    const isWildcard = given.startsWith('*.');
    const secured = tlsOf(given);
    const secret = secured?.secretName;
    return {
      backend: {
        id,
        namespace,
        name,
        host: given,
        path: path.value,
        pools: target === undefined ? [] : [poolOfTarget(namespace, target, source)],
        upstream: { tls: false },
        options,
        redirect: undefined,
      },
      host: (isWildcard ? given.slice(2) : given).toLowerCase(),
      wildcard: isWildcard ? 'label' : 'none',
      path,
      method: undefined,
      headers: [],
      tls: secured === undefined ? 'none' : 'terminate',
      insecure: secured === undefined ? 'serve' : 'redirect',
      certificate: secret === undefined ? undefined : source.certificate(namespace, secret),
      age: claimAge(ingress, [classClaim(classOf(ingress)), hostClaim(given)]),
    };
  });
}

/** Returns a function that finds the first TLS entry for a host. An entry without hosts applies to all hosts. */
function tlsByHost(entries: readonly IngressTLS[]): (host: string) => IngressTLS | undefined {
  const byHost = new Map<string, IngressTLS>();
  const all = entries.findIndex(({ hosts = [] }) => hosts.length === 0);
  for (const entry of all < 0 ? entries : entries.slice(0, all))
    for (const host of entry.hosts ?? []) if (!byHost.has(host)) byHost.set(host, entry);
  return (host) => byHost.get(host) ?? entries[all];
}

/** `Prefix` compares whole segments, so a trailing slash has no effect. */
function pathOf(path: string, type: string | undefined): PathMatch {
  if (type === 'Exact') return { kind: 'exact', value: path };
  return { kind: 'prefix', value: path.replace(/(?<!\/)\/$/, '') };
}

function poolOfTarget(namespace: string, { service }: IngressBackend, source: IngressSource): Pool {
  const key = `${namespace}/${service?.name ?? ''}`;
  return poolOf(source, key, portName(source.service(key), service?.port ?? {}), 1);
}

/** Name under which EndpointSlices list a port of the service. For an unknown port, a name that no port has. */
export function portName(
  service: Service | undefined,
  { name, number }: { readonly name?: string; readonly number?: number },
): string {
  const found = service?.spec?.ports?.find((each) => (name === undefined ? each.port === number : each.name === name));
  return found === undefined ? '\0' : (found.name ?? '');
}
