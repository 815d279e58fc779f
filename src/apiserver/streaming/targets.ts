/** Resolves the target of a streaming subresource and the addresses allowed for it. */
import type { Node, Pod, Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { ApiError, errors } from '../../api/meta/status.ts';
import { isTrue, type ResourceRequestInfo } from '../http/request-info.ts';
import type { BackendTls } from '../port.ts';
import type { ServerContext } from '../rest/context.ts';
import { type AddressRule, KUBELET_PORT } from '../server/destinations.ts';
import { SERVICE_NAME_LABEL } from '../webhooks/service-endpoints.ts';

type TargetsContext = Pick<ServerContext, 'cache' | 'certificates' | 'config' | 'destinations' | 'random'>;

export interface Target {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly tls: BackendTls | undefined;
  readonly connectTimeoutMs?: number;
  readonly allowAddress: AddressRule;
}

/** Preference of kubelet addresses, as upstream's --kubelet-preferred-address-types. */
const ADDRESS_TYPES = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'];

function nodeOf(context: TargetsContext, name: string): Node {
  const node = context.cache.kind('minions').get('', name)?.shared<Node>();
  if (node === undefined) throw errors.notFound({ group: '', plural: 'nodes' }, name);
  return node as Node;
}

function podOf(context: TargetsContext, info: ResourceRequestInfo, name: string): Pod {
  const pod = context.cache.kind('pods').get(info.namespace, name)?.shared<Pod>();
  if (pod === undefined) throw errors.notFound({ group: '', plural: 'pods' }, name);
  return pod as Pod;
}

function kubeletAddress(node: Node): string {
  for (const type of ADDRESS_TYPES) {
    const found = node.status?.addresses?.find((each) => each.type === type && each.address !== '');
    if (found !== undefined) return found.address;
  }
  throw new ApiError(
    'InternalError',
    `no preferred addresses found; known addresses: ${JSON.stringify(node.status?.addresses ?? [])}`,
  );
}

/** Target on a kubelet. `throughProxy`: the client chooses the path, so stricter address rules apply. */
function kubelet(
  context: TargetsContext,
  nodeName: string,
  path: string,
  { throughProxy }: { readonly throughProxy: boolean },
): Target {
  const node = nodeOf(context, nodeName);
  const { kubeletTimeoutMs } = context.config;
  const { kubelet: access } = context.certificates.current;
  const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? KUBELET_PORT;
  return {
    scheme: 'https',
    host: kubeletAddress(node),
    port,
    path,
    ...(kubeletTimeoutMs === undefined ? {} : { connectTimeoutMs: kubeletTimeoutMs }),
    tls: access === undefined ? {} : { certificate: access.certificate, key: access.key, authority: access.ca },
    allowAddress: context.destinations.kubelet(port, !throughProxy),
  };
}

/** Target of this server's own requests to a kubelet. */
export const kubeletOf = (context: TargetsContext, nodeName: string, path: string): Target =>
  kubelet(context, nodeName, path, { throughProxy: false });

/** Kubelet target of log, exec, attach and portforward. */
export function kubeletTarget(context: TargetsContext, info: ResourceRequestInfo): Target {
  const pod = podOf(context, info, info.name);
  const path = kubeletPath(info, pod);
  const nodeName = pod.spec?.nodeName ?? '';
  if (nodeName === '') {
    throw errors.badRequest(`pod ${info.name} does not have a host assigned`);
  }
  return kubelet(context, nodeName, path, { throughProxy: false });
}

/**
 * Reports whether the pod has no logs because it is not scheduled yet. Throws if the pod or container does not exist.
 */
export function isWithoutLogs(context: TargetsContext, info: ResourceRequestInfo): boolean {
  const pod = podOf(context, info, info.name);
  containerOf(info, pod);
  return (pod.spec?.nodeName ?? '') === '';
}

const segment = encodeURIComponent;

function kubeletPath(info: ResourceRequestInfo, pod: Pod): string {
  const at = `${segment(info.namespace)}/${segment(info.name)}`;
  if (info.subresource === 'portforward') {
    const query = new URLSearchParams();
    for (const ports of info.query.getAll('ports')) query.append('port', ports);
    return `/portForward/${at}${query.size > 0 ? `?${query}` : ''}`;
  }
  const container = containerOf(info, pod);
  const place = `${at}/${segment(container)}`;
  const query = new URLSearchParams();
  if (info.subresource === 'log') {
    for (const name of ['follow', 'previous', 'timestamps']) if (isTrue(info.query.get(name))) query.set(name, 'true');
    for (const name of ['sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'stream']) {
      const value = info.query.get(name);
      if (value !== null && value !== '') query.set(name, value);
    }
    return `/containerLogs/${place}${query.size > 0 ? `?${query}` : ''}`;
  }
  const flags = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' };
  for (const [option, parameter] of Object.entries(flags)) {
    // `isTrue` accepts several spellings, because clients send the spelling of their language, such as Python's True.
    if (isTrue(info.query.get(option))) query.set(parameter, '1');
  }
  for (const word of info.query.getAll('command')) query.append('command', word);
  return `/${info.subresource}/${place}?${query}`;
}

function containerOf(info: ResourceRequestInfo, pod: Pod): string {
  const requested = info.query.get('container') ?? '';
  const all = [
    ...(pod.spec?.initContainers ?? []),
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.ephemeralContainers ?? []),
  ].map((each) => each.name);
  if (requested !== '') {
    if (all.includes(requested)) return requested;
    throw errors.badRequest(`container ${requested.slice(0, 253)} is not valid for pod ${info.name}`);
  }
  const [only, ...others] = (pod.spec?.containers ?? []).map((each) => each.name);
  const preferred = pod.metadata?.annotations?.['kubectl.kubernetes.io/default-container'];
  if (preferred !== undefined && all.includes(preferred)) return preferred;
  if (only !== undefined && others.length === 0) return only;
  throw errors.badRequest(`a container name must be specified for pod ${info.name}, choose one of: [${all.join(' ')}]`);
}

interface Named {
  readonly scheme: 'http' | 'https';
  readonly name: string;
  readonly port: string;
}

/** Parses `name`, `name:port` or `scheme:name:port`. */
function parseNamed(text: string): Named {
  const parts = text.split(':');
  if (parts.length === 1) return { scheme: 'http', name: text, port: '' };
  if (parts.length === 2) return { scheme: 'http', name: parts[0] ?? '', port: parts[1] ?? '' };
  const [scheme, name = '', port = ''] = parts;
  if (parts.length !== 3 || (scheme !== 'http' && scheme !== 'https' && scheme !== '')) {
    throw errors.badRequest(`invalid proxy target ${JSON.stringify(text.slice(0, 253))}`);
  }
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port };
}

export function proxyTarget(context: TargetsContext, info: ResourceRequestInfo): Target {
  const named = parseNamed(info.name);
  const search = info.query.size > 0 ? `?${info.query}` : '';
  const path = `${info.tail === '' ? '/' : info.tail}${search}`;
  const outside = context.destinations.proxied();
  if (info.plural === 'nodes') {
    const target = kubelet(context, named.name, path, { throughProxy: true });
    if (named.port === '') return target;
    const port = portNumber(named.port);
    // Only the registered port belongs to the kubelet. Another port of the host may belong to another process, so the
    // proxy does not use the kubelet client certificate for it.
    if (port === target.port) return target;
    return { ...target, port, scheme: named.scheme, tls: undefined, allowAddress: outside };
  }
  if (info.plural === 'pods') {
    const pod = podOf(context, info, named.name);
    const host = pod.status?.podIP ?? '';
    if (host === '') throw errors.badRequest(`pod ${named.name} has no address yet`);
    return { scheme: named.scheme, host, port: podPort(pod, named.port), path, tls: undefined, allowAddress: outside };
  }
  return serviceTarget(context, info, named, path, outside);
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65535) {
    throw errors.badRequest(`invalid port ${JSON.stringify(text.slice(0, 64))}`);
  }
  return port;
}

function podPort(pod: Pod, requested: string): number {
  if (requested !== '' && /^\d+$/.test(requested)) return portNumber(requested);
  for (const container of pod.spec?.containers ?? []) {
    for (const port of container.ports ?? []) {
      if (requested === '' || port.name === requested) return port.containerPort;
    }
  }
  if (requested === '') return 80;
  throw errors.badRequest(`pod has no port named ${JSON.stringify(requested.slice(0, 64))}`);
}

function serviceTarget(
  context: TargetsContext,
  info: ResourceRequestInfo,
  named: Named,
  path: string,
  allowAddress: AddressRule,
): Target {
  const service = context.cache.kind('services/specs').get(info.namespace, named.name)?.shared<Service>();
  if (service === undefined) throw errors.notFound({ group: '', plural: 'services' }, named.name);
  const ports = service.spec?.ports ?? [];
  const only = ports.length === 1 ? ports[0] : undefined;
  const port =
    named.port === '' ? only : ports.find((each) => each.name === named.port || String(each.port) === named.port);
  if (port === undefined) {
    throw new ApiError(
      'ServiceUnavailable',
      `no service port ${JSON.stringify(named.port.slice(0, 64))} found for service ${JSON.stringify(named.name)}`,
    );
  }
  const candidates: { host: string; port: number }[] = [];
  for (const object of context.cache.kind('endpointslices').list(info.namespace)) {
    const slice = object.shared<EndpointSlice>();
    if (slice.metadata?.labels?.[SERVICE_NAME_LABEL] !== named.name) continue;
    const number = slice.ports?.find((each) => (each.name ?? '') === (port.name ?? ''))?.port;
    if (number === undefined) continue;
    for (const endpoint of slice.endpoints ?? []) {
      const [host] = endpoint.addresses;
      if (host !== undefined && endpoint.conditions?.ready !== false) candidates.push({ host, port: number });
    }
  }
  const chosen = candidates[Math.floor(context.random.random() * candidates.length)];
  if (chosen === undefined) {
    throw new ApiError('ServiceUnavailable', `no endpoints available for service ${JSON.stringify(named.name)}`);
  }
  return { scheme: named.scheme, host: chosen.host, port: chosen.port, path, tls: undefined, allowAddress };
}
