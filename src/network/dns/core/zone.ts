/**
 * The cluster's zone: records of all services, records of the zone itself, names of pods, and reverse names of the
 * cluster's ranges. Sources: Kubernetes DNS-Based Service Discovery 1.1; RFC 2308 and 8020 (NXDOMAIN and no data); RFC
 * 6303 (private reverse zones); RFC 6761 (localhost).
 */
import type { Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { ipFamilyOf } from '../../../base/addresses/addresses.ts';
import { type DnsRecord, isBelow, RCODE, type RecordType } from './records.ts';
import { addressOfLabel, addressOfReverse, isInAny, REVERSE_V4, REVERSE_V6 } from './reverse.ts';
import { type ServiceRecords, serviceRecords } from './service-records.ts';

export interface ZoneOptions {
  readonly zone: string;
  /** TTL of every record in seconds. */
  readonly ttl: number;
  /** Addresses of the name server itself, of one or two families. */
  readonly serverAddresses: readonly string[];
  /** Ranges of pods and services. Queries for their reverse names are never forwarded. */
  readonly ranges: readonly string[];
}

export interface ZoneAnswer {
  readonly rcode: number;
  readonly answers: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
  /** SOA record, which limits how long the response is cached. Only in a response without records. */
  readonly soa: DnsRecord | undefined;
  /** Target of the final CNAME if another server must resolve it; otherwise undefined. */
  readonly alias: string | undefined;
}

const SCHEMA_VERSION = '1.1.0';
/** Maximum number of CNAMEs that are followed within the zone. */
const MAX_ALIASES = 8;

export class ClusterZone {
  readonly #options: ZoneOptions;
  readonly #names = new Map<string, readonly DnsRecord[]>();
  /** A nested map, because several headless services may have an endpoint with the same address. */
  readonly #reverse = new Map<string, Map<string, readonly DnsRecord[]>>();
  readonly #services = new Map<string, { readonly namespace: string; readonly records: ServiceRecords }>();
  readonly #namespaces = new Map<string, number>();
  #serial: number;

  /** @param serial Initial serial of the SOA record, which increases with every change. */
  constructor(options: ZoneOptions, serial: number) {
    this.#options = options;
    this.#serial = serial >>> 0;
  }

  get size(): number {
    return this.#services.size;
  }

  /** Replaces the records of one service. Returns false if nothing changed. */
  setService(service: Service, slices: readonly EndpointSlice[]): boolean {
    const { namespace = '', name = '' } = service.metadata ?? {};
    const key = `${namespace}/${name}`;
    const records = serviceRecords(service, slices, this.#options);
    const known = this.#services.get(key);
    if (known !== undefined && sameRecords(known.records, records)) return false;
    this.#remove(key);
    this.#services.set(key, { namespace, records });
    // A service without records does not exist in DNS, and neither does a namespace with only such services.
    if (records.size > 0) this.#namespaces.set(namespace, (this.#namespaces.get(namespace) ?? 0) + 1);
    for (const [owner, list] of records) {
      if (!isReverse(owner)) {
        this.#names.set(owner, list);
        continue;
      }
      const owners = this.#reverse.get(owner) ?? new Map<string, readonly DnsRecord[]>();
      owners.set(key, list);
      this.#reverse.set(owner, owners);
    }
    this.#changed();
    return true;
  }

  /** @param key `namespace/name`. */
  removeService(key: string): boolean {
    if (!this.#remove(key)) return false;
    this.#changed();
    return true;
  }

  /**
   * Looks up the records of a name. Returns undefined if the name is not in the cluster's zones, so that another server
   * must be queried.
   */
  lookup(name: string, type: RecordType | 'ANY' | undefined): ZoneAnswer | undefined {
    const answers: DnsRecord[] = [];
    let current = name;
    for (let depth = 0; depth < MAX_ALIASES; depth++) {
      const found = this.#find(current);
      if (found === 'elsewhere') {
        return depth === 0
          ? undefined
          : { rcode: RCODE.noError, answers, additionals: [], soa: undefined, alias: current };
      }
      if (found === undefined) {
        return { rcode: RCODE.nxDomain, answers, additionals: [], soa: this.#soaOf(current), alias: undefined };
      }
      const [first] = found;
      if (first?.type === 'CNAME') {
        answers.push(first);
        if (type === 'CNAME' || type === 'ANY') return complete(answers);
        current = first.data;
        continue;
      }
      if (type === 'ANY') return complete([...answers, minimalAny(current, this.#options.ttl)]);
      const matching = found.filter((record) => record.type === type);
      if (matching.length === 0) {
        return { rcode: RCODE.noError, answers, additionals: [], soa: this.#soaOf(current), alias: undefined };
      }
      answers.push(...matching);
      return { ...complete(answers), additionals: this.#targets(matching) };
    }
    return { rcode: RCODE.servFail, answers: [], additionals: [], soa: undefined, alias: undefined };
  }

  /**
   * Records of a name in this zone or of a built-in name. 'elsewhere' if the name belongs to another server's zone;
   * undefined if the name does not exist.
   */
  #find(name: string): readonly DnsRecord[] | 'elsewhere' | undefined {
    const { zone, ttl, serverAddresses } = this.#options;
    if (name === 'localhost' || name.endsWith('.localhost')) {
      return [
        { name, type: 'A', ttl, data: '127.0.0.1' },
        { name, type: 'AAAA', ttl, data: '::1' },
      ];
    }
    if (isReverse(name)) return this.#findReverse(name);
    if (!isBelow(name, zone)) return 'elsewhere';
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    if (name === zone) return [this.#soaOf(zone), { name, type: 'NS', ttl, data: `ns.dns.${zone}` }];
    const labels = name.slice(0, -zone.length - 1).split('.');
    const [first = '', second = ''] = labels;
    switch (labels.at(-1)) {
      case 'svc':
        if (labels.length === 1) return [];
        return labels.length === 2 && this.#namespaces.has(first) ? [] : undefined;
      case 'pod':
        return labels.length < 3 ? [] : labels.length === 3 && second !== '' ? this.#pod(name, first) : undefined;
      case 'dns':
        if (labels.length === 1) return [];
        return labels.length === 2 && first === 'ns'
          ? serverAddresses.map((data) => ({ name, type: ipFamilyOf(data) === 4 ? 'A' : 'AAAA', ttl, data }))
          : undefined;
      case 'dns-version':
        return labels.length === 1 ? [{ name, type: 'TXT', ttl, data: SCHEMA_VERSION }] : undefined;
      default:
        return undefined;
    }
  }

  /** Records of a pod name (§2.6), which exists for every address, whether or not a pod has the address. */
  #pod(name: string, label: string): readonly DnsRecord[] | undefined {
    const data = addressOfLabel(label);
    if (data === undefined) return undefined;
    return [{ name, type: ipFamilyOf(data) === 4 ? 'A' : 'AAAA', ttl: this.#options.ttl, data }];
  }

  #findReverse(name: string): readonly DnsRecord[] | 'elsewhere' | undefined {
    const owners = this.#reverse.get(name);
    if (owners !== undefined) return [...owners.values()].flat();
    const address = addressOfReverse(name);
    if (address === '127.0.0.1' || address === '::1') {
      return [{ name, type: 'PTR', ttl: this.#options.ttl, data: 'localhost' }];
    }
    return address !== undefined && isInAny(address, this.#options.ranges) ? undefined : 'elsewhere';
  }

  #targets(records: readonly DnsRecord[]): DnsRecord[] {
    const targets = new Set(records.flatMap((record) => (record.type === 'SRV' ? [record.data.target] : [])));
    return [...targets].flatMap((target) =>
      (this.#names.get(target) ?? []).filter(({ type }) => type === 'A' || type === 'AAAA'),
    );
  }

  #soaOf(name: string): DnsRecord {
    const { zone, ttl } = this.#options;
    const owner = name.endsWith(REVERSE_V4) ? REVERSE_V4 : name.endsWith(REVERSE_V6) ? REVERSE_V6 : zone;
    const data = {
      mname: `ns.dns.${zone}`,
      rname: `hostmaster.${zone}`,
      serial: this.#serial,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttl,
    };
    return { name: owner, type: 'SOA', ttl, data };
  }

  #changed(): void {
    this.#serial = (this.#serial + 1) >>> 0;
  }

  #remove(key: string): boolean {
    const known = this.#services.get(key);
    if (known === undefined) return false;
    this.#services.delete(key);
    for (const owner of known.records.keys()) {
      this.#names.delete(owner);
      const owners = this.#reverse.get(owner);
      owners?.delete(key);
      if (owners?.size === 0) this.#reverse.delete(owner);
    }
    if (known.records.size > 0) {
      const left = (this.#namespaces.get(known.namespace) ?? 1) - 1;
      if (left === 0) this.#namespaces.delete(known.namespace);
      else this.#namespaces.set(known.namespace, left);
    }
    return true;
  }
}

const isReverse = (name: string): boolean => name.endsWith(`.${REVERSE_V4}`) || name.endsWith(`.${REVERSE_V6}`);

const complete = (answers: readonly DnsRecord[]): ZoneAnswer => ({
  rcode: RCODE.noError,
  answers,
  additionals: [],
  soa: undefined,
  alias: undefined,
});

/** Minimal response to an ANY query. Source: RFC 8482 §4.2. */
const minimalAny = (name: string, ttl: number): DnsRecord => ({
  name,
  type: 'HINFO',
  ttl,
  data: { cpu: 'RFC8482', os: '' },
});

/** Whether two records of the same name are equal. */
function isSame(left: DnsRecord, right: DnsRecord | undefined): boolean {
  if (left.type !== right?.type || left.ttl !== right.ttl) return false;
  if (left.type === 'SRV' && right.type === 'SRV')
    return left.data.port === right.data.port && left.data.target === right.data.target;
  return left.data === right.data;
}

function sameRecords(left: ServiceRecords, right: ServiceRecords): boolean {
  if (left.size !== right.size) return false;
  for (const [name, records] of left) {
    const other = right.get(name);
    if (other === undefined || other.length !== records.length) return false;
    if (!records.every((record, index) => isSame(record, other[index]))) return false;
  }
  return true;
}
