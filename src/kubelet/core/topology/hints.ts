/**
 * Topology hints: the NUMA nodes that can provide the resources of a container, and the nodes common to all resources.
 * Source: KEP-693; pkg/kubelet/cm/topologymanager.
 */

export const TOPOLOGY_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;
export type TopologyPolicy = (typeof TOPOLOGY_POLICIES)[number];

/**
 * Limit of NUMA nodes, because the number of combinations grows exponentially. Source: upstream's
 * maxAllowableNUMANodes.
 */
const MAX_NODES = 8;

/** NUMA nodes that can serve a request together. */
export interface TopologyHint {
  /** Bit mask of NUMA nodes. */
  readonly nodes: number;
  /** Whether no smaller set of nodes could ever serve the request. */
  readonly preferred: boolean;
}

export const nodeMask = (nodes: Iterable<number>): number => {
  let mask = 0;
  for (const node of nodes) mask |= 1 << node;
  return mask;
};

export const inMask = (mask: number, node: number): boolean => ((mask >> node) & 1) === 1;

const sizeOf = (mask: number): number => {
  let size = 0;
  for (let left = mask; left > 0; left >>= 1) size += left & 1;
  return size;
};

/**
 * Hints of one resource. `total` and `free` return the amounts of a set of nodes. An empty list means that no set has
 * enough free.
 */
export function hintsFor(
  nodes: readonly number[],
  requested: number,
  total: (mask: number) => number,
  free: (mask: number) => number,
): readonly TopologyHint[] {
  const masks = subsets(nodes);
  const smallest = Math.min(...masks.filter((mask) => total(mask) >= requested).map(sizeOf));
  return masks
    .filter((mask) => free(mask) >= requested)
    .map((mask) => ({ nodes: mask, preferred: sizeOf(mask) === smallest }));
}

function subsets(nodes: readonly number[]): readonly number[] {
  const bounded = nodes.slice(0, MAX_NODES);
  return Array.from({ length: 2 ** bounded.length - 1 }, (_, index) =>
    nodeMask(bounded.filter((__, position) => inMask(index + 1, position))),
  );
}

export interface TopologyDecision {
  readonly admitted: boolean;
  /** NUMA nodes to use; undefined if the policy is `none` or no resource has a preference. */
  readonly hint: TopologyHint | undefined;
}

/** @param resources Hints of each resource that the container requests; undefined for a resource without preference. */
export function decideTopology(
  policy: TopologyPolicy,
  nodes: readonly number[],
  resources: readonly (readonly TopologyHint[] | undefined)[],
): TopologyDecision {
  const all = nodeMask(nodes);
  if (policy === 'none') return { admitted: true, hint: undefined };
  const minding = resources.filter((each) => each !== undefined);
  if (minding.length === 0) return { admitted: true, hint: undefined };
  const single = policy === 'single-numa-node';
  const choices = minding.map((hints) => {
    const usable = single ? hints.filter((hint) => hint.preferred && sizeOf(hint.nodes) === 1) : hints;
    return usable.length > 0 ? usable : [{ nodes: all, preferred: false }];
  });
  const best = bestOf(merged(choices, all)) ?? { nodes: all, preferred: false };
  return { admitted: policy === 'best-effort' || best.preferred, hint: best };
}

/** Combinations of one hint per resource whose nodes overlap. */
function merged(choices: readonly (readonly TopologyHint[])[], all: number): readonly TopologyHint[] {
  let found: TopologyHint[] = [{ nodes: all, preferred: true }];
  for (const hints of choices) {
    const next = new Map<string, TopologyHint>();
    for (const { nodes, preferred } of found) {
      for (const hint of hints) {
        const both = { nodes: nodes & hint.nodes, preferred: preferred && hint.preferred };
        if (both.nodes !== 0) next.set(`${both.nodes}/${both.preferred}`, both);
      }
    }
    found = [...next.values()];
  }
  return found;
}

function bestOf(hints: readonly TopologyHint[]): TopologyHint | undefined {
  return hints.toSorted(
    (a, b) =>
      Number(b.preferred) - Number(a.preferred) ||
      sizeOf(a.nodes) - sizeOf(b.nodes) ||
      (a.nodes >>> 0) - (b.nodes >>> 0),
  )[0];
}
