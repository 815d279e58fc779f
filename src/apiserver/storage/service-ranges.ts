/**
 * Ranges of cluster IPs: the server's own ranges, published as ServiceCIDR `kubernetes`, and the ranges of all other
 * ready ServiceCIDRs. Source: KEP-1880, k8s.io/kubernetes/pkg/registry/core/service/ipallocator.
 */
import type { ServiceCidr } from '../../api/kinds/network/servicecidrs/index.ts';
import {
  addressText,
  addressValue,
  type Network,
  networkText,
  parseNetwork,
  sizeOf,
} from '../../base/addresses/networks.ts';
import type { KindCache } from '../watch-cache/kind-cache.ts';

export type IpFamily = 'IPv4' | 'IPv6';

/** Maximum number of addresses of a range that are allocated. No cluster has as many services. */
const MAX_SIZE = 2 ** 32;

export const familyOf = ({ family }: Network): IpFamily => `IPv${family}`;

export class ServiceRanges {
  /** The server's own ranges: one per family, the primary family first. */
  readonly own: readonly Network[];
  readonly #objects: () => KindCache;

  /** `own`: one range, or two ranges separated by a comma. Throws an Error if they cannot be used for services. */
  constructor(own: string, objects: () => KindCache) {
    this.own = own.split(',').map((text) => {
      const range = parseNetwork(text);
      const bits = range?.family === 6 ? range.bits - 96 : range?.bits;
      if (range === undefined || bits === undefined || bits > 30 || (range.family === 4 && bits < 8)) {
        throw new Error(`service CIDR ${text}: expected an IPv4 network of /8 to /30 or an IPv6 network of up to /126`);
      }
      return range;
    });
    if (new Set(this.own.map(familyOf)).size < this.own.length)
      throw new Error(`service CIDR ${own}: expected at most one network of each family`);
    this.#objects = objects;
  }

  get families(): readonly IpFamily[] {
    return this.own.map(familyOf);
  }

  /** Ranges for new addresses, the server's own first. Ranges under deletion are excluded. */
  usable(family: IpFamily): readonly Network[] {
    const own = this.own.find((range) => familyOf(range) === family);
    const ready: Network[] = [];
    let ownIsGoing = false;
    for (const object of this.#objects()) {
      const { metadata, spec, status } = object.shared<ServiceCidr>();
      const isGoing = metadata?.deletionTimestamp !== undefined;
      const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
      for (const cidr of spec?.cidrs ?? []) {
        const range = parseNetwork(cidr);
        if (range === undefined || familyOf(range) !== family) continue;
        if (isReady && !isGoing) ready.push(range);
        else if (isGoing && own !== undefined && isSame(range, own)) ownIsGoing = true;
      }
    }
    if (own === undefined) return [];
    const others = ready.filter((range) => !isSame(range, own));
    return ownIsGoing && others.length === ready.length ? others : [own, ...others];
  }

  /** The smallest usable range that contains the address. The first and last address of a range are not usable. */
  holding(address: string): Network | undefined {
    const parsed = addressValue(address);
    if (parsed === undefined) return undefined;
    const { family, value } = parsed;
    const [smallest] = this.usable(`IPv${family}`)
      .filter((range) => value >= range.base && value < range.base + sizeOf(range))
      .sort((left, right) => right.bits - left.bits);
    if (smallest === undefined) return undefined;
    const offset = value - smallest.base;
    const isLast = family === 4 && offset === sizeOf(smallest) - 1n;
    return offset > 0n && !isLast ? smallest : undefined;
  }
}

const isSame = (left: Network, right: Network): boolean => networkText(left) === networkText(right);

/** Number of addresses in the range, including the first and last, limited to MAX_SIZE. */
export const countOf = (range: Network): number => {
  const size = sizeOf(range);
  return size > BigInt(MAX_SIZE) ? MAX_SIZE : Number(size);
};

export const addressIn = ({ base, family }: Network, offset: number): string =>
  addressText(base + BigInt(offset), family);
