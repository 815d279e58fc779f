/**
 * Assigns nodes to pools. A master stays in the master pool even if a custom pool selects it, as in later releases of
 * upstream. A pool that was created from a node group has lower precedence than other pools. Source: getPoolsForNode in
 * pkg/controller/node of openshift/machine-config-operator.
 */
import type { Node } from '../../../../api/generated/core/v1.ts';
import type { LabelSelector } from '../../../../api/generated/meta/v1.ts';
import { isEverything, labelSelectorOf, matchesLabels, nothing } from '../../../../base/selector.ts';
import { MASTER_POOL, type MachineConfigPool, OF_GROUP, WORKER_POOL } from '../../kinds/machine-config-types.ts';

type Selecting = LabelSelector | null | undefined;

export interface PoolOfNode {
  /** Pool of the node; undefined if no pool or more than one pool selects the node. */
  readonly pool: MachineConfigPool | undefined;
  /** Reason why the node belongs to no pool. */
  readonly error?: string;
}

export const nameOf = ({ metadata }: { readonly metadata?: { readonly name?: string } }): string =>
  metadata?.name ?? '';

/** Whether the selector matches the labels. Unlike elsewhere, an absent, empty or invalid selector matches nothing. */
export function selectsNode(selector: Selecting, labels: Readonly<Record<string, string>> | undefined): boolean {
  const parsed = parse(selector);
  return !isEverything(parsed) && matchesLabels(parsed, labels);
}

/** Whether the selector is present but empty, so it would match everything. Upstream reports this as an error. */
export const isEmptySelector = (selector: Selecting): boolean =>
  selector !== undefined && selector !== null && isEverything(parse(selector));

export function poolOfNode(node: Node, pools: readonly MachineConfigPool[]): PoolOfNode {
  const labels = node.metadata?.labels;
  if (labels?.['kubernetes.io/os'] === 'windows') return { pool: undefined };
  const claiming = pools.filter(({ spec }) => selectsNode(spec?.nodeSelector, labels));
  const master = claiming.find((pool) => nameOf(pool) === MASTER_POOL);
  if (master !== undefined) return { pool: master };
  const all = claiming.filter((pool) => nameOf(pool) !== WORKER_POOL);
  const given = all.filter(({ metadata }) => metadata?.annotations?.[OF_GROUP] === undefined);
  const custom = given.length > 0 ? given : all;
  if (custom.length > 1) {
    const names = custom.map(nameOf).sort().join(', ');
    const error = `node ${nameOf(node)} belongs to ${custom.length} custom roles, cannot proceed with this Node: ${names}`;
    return { pool: undefined, error };
  }
  return { pool: custom[0] ?? claiming[0] };
}

/** Nodes of each pool by name of the pool. The nodes are sorted by name. */
export function nodesByPool(
  nodes: readonly Node[],
  pools: readonly MachineConfigPool[],
): ReadonlyMap<string, readonly Node[]> {
  const found = new Map<string, Node[]>(pools.map((pool) => [nameOf(pool), []]));
  for (const node of nodes) {
    const { pool } = poolOfNode(node, pools);
    if (pool !== undefined) found.get(nameOf(pool))?.push(node);
  }
  for (const each of found.values()) each.sort((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
  return found;
}

function parse(selector: Selecting) {
  if (selector === undefined || selector === null) return nothing;
  try {
    return labelSelectorOf(selector);
  } catch {
    return nothing;
  }
}
