/**
 * Service ports of one node, planned from API objects. A change replans only the affected services: the changed one,
 * and those that share an external address with it or use an address of a host that was added or removed.
 */
import type { Node, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { RESERVED_PORTS_ANNOTATION, type ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import { ownAddressesOf } from '../../../api/kinds/nodes/nodes/own-addresses.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { addressKind } from '../../../base/addresses/destinations.ts';
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import {
  API_SERVICE,
  changedAddresses,
  type Destinations,
  destinationsOf,
  type ListeningPort,
} from './destinations.ts';
import { shareOfPort } from './endpoints.ts';
import type { Protocol, ServicePort } from './service-port.ts';
import {
  ageText,
  clusterIpsOf,
  externalIpsOf,
  type HealthCheck,
  isForwarded,
  type PlanContext,
  planService,
  portId,
  protocolOf,
  type RefusedAddress,
  type ServicePlan,
} from './services.ts';

export interface ServicePlannerOptions {
  readonly nodeName: string;
  /** Ranges of services and of pods, one per family. */
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
  /** Ports on which this host listens. */
  readonly reservedPorts: readonly ReservedPort[];
  /** Addresses, ranges and networks of load balancers. */
  readonly poolRanges?: readonly string[];
  /** Cluster IPs that the host serves itself. */
  readonly hostServices?: readonly string[];
}

export interface ServiceChanges {
  /** Ports by `namespace/name` of changed services. An empty list means that the service is no longer forwarded. */
  readonly changed: ReadonlyMap<string, readonly ServicePort[]>;
  /** Addresses that are rejected now and were not before. */
  readonly refused: readonly RefusedAddress[];
}

const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Plans service ports. Keys are `namespace/name`, and names for nodes. */
export class ServicePlanner {
  readonly #options: ServicePlannerOptions;
  readonly #services = new Map<string, Service>();
  /** Slices by the key of their service, then by their own key. */
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #serviceOfSlice = new Map<string, string>();
  readonly #nodes = new Map<string, Node>();
  readonly #plans = new Map<string, ServicePlan>();
  readonly #healthChecks = new Map<string, HealthCheck>();
  /** Number of services by cluster IP. */
  readonly #clusterIps = new Map<string, number>();
  /** Keys of forwarded services by external address. */
  readonly #claimants = new Map<string, Set<string>>();
  /** Claims of forwarded services by external address and port. */
  readonly #claims = new Map<string, PortClaim>();
  readonly #dirty = new Set<string>();
  #failedNodes: ReadonlySet<string> = new Set();
  #hostAddresses: readonly string[] = [];
  #listening: readonly ListeningPort[] = [];
  #destinations: Destinations | undefined;
  #destinationsChanged = true;

  constructor(options: ServicePlannerOptions) {
    this.#options = options;
  }

  setService(service: Service): void {
    this.#replaceService(objectKey(service), service);
  }

  deleteService(key: string): void {
    this.#replaceService(key, undefined);
  }

  setSlice(slice: EndpointSlice): void {
    const key = objectKey(slice);
    const name = slice.metadata?.labels?.[SERVICE_NAME_LABEL];
    const service = name === undefined ? undefined : `${slice.metadata?.namespace ?? ''}/${name}`;
    if (this.#serviceOfSlice.get(key) !== service) this.deleteSlice(key);
    if (service === undefined) return;
    this.#serviceOfSlice.set(key, service);
    this.#slices.set(service, (this.#slices.get(service) ?? new Map<string, EndpointSlice>()).set(key, slice));
    this.#slicesChanged(service);
  }

  deleteSlice(key: string): void {
    const service = this.#serviceOfSlice.get(key);
    if (service === undefined) return;
    this.#serviceOfSlice.delete(key);
    const slices = this.#slices.get(service);
    slices?.delete(key);
    if (slices?.size === 0) this.#slices.delete(service);
    this.#slicesChanged(service);
  }

  setNode(node: Node): void {
    const name = node.metadata?.name ?? '';
    const before = this.#nodes.get(name);
    this.#nodes.set(name, node);
    this.#nodeChanged(name, before, node);
  }

  deleteNode(name: string): void {
    const before = this.#nodes.get(name);
    this.#nodes.delete(name);
    this.#nodeChanged(name, before, undefined);
  }

  /** Sets the nodes whose hosts the gossip ring has declared dead. */
  setFailedNodes(names: ReadonlySet<string>): void {
    const changed = names.symmetricDifference(this.#failedNodes);
    this.#failedNodes = names;
    if (changed.size === 0) return;
    for (const [service, slices] of this.#slices)
      for (const { endpoints = [] } of slices.values())
        if (this.#services.has(service) && endpoints.some(({ nodeName }) => changed.has(nodeName ?? '')))
          this.#dirty.add(service);
  }

  /** Sets the addresses of this host's links, without those that the proxy binds for services. */
  setHostAddresses(addresses: readonly string[]): void {
    // Other kinds of address are never available to services. Without this filter, the link-local address of each new
    // pod link would trigger a plan.
    const unicast = addresses.filter((ip) => addressKind(ip) === 'unicast').sort();
    if (unicast.join(' ') === this.#hostAddresses.join(' ')) return;
    this.#hostAddresses = unicast;
    this.#destinationsChanged = true;
  }

  /** Sets the sockets of other processes of this host. */
  setListening(ports: readonly ListeningPort[]): void {
    if (JSON.stringify(ports) === JSON.stringify(this.#listening)) return;
    this.#listening = ports;
    this.#destinationsChanged = true;
  }

  /** Ports of a service as of its last plan. */
  portsOf(key: string): readonly ServicePort[] {
    return this.#plans.get(key)?.ports ?? [];
  }

  /** Whether services remain that `changes` has to plan. */
  get isChanged(): boolean {
    return this.#dirty.size > 0 || this.#destinationsChanged;
  }

  changes(limit?: number): ServiceChanges {
    return atOnce(this.changeSteps(limit));
  }

  /**
   * Plans the changes since the last call, for at most `limit` services. Objects may change between the steps. The
   * services that they affect are then planned by the next call.
   */
  *changeSteps(limit = Number.POSITIVE_INFINITY): Steps<ServiceChanges> {
    const context = this.#context();
    const changed = new Map<string, readonly ServicePort[]>();
    const refused: RefusedAddress[] = [];
    for (const key of [...this.#dirty]) {
      if (changed.size === limit) break;
      this.#dirty.delete(key);
      const service = this.#services.get(key);
      const before = this.#plans.get(key);
      if (service === undefined) {
        this.#plans.delete(key);
        this.#healthChecks.delete(key);
        if (before !== undefined) changed.set(key, []);
        continue;
      }
      const plan = yield* planService(service, [...(this.#slices.get(key)?.values() ?? [])], context);
      this.#plans.set(key, plan);
      if (plan.healthCheck === undefined) this.#healthChecks.delete(key);
      else this.#healthChecks.set(key, plan.healthCheck);
      changed.set(key, plan.ports);
      const known = new Set(before?.refused.map(({ service: id, address }) => `${id} ${address}`));
      for (const each of plan.refused) if (!known.has(`${each.service} ${each.address}`)) refused.push(each);
    }
    return { changed, refused };
  }

  /** Ports of all services as of the last `changes`, sorted by ID. */
  ports(): readonly ServicePort[] {
    return [...this.#plans.values()]
      .flatMap(({ ports }) => ports)
      .sort((left, right) => (left.id === right.id ? left.family - right.family : left.id < right.id ? -1 : 1));
  }

  /** Health checks as of the last `changes`. */
  healthChecks(): readonly HealthCheck[] {
    return [...this.#healthChecks.values()];
  }

  #context(): PlanContext {
    const { nodeName, hostServices = [] } = this.#options;
    const before = this.#destinations;
    if (this.#destinationsChanged || before === undefined) {
      const after = destinationsOf({
        ...this.#options,
        hostAddresses: this.#hostAddresses,
        listening: this.#listening,
        nodes: [...this.#nodes.values()],
        apiServers: [...(this.#slices.get(API_SERVICE)?.values() ?? [])],
        clusterIps: this.#clusterIps,
      });
      this.#destinations = after;
      this.#destinationsChanged = false;
      if (before !== undefined) this.#touchRequesting(changedAddresses(before, after));
      return this.#context();
    }
    return {
      destinations: before,
      hostServices,
      place: { nodeName, zone: zoneOf(this.#nodes.get(nodeName)), failedNodes: this.#failedNodes },
      claimant: (ip, protocol, port) => this.#claimant(ip, protocol, port),
    };
  }

  #claimant(ip: string, protocol: Protocol, port: number): string | undefined {
    return this.#claims.get(claimKey(ip, port, protocol))?.oldest?.id;
  }

  #replaceService(key: string, service: Service | undefined): void {
    const before = this.#services.get(key);
    if (service === undefined) this.#services.delete(key);
    else this.#services.set(key, service);
    this.#dirty.add(key);
    const had = before === undefined ? NONE : clusterIpsIn(before);
    const has = service === undefined ? NONE : clusterIpsIn(service);
    for (const ip of had) if (!has.includes(ip)) this.#countClusterIp(ip, -1);
    for (const ip of has) if (!had.includes(ip)) this.#countClusterIp(ip, 1);
    this.#replaceClaims(key, before, service);
  }

  #countClusterIp(ip: string, change: 1 | -1): void {
    const count = (this.#clusterIps.get(ip) ?? 0) + change;
    if (count > 0) this.#clusterIps.set(ip, count);
    else this.#clusterIps.delete(ip);
    if (count === 0 || (count === 1 && change === 1)) this.#touchClaimants(ip);
  }

  /**
   * Replaces the claims of a service. Other services are planned again only if the owner of an address and port
   * changes, because thousands of services may share an address.
   */
  #replaceClaims(key: string, before: Service | undefined, after: Service | undefined): void {
    const had = before === undefined ? NONE_CLAIMED : claimsOf(key, before);
    const has = after === undefined ? NONE_CLAIMED : claimsOf(key, after);
    for (const ip of had.ips) if (!has.ips.has(ip)) this.#leaveAddress(ip, key);
    for (const ip of has.ips) this.#claimants.set(ip, (this.#claimants.get(ip) ?? new Set()).add(key));
    for (const place of new Set([...had.ids.keys(), ...has.ids.keys()])) {
      const claim = this.#claims.get(place) ?? { claimants: new Map<string, Claimant>(), oldest: undefined };
      this.#claims.set(place, claim);
      const owner = claim.oldest?.id;
      const id = has.ids.get(place);
      if (id === undefined) claim.claimants.delete(key);
      else claim.claimants.set(key, { id, age: has.age });
      const mine = claim.claimants.get(key);
      if (owner !== undefined && owner === had.ids.get(place)) claim.oldest = oldestOf(claim.claimants.values());
      else if (mine !== undefined && (claim.oldest === undefined || mine.age < claim.oldest.age)) claim.oldest = mine;
      if (claim.claimants.size === 0) this.#claims.delete(place);
      if (claim.oldest?.id !== owner) for (const each of claim.claimants.keys()) this.#dirty.add(each);
    }
  }

  #leaveAddress(ip: string, key: string): void {
    const claimants = this.#claimants.get(ip);
    claimants?.delete(key);
    if (claimants?.size === 0) this.#claimants.delete(ip);
  }

  #touchClaimants(ip: string): void {
    for (const key of this.#claimants.get(ip) ?? []) this.#dirty.add(key);
  }

  #touchRequesting(ips: ReadonlySet<string>): void {
    if (ips.size === 0) return;
    for (const [key, { requestedAddresses: requested }] of this.#plans)
      if (requested.some((ip) => ips.has(ip))) this.#dirty.add(key);
  }

  #slicesChanged(service: string): void {
    if (service === API_SERVICE) this.#destinationsChanged = true;
    if (this.#services.has(service)) this.#dirty.add(service);
  }

  #nodeChanged(name: string, before: Node | undefined, after: Node | undefined): void {
    if (addressFacts(before) !== addressFacts(after)) this.#destinationsChanged = true;
    if (name !== this.#options.nodeName || zoneOf(before) === zoneOf(after)) return;
    for (const key of this.#services.keys()) this.#dirty.add(key);
  }
}

/** A service port that claims an external address. */
interface Claimant {
  readonly id: string;
  /** Sort key that orders older services first. */
  readonly age: string;
}

interface PortClaim {
  /** Claimants by the key of their service. */
  readonly claimants: Map<string, Claimant>;
  oldest: Claimant | undefined;
}

interface ServiceClaims {
  readonly age: string;
  readonly ips: ReadonlySet<string>;
  /** IDs of service ports by address and port. */
  readonly ids: ReadonlyMap<string, string>;
}

const NONE: readonly string[] = [];
const NONE_CLAIMED: ServiceClaims = { age: '', ips: new Set(), ids: new Map() };

const claimKey = (ip: string, port: number, protocol: Protocol): string => `${ip} ${port}/${protocol}`;

/** Claims of a service for the addresses and ports that are planned. */
function claimsOf(key: string, service: Service): ServiceClaims {
  const ips = isForwarded(service) ? externalIpsOf(service) : NONE;
  if (ips.length === 0) return NONE_CLAIMED;
  const ports = service.spec?.ports ?? [];
  const ids = new Map<string, string>();
  for (const ip of ips.slice(0, shareOfPort(ports.length)))
    for (const port of ports) ids.set(claimKey(ip, port.port, protocolOf(port)), portId(key, port));
  return { age: ageText(service), ips: new Set(ips), ids };
}

function oldestOf(claimants: Iterable<Claimant>): Claimant | undefined {
  let oldest: Claimant | undefined;
  for (const each of claimants) if (oldest === undefined || each.age < oldest.age) oldest = each;
  return oldest;
}

const clusterIpsIn = ({ spec }: Service): string[] => (spec === undefined ? [] : clusterIpsOf(spec));

const zoneOf = (node: Node | undefined): string | undefined => node?.metadata?.labels?.[ZONE_LABEL];

/** The fields of a node that `destinationsOf` reads. The rest of its status changes with each kubelet report. */
const addressFacts = (node: Node | undefined): string =>
  JSON.stringify([
    node === undefined ? undefined : ownAddressesOf(node),
    node?.status?.daemonEndpoints?.kubeletEndpoint?.Port,
    node?.metadata?.annotations?.[RESERVED_PORTS_ANNOTATION],
  ]);
