/**
 * A pod network for each node out of the cluster's. IPv4. Source: upstream's nodeipam range allocator; OKD gives a /23
 * per node.
 */
import type { Node } from 'kubernetes-types/core/v1';
import { CodedError } from '../../../base/errors.ts';

export interface Ipv4Range {
  /** The network address as an unsigned 32-bit number. */
  readonly base: number;
  readonly prefix: number;
}

/** Fails with 'cidr-invalid'. */
export function parseIpv4Range(text: string): Ipv4Range {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  const parts = match === null ? [] : match.slice(1, 5).map(Number);
  const prefix = Number(match?.[5]);
  if (match === null || parts.some((part) => part > 255) || prefix > 32) {
    throw new CodedError('cidr-invalid', `${text} is not an IPv4 network such as 10.128.0.0/14`);
  }
  const address = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - prefix);
  return { base: Math.floor(address / size) * size, prefix };
}

function formatRange(base: number, prefix: number): string {
  return `${[24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256).join('.')}/${prefix}`;
}

/**
 * Which of the cluster's networks are taken. Indexes count networks of the node mask from the start of the cluster's
 * range.
 */
export class CidrPool {
  readonly #cluster: Ipv4Range;
  readonly #mask: number;
  readonly #taken = new Map<number, string>();
  #next = 0;

  constructor(clusterCidr: string, nodeMask: number) {
    this.#cluster = parseIpv4Range(clusterCidr);
    if (nodeMask < this.#cluster.prefix || nodeMask > 30) {
      throw new CodedError('cidr-invalid', `a node mask of ${nodeMask} does not fit in ${clusterCidr}`);
    }
    this.#mask = nodeMask;
  }

  get capacity(): number {
    return 2 ** (this.#mask - this.#cluster.prefix);
  }

  /** Marks every network that overlaps `cidr` as the node's. Networks outside the cluster's range are none of ours. */
  occupy(cidr: string, node: string): void {
    const range = parseIpv4Range(cidr);
    const step = 2 ** (32 - this.#mask);
    const first = Math.floor((range.base - this.#cluster.base) / step);
    const count = Math.max(1, 2 ** (this.#mask - range.prefix));
    for (let index = Math.max(0, first); index < Math.min(first + count, this.capacity); index++) {
      if (!this.#taken.has(index)) this.#taken.set(index, node);
    }
  }

  release(node: string): void {
    for (const [index, owner] of this.#taken) if (owner === node) this.#taken.delete(index);
  }

  /**
   * Takes the next free network, round robin, so that one just given back is not used at once. A node that was given
   * one before (the copy of it may lag) gets the same. Undefined: none is left.
   */
  allocate(node: string): string | undefined {
    for (const [index, owner] of this.#taken) if (owner === node) return this.#format(index);
    for (let tried = 0; tried < this.capacity; tried++) {
      const index = (this.#next + tried) % this.capacity;
      if (this.#taken.has(index)) continue;
      this.#taken.set(index, node);
      this.#next = (index + 1) % this.capacity;
      return this.#format(index);
    }
    return undefined;
  }

  #format(index: number): string {
    return formatRange(this.#cluster.base + index * 2 ** (32 - this.#mask), this.#mask);
  }
}

/** True when the node waits for a network. */
export function needsCidr(node: Node): boolean {
  return node.metadata?.deletionTimestamp === undefined && (node.spec?.podCIDR ?? '') === '';
}
