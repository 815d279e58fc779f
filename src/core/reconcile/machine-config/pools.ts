/**
 * Which nodes belong to which pool. As in later releases of upstream, a master that a custom pool selects too stays a
 * master. A pool that is made of a node group yields to others. Source: getPoolsForNode in pkg/controller/node of
 * openshift/machine-config-operator.
 */
import type { Node } from 'kubernetes-types/core/v1';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { MASTER_POOL, type MachineConfigPool, OF_GROUP, WORKER_POOL } from '../../../api/machineconfig/types.ts';
import { isEverything, labelSelectorOf, matchesLabels, nothing } from '../../../base/selector.ts';

type Selecting = LabelSelector | null | undefined;

export interface PoolOfNode {
  /** Undefined: no pool has the node, or several claim it. */
  readonly pool: MachineConfigPool | undefined;
  /** Why the node is left alone. */
  readonly error?: string;
}

export const nameOf = ({ metadata }: { readonly metadata?: { readonly name?: string } }): string =>
  metadata?.name ?? '';

/** An absent or empty selector selects nothing here, and so does one that is not valid. */
export function selects(selector: Selecting, labels: Readonly<Record<string, string>> | undefined): boolean {
  const parsed = parse(selector);
  return !isEverything(parsed) && matchesLabels(parsed, labels);
}

/** Whether the selector is present and would select everything; upstream reports that and does nothing. */
export const isEmptySelector = (selector: Selecting): boolean =>
  selector !== undefined && selector !== null && isEverything(parse(selector));

export function poolOfNode(node: Node, pools: readonly MachineConfigPool[]): PoolOfNode {
  const labels = node.metadata?.labels;
  if (labels?.['kubernetes.io/os'] === 'windows') return { pool: undefined };
  const claiming = pools.filter(({ spec }) => selects(spec?.nodeSelector, labels));
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

/** The nodes of each pool, by its name, in the order of their names. */
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
