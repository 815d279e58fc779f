/**
 * Allocates cluster IPs and node ports of services. It is exact with any number of API servers: each allocated address
 * and port has its own key, which is created and deleted in the same commits as the service. A free value is chosen
 * from the cache, and the guard of the commit proves that it is free. Addresses are stored as upstream's IPAddress
 * objects.
 */

import type { Service, ServicePort } from '../../api/generated/core/v1.ts';
import { ALLOCATED_LABEL } from '../../api/kinds/network/ipaddresses/index.ts';
import { needsHealthCheckPort, needsNodePort } from '../../api/kinds/network/services/defaults.ts';
import { assignFamilies } from '../../api/kinds/network/services/families.ts';
import { fieldError, invalid } from '../../api/meta/field-error.ts';
import { canonicalAddress, ipFamilyOf } from '../../base/addresses/addresses.ts';
import { type Network, networkText } from '../../base/addresses/networks.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { Guard, Put } from '../../store/port.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { KindCache } from '../watch-cache/kind-cache.ts';
import type { Effects } from './object-store.ts';
import { NO_EFFECTS } from './object-store.ts';
import { addressIn, countOf, type IpFamily, ServiceRanges } from './service-ranges.ts';

const ADDRESS_PREFIX = '/registry/ipaddresses/';
const PORT_PREFIX = '/registry/ranges/nodeports/';
const HEALTH_CHECK_PORT = 'spec.healthCheckNodePort';
const SUBJECT = { group: '', kind: 'Service' };

interface Claims {
  readonly addresses: ReadonlySet<string>;
  readonly ports: ReadonlySet<number>;
}

export interface ServiceAllocatorOptions {
  /** The server's own range, or `v4,v6`. `ranges` returns the additional ServiceCIDRs. */
  readonly cidr: string;
  readonly ranges: () => KindCache;
  readonly ports: readonly [number, number];
  readonly services: () => KindCache;
  readonly addresses: () => KindCache;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly random: RandomSource;
}

export class ServiceAllocator {
  readonly #options: ServiceAllocatorOptions;
  readonly #ranges: ServiceRanges;

  constructor(options: ServiceAllocatorOptions) {
    this.#options = options;
    this.#ranges = new ServiceRanges(options.cidr, options.ranges);
  }

  /** The server's own ranges, primary family first. */
  get ownRanges(): readonly string[] {
    return this.#ranges.own.map(networkText);
  }

  /** First address of the primary range: the address of the `kubernetes` service. */
  get firstAddress(): string {
    const [primary] = this.#ranges.own;
    return primary === undefined ? '' : addressIn(primary, 1);
  }

  /**
   * Sets missing addresses and ports of `service` and returns the effects to commit with it. `old` is the stored
   * service on updates. Throws 'Invalid' for an address or port that is out of range or known to be allocated.
   */
  allocate(service: Service, old: Service | undefined): Effects {
    const before = old === undefined ? NO_CLAIMS : claimsOf(old);
    this.#fill(service, old);
    const after = claimsOf(service);
    return this.#difference(service, before, after);
  }

  /** Effects that release all values of a deleted service. */
  release(service: Service): Effects {
    return this.#difference(service, claimsOf(service), NO_CLAIMS);
  }

  #fill(service: Service, old: Service | undefined): void {
    const spec = service.spec;
    if (spec === undefined) return;
    if (spec.type === 'ExternalName') {
      delete spec.clusterIP;
      delete spec.clusterIPs;
      delete spec.ipFamilies;
      delete spec.ipFamilyPolicy;
      return;
    }
    const wrong = assignFamilies(service, old, this.#ranges.families);
    if (wrong.length > 0) throw refused(service, ...wrong);
    spec.clusterIPs = spec.clusterIP === 'None' ? ['None'] : this.#clusterIps(service, old);
    if (spec.clusterIPs[0] !== undefined) spec.clusterIP = spec.clusterIPs[0];
    const wantsPorts = spec.type === 'NodePort' || spec.type === 'LoadBalancer';
    const allocates = spec.type === 'NodePort' || spec.allocateLoadBalancerNodePorts !== false;
    // As upstream, equal ports of different protocols share a node port only when a service gets its first node ports.
    const sharesNodePorts = !needsNodePort(old?.spec);
    for (const [index, port] of (spec.ports ?? []).entries()) {
      if (!wantsPorts) {
        delete port.nodePort;
        continue;
      }
      if (port.nodePort === undefined || port.nodePort === 0) {
        const twin = sharesNodePorts ? samePortOfOtherProtocol(port, spec.ports ?? []) : undefined;
        const found =
          keptPort(port, old) ?? (allocates ? (twin ?? this.#freePort(service, spec.ports ?? [])) : undefined);
        if (found === undefined) delete port.nodePort;
        else port.nodePort = found;
      } else this.#checkPort(service, port.nodePort, `spec.ports[${index}].nodePort`, old);
    }
    if (!needsHealthCheckPort(spec)) return;
    const check = spec.healthCheckNodePort ?? 0;
    if (check === 0) spec.healthCheckNodePort = this.#freePort(service, spec.ports ?? []);
    else this.#checkPort(service, check, HEALTH_CHECK_PORT, old);
  }

  /** One address per family of the service: the requested one, the stored one, or a free one. */
  #clusterIps(service: Service, old: Service | undefined): string[] {
    const { clusterIP = '', clusterIPs = [], ipFamilies = this.#ranges.families.slice(0, 1) } = service.spec ?? {};
    const requested = clusterIPs.length > 0 ? clusterIPs : [clusterIP];
    const kept = old === undefined ? [] : [...claimsOf(old).addresses];
    return ipFamilies.map((family, index) => {
      const address = requested[index] ?? '';
      if (address === '') {
        return (
          kept.find((each) => `IPv${ipFamilyOf(each)}` === family) ?? this.#freeAddress(service, family as IpFamily)
        );
      }
      if (!kept.includes(canonicalAddress(address) ?? '')) this.#checkAddress(service, address);
      return address;
    });
  }

  #inUse(): { readonly addresses: Set<string>; readonly ports: Set<number> } {
    const addresses = new Set<string>();
    const ports = new Set<number>();
    for (const object of this.#options.services()) {
      const claims = claimsOf(object.shared<Service>());
      for (const address of claims.addresses) addresses.add(address);
      for (const port of claims.ports) ports.add(port);
    }
    return { addresses, ports };
  }

  #freeAddress(service: Service, family: IpFamily): string {
    const { addresses } = this.#inUse();
    // An IPAddress created by a user reserves its address.
    for (const object of this.#options.addresses()) addresses.add(object.name);
    for (const range of this.#ranges.usable(family)) {
      const found = this.#freeIn(range, addresses);
      if (found !== undefined) return found;
    }
    throw refused(service, fieldError.invalid('spec.clusterIPs', [], 'failed to allocate IP: range is full'));
  }

  /** Automatic addresses come from the upper part of the range first, because users choose low addresses (KEP-3070). */
  #freeIn(range: Network, addresses: ReadonlySet<string>): string | undefined {
    const size = countOf(range);
    const reserved = Math.min(Math.max(16, Math.floor(size / 16)), 256);
    const low = size > reserved * 2 ? reserved : 1;
    for (const [from, to] of [
      [low, size - 1],
      [1, low],
    ] as const) {
      const found = pick(from, to, this.#options.random, (offset) => !addresses.has(addressIn(range, offset)));
      if (found !== undefined) return addressIn(range, found);
    }
    return undefined;
  }

  #checkAddress(service: Service, address: string): void {
    if (this.#ranges.holding(address) === undefined) {
      throw refused(
        service,
        fieldError.invalid(
          'spec.clusterIPs',
          [address],
          `failed to allocate IP ${address}: the provided network does not match the current range ${this.#ownRange(address)}`,
        ),
      );
    }
    if (this.#inUse().addresses.has(canonicalAddress(address) ?? '')) throw addressAllocatedError(service, address);
  }

  #ownRange(address: string): string {
    const own = this.ownRanges;
    return own.find((range) => range.includes(':') === address.includes(':')) ?? own.join();
  }

  #freePort(service: Service, siblings: readonly ServicePort[]): number {
    const { ports } = this.#inUse();
    for (const sibling of siblings) if (sibling.nodePort !== undefined) ports.add(sibling.nodePort);
    const [from, to] = this.#options.ports;
    const found = pick(from, to + 1, this.#options.random, (port) => !ports.has(port));
    if (found === undefined) {
      throw refused(service, fieldError.invalid('spec.ports', [], 'failed to allocate a nodePort: range is full'));
    }
    return found;
  }

  #checkPort(service: Service, port: number, field: string, old: Service | undefined): void {
    if (old !== undefined && claimsOf(old).ports.has(port)) return;
    const [from, to] = this.#options.ports;
    if (port < from || port > to) {
      throw refused(
        service,
        fieldError.invalid(
          field,
          port,
          `provided port is not in the valid range. The range of valid ports is ${from}-${to}`,
        ),
      );
    }
    if (this.#inUse().ports.has(port)) throw portAllocatedError(service, port, field);
  }

  #difference(service: Service, before: Claims, after: Claims): Effects {
    const guards: Guard[] = [];
    const puts: Put[] = [];
    const deletes: string[] = [];
    for (const address of after.addresses) {
      if (before.addresses.has(address)) continue;
      guards.push({ key: ADDRESS_PREFIX + address, modRevision: 0 });
      puts.push({ key: ADDRESS_PREFIX + address, value: this.#addressObject(address, service) });
    }
    for (const port of after.ports) {
      if (before.ports.has(port)) continue;
      guards.push({ key: PORT_PREFIX + port, modRevision: 0 });
      puts.push({
        key: PORT_PREFIX + port,
        value: Buffer.from(`${service.metadata?.namespace}/${service.metadata?.name}`),
      });
    }
    for (const address of before.addresses) if (!after.addresses.has(address)) deletes.push(ADDRESS_PREFIX + address);
    for (const port of before.ports) if (!after.ports.has(port)) deletes.push(PORT_PREFIX + port);
    return guards.length + deletes.length === 0 ? NO_EFFECTS : { guards, puts, deletes };
  }

  /**
   * IPAddress object with the same content as upstream's. For IPAddresses that users create, the write pipeline sets
   * these fields.
   */
  #addressObject(address: string, service: Service): Uint8Array {
    const { clock, random } = this.#options;
    const object = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IPAddress',
      metadata: {
        name: address,
        uid: random.uuid(),
        creationTimestamp: timestamp(clock.nowMs()),
        labels: {
          'ipaddress.kubernetes.io/ip-family': `IPv${ipFamilyOf(address)}`,
          ...ALLOCATED_LABEL,
        },
      },
      spec: {
        parentRef: {
          resource: 'services',
          namespace: service.metadata?.namespace,
          name: service.metadata?.name,
        },
      },
    };
    return Buffer.from(JSON.stringify(object));
  }

  /** Effects that allocate the address to its service again. Undefined if the service does not have the address. */
  reclaim(service: Service, address: string): Effects | undefined {
    if (!claimsOf(service).addresses.has(address)) return undefined;
    const key = ADDRESS_PREFIX + address;
    return {
      guards: [{ key, modRevision: 0 }],
      puts: [{ key, value: this.#addressObject(address, service) }],
      deletes: [],
    };
  }

  /** Addresses of services without an IPAddress object. */
  *unclaimed(): Iterable<{ readonly service: CachedObject; readonly address: string }> {
    const known = this.#options.addresses();
    for (const service of this.#options.services()) {
      for (const address of claimsOf(service.shared<Service>()).addresses) {
        if (known.get('', address) === undefined) yield { service, address };
      }
    }
  }

  /** Reports whether the client requested the address or node port of the key. */
  isRequested({ spec }: Service, key: string): boolean {
    const value = key.slice(key.lastIndexOf('/') + 1);
    const isRequestedAddress = (address: string): boolean => canonicalAddress(address) === value;
    return (
      isRequestedAddress(spec?.clusterIP ?? '') ||
      (spec?.clusterIPs ?? []).some(isRequestedAddress) ||
      String(spec?.healthCheckNodePort) === value ||
      (spec?.ports ?? []).some((port) => String(port.nodePort) === value)
    );
  }

  /** Error for a requested value that another API server has allocated first. */
  allocationError(service: Service, guard: Guard): Error {
    if (guard.key.startsWith(ADDRESS_PREFIX))
      return addressAllocatedError(service, guard.key.slice(ADDRESS_PREFIX.length));
    const port = Number(guard.key.slice(PORT_PREFIX.length));
    const isCheck = service.spec?.healthCheckNodePort === port;
    return portAllocatedError(service, port, isCheck ? HEALTH_CHECK_PORT : 'spec.ports[0].nodePort');
  }
}

const NO_CLAIMS: Claims = { addresses: new Set(), ports: new Set() };

function claimsOf(service: Service): Claims {
  const spec = service.spec;
  if (spec === undefined || spec.type === 'ExternalName') return NO_CLAIMS;
  const addresses = new Set(
    (spec.clusterIPs ?? []).map(canonicalAddress).filter((address): address is string => address !== undefined),
  );
  const ports = new Set<number>();
  for (const port of spec.ports ?? []) if (port.nodePort !== undefined && port.nodePort > 0) ports.add(port.nodePort);
  if (spec.healthCheckNodePort !== undefined && spec.healthCheckNodePort > 0) ports.add(spec.healthCheckNodePort);
  return { addresses, ports };
}

/** Node port that a port with the same number and another protocol already has, so that both get the same node port. */
function samePortOfOtherProtocol({ port }: ServicePort, siblings: readonly ServicePort[]): number | undefined {
  return siblings.find((each) => each.port === port && (each.nodePort ?? 0) !== 0)?.nodePort;
}

/** The node port that the same port has in the stored service. */
function keptPort(port: ServicePort, old: Service | undefined): number | undefined {
  return old?.spec?.ports?.find(
    (each) => each.port === port.port && (each.protocol ?? 'TCP') === (port.protocol ?? 'TCP') && each.nodePort,
  )?.nodePort;
}

/** A free number in [from, to). The search starts at a random number. */
function pick(
  from: number,
  to: number,
  random: RandomSource,
  isFree: (candidate: number) => boolean,
): number | undefined {
  const span = to - from;
  if (span <= 0) return undefined;
  const start = Math.floor(random.random() * span);
  for (let step = 0; step < span; step++) {
    const candidate = from + ((start + step) % span);
    if (isFree(candidate)) return candidate;
  }
  return undefined;
}

const refused = (service: Service, ...failures: ReturnType<typeof fieldError.invalid>[]): Error =>
  invalid(SUBJECT, service.metadata?.name ?? '', failures);

const addressAllocatedError = (service: Service, address: string): Error =>
  refused(
    service,
    fieldError.invalid(
      'spec.clusterIPs',
      [address],
      `failed to allocate IP ${address}: provided IP is already allocated`,
    ),
  );

const portAllocatedError = (service: Service, port: number, field: string): Error =>
  refused(service, fieldError.invalid(field, port, 'provided port is already allocated'));
