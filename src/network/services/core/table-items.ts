/**
 * Contents of an nft table for service ports. The cost of a lookup does not grow with the number of services: verdict
 * maps lead from address and port to a chain, as in upstream's nftables proxy (KEP-3866). All service ports with the
 * same number of endpoints share a chain, which selects the endpoint from a map by address, port and a random number. A
 * change of endpoints therefore changes only elements, which matters because nft reads every chain and set of the host,
 * but no elements, at each call.
 */

import type { ProxyEndpoint, ServicePort } from './service-port.ts';
import { type Item, MASQUERADE_MARK, type NftOptions, WORDS } from './table-content.ts';

/**
 * Items of a service port in the table of its family. `zone` is the port's connection tracking zone; undefined for the
 * default zone. They are generated one at a time, because a port with many external addresses has many items.
 */
export function* itemsOf(port: ServicePort, options: NftOptions, zone: number | undefined): Generator<Item, void> {
  const proto = port.protocol.toLowerCase();
  const external = port.nodePort > 0 || port.externalIps.length > 0;
  // A shared chain cannot store session affinity, and cannot select from two lists of endpoints for one address.
  const chains =
    port.affinitySeconds > 0 || (port.externalLocal && external)
      ? yield* ownChainItems(port, options)
      : yield* sharedChainItems(port, options);
  for (const ip of port.clusterIps) {
    const key = `${ip} . ${proto} . ${port.port}`;
    if (chains.internal === undefined) yield item('no_endpoint_ips', key, 'goto refuse');
    else yield item('service_ips', key, `goto ${chains.internal}`);
  }
  const missing = port.externalLocal ? 'drop' : 'goto refuse';
  for (const ip of port.externalIps) {
    const key = `${ip} . ${proto} . ${port.port}`;
    if (chains.external !== undefined) yield item('service_ips', key, `goto ${chains.external}`);
    if (port.externalEndpoints.length === 0) yield item('no_endpoint_ips', key, missing);
  }
  if (port.nodePort > 0) {
    const key = `${proto} . ${port.nodePort}`;
    if (chains.nodePort !== undefined) yield item('service_nodeports', key, `goto ${chains.nodePort}`);
    if (port.externalEndpoints.length === 0) yield item('no_endpoint_nodeports', key, missing);
  }
  if (zone !== undefined) {
    for (const ip of [...port.clusterIps, ...port.externalIps])
      yield item('udp_zones', `${ip} . ${port.port}`, `${zone}`);
    if (port.nodePort > 0) yield item('udp_port_zones', `${port.nodePort}`, `${zone}`);
  }
  if (port.restrictedIps.length > 0) {
    const chain = `fw/${nameOf(port.id)}`;
    const from = port.sourceRanges.map((range) => `${WORDS[options.family].ip} saddr ${range} return`);
    yield item('chains', chain, [...from, 'drop'].join('\n'));
    for (const ip of port.restrictedIps) yield item('firewall_ips', `${ip} . ${proto} . ${port.port}`, `goto ${chain}`);
  }
}

type Add = (place: Item['place'], key: string, value: string) => void;

const item = (place: Item['place'], key: string, value: string): Item => ({ place, key, value });

/** Target chain for traffic to cluster IPs and for external traffic; undefined if there is no endpoint. */
interface Chains {
  readonly internal: string | undefined;
  readonly external: string | undefined;
  readonly nodePort: string | undefined;
}

const markForMasquerade = `meta mark set meta mark or ${MASQUERADE_MARK}`;

/** Marks connections to a cluster IP from sources outside of the pods' range. */
function markOutside({ family, clusterCidr }: NftOptions): string {
  const outside = clusterCidr === undefined ? '' : `${WORDS[family].ip} saddr != ${clusterCidr} `;
  return `${outside}fib saddr type != local ${markForMasquerade}`;
}

const SHARED_KINDS = ['svc', 'ext', 'port'] as const;
type SharedKind = (typeof SHARED_KINDS)[number];

/** Chain that all service ports with `count` endpoints share, for one kind of address. */
function sharedChain(kind: SharedKind, count: number, options: NftOptions): Item {
  const { ip: word } = WORDS[options.family];
  const [map, address] =
    kind === 'port' ? (['nodeport_endpoints', ''] as const) : (['endpoints', `${word} daddr . `] as const);
  const mark = kind === 'svc' ? markOutside(options) : markForMasquerade;
  const look = `${address}meta l4proto . th dport . numgen random mod ${count} map @${map}`;
  return { place: 'chains', key: `${kind}-${count}`, value: `${mark}\ndnat ${word} to ${look}` };
}

/** Shared chains for service ports with 1 to `count` endpoints. */
export function sharedChains(count: number, options: NftOptions): Item[] {
  return Array.from({ length: count }, (_, index) =>
    SHARED_KINDS.map((kind) => sharedChain(kind, index + 1, options)),
  ).flat();
}

/** Number of endpoints that the item, a shared chain, selects from; undefined for other items. */
export function endpointsOfShared({ place, key }: Item): number | undefined {
  const found = place === 'chains' ? /^(?:svc|ext|port)-(\d+)$/.exec(key) : null;
  return found === null ? undefined : Number(found[1]);
}

function* sharedChainItems(port: ServicePort, options: NftOptions): Generator<Item, Chains> {
  const proto = port.protocol.toLowerCase();
  const { endpoints, externalEndpoints, clusterIps, externalIps, nodePort } = port;
  function* lead(
    kind: SharedKind,
    to: readonly ProxyEndpoint[],
    keys: readonly string[],
  ): Generator<Item, string | undefined> {
    if (to.length === 0 || keys.length === 0) return undefined;
    const { key: chain, value } = sharedChain(kind, to.length, options);
    yield item('chains', chain, value);
    const map = kind === 'port' ? 'nodeport_endpoints' : 'endpoints';
    for (const each of keys)
      for (const [index, { ip, port: number }] of to.entries())
        yield item(map, `${each} . ${index}`, `${ip} . ${number}`);
    return chain;
  }
  const at = (ip: string): string => `${ip} . ${proto} . ${port.port}`;
  const chains = {
    internal: yield* lead('svc', endpoints, clusterIps.map(at)),
    external: yield* lead('ext', externalEndpoints, externalIps.map(at)),
    nodePort: yield* lead('port', externalEndpoints, nodePort > 0 ? [`${proto} . ${nodePort}`] : []),
  };
  for (const { ip, hairpin } of [...endpoints, ...externalEndpoints])
    if (hairpin) yield item('hairpin', `${ip} . ${ip}`, '');
  return chains;
}

function* ownChainItems(port: ServicePort, options: NftOptions): Generator<Item, Chains> {
  const items: Item[] = [];
  const chains = addOwnChains(port, options, (...parts) => void items.push(item(...parts)));
  yield* items;
  return chains;
}

/** Adds chains for one service port and for each of its endpoints. */
function addOwnChains(port: ServicePort, options: NftOptions, add: Add): Chains {
  const { ip: word } = WORDS[options.family];
  const proto = port.protocol.toLowerCase();
  const id = nameOf(port.id);
  const isSticky = port.affinitySeconds > 0;
  const addBalancer = (chain: string, endpoints: readonly ProxyEndpoint[], prefix: readonly string[]): string => {
    const endpointChains = endpoints.map((endpoint) => {
      const target = options.family === 6 ? `[${endpoint.ip}]` : endpoint.ip;
      const suffix = `${id}/${endpoint.ip.replaceAll(':', '.')}/${endpoint.port}`;
      const name = `ep/${suffix}`;
      const affinitySet = `aff/${suffix}`;
      if (isSticky) add('sets', affinitySet, `${port.affinitySeconds}`);
      const rules = [
        `${word} saddr ${endpoint.ip} ${markForMasquerade} comment "hairpin"`,
        ...(isSticky ? [`update @${affinitySet} { ${word} saddr }`] : []),
        `meta l4proto ${proto} dnat to ${target}:${endpoint.port}`,
      ];
      add('chains', name, rules.join('\n'));
      return { name, affinitySet };
    });
    const rules = [
      ...prefix,
      ...(isSticky ? endpointChains.map((each) => `${word} saddr @${each.affinitySet} goto ${each.name}`) : []),
      ...(endpointChains.length === 0
        ? []
        : [
            `numgen random mod ${endpointChains.length} vmap { ${endpointChains
              .map((each, index) => `${index} : goto ${each.name}`)
              .join(', ')} }`,
          ]),
    ];
    add('chains', chain, rules.join('\n'));
    return chain;
  };
  const comment = `comment "${commentText(port.id)}"`;
  const internal =
    port.endpoints.length === 0
      ? undefined
      : addBalancer(`svc/${id}`, port.endpoints, [`${markOutside(options)} ${comment}`]);
  // With the policy Local, pods and this host still reach every endpoint (KEP-2086).
  const inside =
    port.externalLocal && internal !== undefined
      ? [
          ...(options.clusterCidr === undefined ? [] : [`${word} saddr ${options.clusterCidr} goto ${internal}`]),
          `fib saddr type local goto ${internal}`,
        ]
      : [];
  const isExternal = port.nodePort > 0 || port.externalIps.length > 0;
  const external =
    isExternal && (port.externalEndpoints.length > 0 || inside.length > 0)
      ? addBalancer(
          `ext/${id}`,
          port.externalEndpoints,
          port.externalLocal ? inside : [`${markForMasquerade} ${comment}`],
        )
      : undefined;
  return { internal, external, nodePort: external };
}

/** Text of an nft comment, which is limited to 128 bytes. Service IDs contain only DNS labels, `/` and `:`. */
function commentText(text: string): string {
  return text.replaceAll(/[^\w./:-]/g, '').slice(0, 120);
}

/** Unique name of a chain for an ID. Port names in IDs contain only letters, digits, `-` and `.`. */
const nameOf = (id: string): string => id.replaceAll(':', '/');
