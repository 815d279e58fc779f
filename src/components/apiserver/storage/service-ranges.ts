/**
 * The networks of cluster IPs: the server's own, published as ServiceCIDR `kubernetes`, and those of every other
 * ServiceCIDR that is ready. Source: KEP-1880, k8s.io/kubernetes/pkg/registry/core/service/ipallocator.
 */
import type { ServiceCidr } from '../../../api/kinds/servicecidrs/index.ts';
import type { KindCache } from '../watchcache/kind-cache.ts';

const BITS = 32;

/** An IPv4 network: its first address as a number, and how many it has. */
export interface ServiceRange {
  readonly base: number;
  readonly size: number;
}

export class ServiceRanges {
  readonly own: ServiceRange;
  readonly #objects: () => KindCache;

  /** Throws when `own` is no IPv4 network that can hold services. */
  constructor(own: string, objects: () => KindCache) {
    const range = parseRange(own);
    const bits = range === undefined ? 0 : bitsOf(range);
    if (range === undefined || bits < 8 || bits > 30) {
      throw new Error(`service CIDR ${own}: expected an IPv4 network of /8 to /30`);
    }
    this.own = range;
    this.#objects = objects;
  }

  /** Those that give addresses now, the server's own first. None is taken from a range that is being deleted. */
  usable(): readonly ServiceRange[] {
    const ready: ServiceRange[] = [];
    let ownIsGoing = false;
    for (const object of this.#objects()) {
      const { metadata, spec, status } = object.shared<ServiceCidr>();
      const isGoing = metadata?.deletionTimestamp !== undefined;
      const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
      for (const cidr of spec?.cidrs ?? []) {
        const range = parseRange(cidr);
        if (range === undefined) continue;
        if (isReady && !isGoing) ready.push(range);
        else if (isGoing && isSame(range, this.own)) ownIsGoing = true;
      }
    }
    const others = ready.filter((range) => !isSame(range, this.own));
    return ownIsGoing && others.length === ready.length ? others : [this.own, ...others];
  }

  /** The smallest usable range that has the address for a service: neither its first nor its last is one. */
  holding(address: string): ServiceRange | undefined {
    const value = numberOf(address);
    const [smallest] = this.usable()
      .filter(({ base, size }) => value >= base && value < base + size)
      .sort((left, right) => left.size - right.size);
    if (smallest === undefined) return undefined;
    const offset = value - smallest.base;
    return offset > 0 && offset < smallest.size - 1 ? smallest : undefined;
  }
}

const isSame = (left: ServiceRange, right: ServiceRange): boolean =>
  left.base === right.base && left.size === right.size;

const bitsOf = ({ size }: ServiceRange): number => BITS - Math.log2(size);

/** Undefined for networks of another family. */
function parseRange(cidr: string): ServiceRange | undefined {
  const [address = '', bits = ''] = cidr.split('/');
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(address) || !/^\d+$/.test(bits) || Number(bits) > BITS) return undefined;
  const size = 2 ** (BITS - Number(bits));
  return { base: Math.floor(numberOf(address) / size) * size, size };
}

export const rangeText = (range: ServiceRange): string => `${addressIn(range, 0)}/${bitsOf(range)}`;

export function addressIn({ base }: ServiceRange, offset: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor((base + offset) / 2 ** shift) % 256).join('.');
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}
