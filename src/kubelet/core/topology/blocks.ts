/**
 * Memory of a Guaranteed container pinned to NUMA nodes. Source: KEP-1769; pkg/kubelet/cm/memorymanager
 * policy_static.go.
 */
import { inMask } from './hints.ts';

/** Memory reserved for one container, of a type such as `memory` or `hugepages-2Mi`. */
export interface MemoryBlock {
  /** NUMA nodes from which the block is allocated together. */
  readonly numaAffinity: readonly number[];
  readonly type: string;
  /** Bytes. */
  readonly size: number;
}

export interface MemoryNode {
  readonly id: number;
  /** Bytes by resource, minus reservations. */
  readonly allocatable: Readonly<Record<string, number>>;
}

/**
 * Free amount of a resource by NUMA node. A block that spans several nodes is charged to its nodes in order, to each
 * node at most its free amount.
 */
export function freeOf(
  nodes: readonly MemoryNode[],
  type: string,
  blocks: readonly MemoryBlock[],
): Map<number, number> {
  const free = new Map(nodes.map(({ id, allocatable }) => [id, allocatable[type] ?? 0]));
  for (const block of blocks) {
    if (block.type !== type) continue;
    let left = block.size;
    for (const node of block.numaAffinity) {
      const assigned = Math.min(left, free.get(node) ?? 0);
      free.set(node, (free.get(node) ?? 0) - assigned);
      left -= assigned;
    }
  }
  return free;
}

export const sumIn = (amounts: ReadonlyMap<number, number>, mask: number): number => {
  let sum = 0;
  for (const [node, amount] of amounts) if (inMask(mask, node)) sum += amount;
  return sum;
};

/**
 * Whether the nodes of the mask may serve a block together. Nodes that serve a block as a group may only serve blocks
 * of the same group, because the kernel could otherwise give one container's memory to another.
 */
export function mayGroup(mask: number, nodes: readonly MemoryNode[], blocks: readonly MemoryBlock[]): boolean {
  const wanted = nodes.map(({ id }) => id).filter((id) => inMask(mask, id));
  const key = wanted.join();
  return blocks.every(
    ({ numaAffinity }) =>
      numaAffinity.join() === key ||
      !numaAffinity.some((node) => wanted.includes(node)) ||
      (numaAffinity.length === 1 && wanted.length === 1),
  );
}
