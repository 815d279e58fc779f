/**
 * DNS records of a Service and its EndpointSlices. Source: Kubernetes DNS-Based Service Discovery 1.1, §2.3 to §2.5.
 */
import type { Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { canonicalAddress, ipFamilyOf } from '../../../base/addresses/addresses.ts';
import { type DnsRecord, fitsOnTheWire } from './records.ts';
import { addressLabel, reverseName } from './reverse.ts';

export interface RecordOptions {
  /** The cluster's domain. */
  readonly zone: string;
  readonly ttl: number;
}

/** Priority and weight of every SRV record. As in CoreDNS, all SRV records of a name have the same values. */
const PRIORITY = 0;
const WEIGHT = 100;

/** Records by name. A name with an empty list exists without data (RFC 8020). */
export type ServiceRecords = ReadonlyMap<string, readonly DnsRecord[]>;

export const isHeadless = (service: Service): boolean => service.spec?.clusterIP === 'None';

/** Records of a service, including PTR records under their reverse names. */
export function serviceRecords(
  service: Service,
  slices: readonly EndpointSlice[],
  options: RecordOptions,
): ServiceRecords {
  const records = new RecordSet();
  const { name = '', namespace = '' } = service.metadata ?? {};
  const own = `${name}.${namespace}.svc.${options.zone}`;
  if (service.spec?.type === 'ExternalName') addExternalName(records, own, service, options.ttl);
  else if (isHeadless(service)) addHeadless(records, own, service, slices, options.ttl);
  else addClusterIps(records, own, service, options.ttl);
  return records.byName;
}

/**
 * Maximum number of SRV records of the named ports of a service. Without it, a service with 10,000 ports and 100
 * endpoints would have a million SRV records on every host.
 */
const MAX_SRV = 20_000;
/** Maximum number of SRV records under the name of a service. A response has space for fewer. */
const MAX_SRV_OF_NAME = 2_000;

class RecordSet {
  readonly byName = new Map<string, DnsRecord[]>();
  /**
   * Records already added, as text. A set keeps the search for duplicates fast, because a name may have thousands of
   * records.
   */
  readonly #added = new Set<string>();
  #srv = 0;
  #srvOfName = 0;

  /** @param data Canonical text of the record data. Records with equal texts are duplicates. */
  add(record: DnsRecord, data: string): boolean {
    const found = this.exists(record.name);
    const text = `${record.name} ${record.type} ${data}`;
    if (this.#added.has(text)) return false;
    this.#added.add(text);
    found.push(record);
    return true;
  }

  exists(name: string): DnsRecord[] {
    let found = this.byName.get(name);
    if (found === undefined) {
      found = [];
      this.byName.set(name, found);
    }
    return found;
  }

  addAddress(name: string, address: string, ttl: number): void {
    this.add({ name, type: address.includes(':') ? 'AAAA' : 'A', ttl, data: address }, address);
  }

  /**
   * Adds SRV records: for a named port under `_port._protocol`, and for every port under the service's name, as in
   * CoreDNS.
   */
  addPort(own: string, port: { name?: string; protocol?: string; port?: number }, target: string, ttl: number): void {
    const isNamed = (port.name ?? '') !== '';
    if (this.#srvOfName >= MAX_SRV_OF_NAME && (!isNamed || this.#srv >= MAX_SRV)) return;
    const data = { priority: PRIORITY, weight: WEIGHT, port: port.port ?? 0, target };
    const text = `${data.port} ${target}`;
    if (this.#srvOfName < MAX_SRV_OF_NAME && this.add({ name: own, type: 'SRV', ttl, data }, text))
      this.#srvOfName += 1;
    if (!isNamed || this.#srv >= MAX_SRV) return;
    const protocol = `_${(port.protocol ?? 'TCP').toLowerCase()}.${own}`;
    this.exists(protocol);
    if (this.add({ name: `_${port.name}.${protocol}`, type: 'SRV', ttl, data }, text)) this.#srv += 1;
  }
}

function addExternalName(records: RecordSet, own: string, service: Service, ttl: number): void {
  const target = (service.spec?.externalName ?? '').toLowerCase().replace(/\.$/, '');
  const found = records.exists(own);
  // An externalName that is an address gives no CNAME record.
  if (target === own || ipFamilyOf(target) !== 0 || !fitsOnTheWire(target)) return;
  found.push({ name: own, type: 'CNAME', ttl, data: target });
}

function addClusterIps(records: RecordSet, own: string, service: Service, ttl: number): void {
  const { clusterIP = '', clusterIPs = [], ports = [] } = service.spec ?? {};
  const addresses = (clusterIPs.length > 0 ? clusterIPs : [clusterIP]).flatMap((ip) => canonicalAddress(ip) ?? []);
  if (addresses.length === 0) return;
  for (const address of addresses) {
    records.addAddress(own, address, ttl);
    records.add({ name: reverseName(address), type: 'PTR', ttl, data: own }, own);
  }
  for (const port of ports) records.addPort(own, port, own, ttl);
}

/** Adds the records of a headless service. Without a ready endpoint the name does not exist (§2.4.1). */
function addHeadless(
  records: RecordSet,
  own: string,
  service: Service,
  slices: readonly EndpointSlice[],
  ttl: number,
): void {
  const anyReadiness = service.spec?.publishNotReadyAddresses === true;
  for (const slice of slices) {
    if (slice.addressType === 'FQDN') continue;
    for (const endpoint of slice.endpoints ?? []) {
      if (endpoint.conditions?.ready === false && !anyReadiness) continue;
      for (const text of endpoint.addresses) {
        const address = canonicalAddress(text);
        if (address === undefined) continue;
        const label = (endpoint.hostname ?? '') === '' ? addressLabel(address) : endpoint.hostname;
        const target = `${label}.${own}`;
        records.addAddress(own, address, ttl);
        records.addAddress(target, address, ttl);
        records.add({ name: reverseName(address), type: 'PTR', ttl, data: target }, target);
        for (const port of slice.ports ?? []) records.addPort(own, port, target, ttl);
      }
    }
  }
}
