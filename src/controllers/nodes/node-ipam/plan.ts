/**
 * Pod networks of nodes, allocated from the cluster's network of either address family. Source: upstream's nodeipam
 * range allocator. OKD assigns an IPv4 /23 per node, upstream an IPv6 /64.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { type Network, networkText, parseNetwork, widthOf } from '../../../base/addresses/networks.ts';
import type { NodeName } from '../../../base/brand.ts';
import { CodedError } from '../../../base/errors.ts';

/** Parses a range. Throws 'cidr-invalid'. */
function rangeOf(text: string): Network {
  const range = parseNetwork(text);
  if (range === undefined) {
    throw new CodedError('cidr-invalid', `${text} is not a network such as 10.128.0.0/14 or fd01::/48`);
  }
  return range;
}

/** Maximum number of bits that distinguish node networks, as in upstream. Networks beyond this limit are not used. */
const MAX_SUBNET_BITS = 16;

/**
 * Allocation state of a cluster network. Indexes count networks of the node mask from the start of the cluster's range.
 */
export class CidrPool {
  readonly clusterCidr: string;
  readonly #cluster: Network;
  readonly #mask: number;
  readonly #owners = new Map<number, NodeName>();
  #next = 0;

  constructor(clusterCidr: string, nodeMask: number) {
    this.clusterCidr = clusterCidr;
    this.#cluster = rangeOf(clusterCidr);
    const { bits, family } = this.#cluster;
    const smallest = family === 4 ? 30 : 126;
    if (nodeMask < bits || nodeMask > smallest || nodeMask - bits > MAX_SUBNET_BITS) {
      throw new CodedError('cidr-invalid', `a node mask of ${nodeMask} does not fit in ${clusterCidr}`);
    }
    this.#mask = nodeMask;
  }

  get capacity(): number {
    return 2 ** (this.#mask - this.#cluster.bits);
  }

  /**
   * Marks every network that overlaps `cidr` as used by the node. Networks outside the cluster's range or of the other
   * family are ignored. Throws 'cidr-invalid'.
   */
  occupy(cidr: string, node: NodeName): void {
    const range = rangeOf(cidr);
    if (range.family !== this.#cluster.family) return;
    const shift = BigInt(widthOf(range.family) - this.#mask);
    const first = (range.base >> shift) - (this.#cluster.base >> shift);
    const count = range.bits >= this.#mask ? 1n : 1n << BigInt(this.#mask - range.bits);
    const last = first + count;
    const [from, to] = [first < 0n ? 0n : first, last > BigInt(this.capacity) ? BigInt(this.capacity) : last];
    for (let index = from; index < to; index++) {
      if (!this.#owners.has(Number(index))) this.#owners.set(Number(index), node);
    }
  }

  release(node: NodeName): void {
    for (const [index, owner] of this.#owners) if (owner === node) this.#owners.delete(index);
  }

  /**
   * Allocates the next free network, round robin, so that a network just released is not reused at once. A node that
   * already has a network gets the same network, because the cached Node may be outdated. Returns undefined if no
   * network is free.
   */
  allocate(node: NodeName): string | undefined {
    for (const [index, owner] of this.#owners) if (owner === node) return this.#format(index);
    for (let tried = 0; tried < this.capacity; tried++) {
      const index = (this.#next + tried) % this.capacity;
      if (this.#owners.has(index)) continue;
      this.#owners.set(index, node);
      this.#next = (index + 1) % this.capacity;
      return this.#format(index);
    }
    return undefined;
  }

  #format(index: number): string {
    const { base, family } = this.#cluster;
    const offset = BigInt(index) << BigInt(widthOf(family) - this.#mask);
    return networkText({ base: base + offset, family, bits: this.#mask });
  }
}

export function needsCidr(node: Node): boolean {
  return node.metadata?.deletionTimestamp === undefined && (node.spec?.podCIDR ?? '') === '';
}
