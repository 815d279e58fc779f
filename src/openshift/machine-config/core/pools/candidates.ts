/**
 * Selects the nodes of a pool that get its configuration next. Masters are updated one at a time, and only while the
 * other masters keep quorum. Other pools are limited by maxUnavailable. Nodes are ordered by zone and then by age, and
 * the leader of the store comes last. Source: getAllCandidateMachines and sortNodeList in pkg/controller/node of
 * openshift/machine-config-operator 4.12.
 */
import type { Node } from '../../../../api/generated/core/v1.ts';
import { resolveIntOrPercent } from '../../../../controllers/framework/core/int-or-percent.ts';
import { DESIRED_CONFIG, MASTER_POOL, type MachineConfigPool } from '../../kinds/machine-config-types.ts';
import { annotationOf, isFailing, isReady, isUnavailable } from './node-state.ts';
import { nameOf } from './pools.ts';

const ZONE = 'topology.kubernetes.io/zone';

export interface UpdateSelection {
  /** Nodes that get the configuration now. */
  readonly next: readonly Node[];
  /** Leader of the store, if it has to wait until the other masters are updated. */
  readonly deferredLeader: Node | undefined;
}

const NONE: UpdateSelection = { next: [], deferredLeader: undefined };

/**
 * Selects the next nodes.
 *
 * @param leader Name of the node whose store member is the leader; undefined if it is unknown.
 */
export function nextNodes(
  pool: MachineConfigPool,
  nodes: readonly Node[],
  leader: string | undefined,
): UpdateSelection {
  const target = pool.spec?.configuration?.name ?? '';
  if (target === '' || pool.spec?.paused === true || pool.metadata?.deletionTimestamp !== undefined) return NONE;
  const isMaster = nameOf(pool) === MASTER_POOL;
  const unavailable = nodes.filter(isUnavailable);
  const aimed = nodes.filter((node) => annotationOf(node, DESIRED_CONFIG) === target);
  const limit = isMaster ? 1 : maxUnavailable(pool, nodes.length);
  // A node that has failed with this configuration may still recover, so it reduces the capacity.
  const capacity = limit - unavailable.length - aimed.filter(isFailing).length;
  const outdated = nodes.filter((node) => annotationOf(node, DESIRED_CONFIG) !== target);
  if (capacity <= 0 || outdated.length === 0) return NONE;
  const ordered = outdated.toSorted(inOrder);
  if (!isMaster) return { next: ordered.slice(0, capacity), deferredLeader: undefined };
  const leading = ordered.length > 1 ? ordered.find((node) => nameOf(node) === leader) : undefined;
  const [first] = ordered.filter((node) => node !== leading);
  if (first === undefined || !keepsQuorum(first, nodes)) return NONE;
  return { next: [first], deferredLeader: leading };
}

/**
 * Number of nodes that may be unavailable; default 1. It is never 0, because a pool is stopped with `paused` instead.
 */
export function maxUnavailable({ spec }: MachineConfigPool, total: number): number {
  return Math.max(1, resolveIntOrPercent(spec?.maxUnavailable ?? undefined, total, 'down', 1));
}

/**
 * Whether the masters keep quorum without `updated`. One or two masters have no quorum without it, so the other master
 * only has to be ready.
 */
function keepsQuorum(updated: Node, masters: readonly Node[]): boolean {
  const others = masters.filter((node) => node !== updated);
  const needed = Math.min(others.length, Math.floor(masters.length / 2) + 1);
  return others.filter(isReady).length >= needed;
}

/** Order by zone, age and name. Nodes without a zone come last. */
function inOrder(left: Node, right: Node): number {
  const zones = compare(zoneOf(left) ?? '\uffff', zoneOf(right) ?? '\uffff');
  if (zones !== 0) return zones;
  const ages = compare(left.metadata?.creationTimestamp ?? '', right.metadata?.creationTimestamp ?? '');
  return ages === 0 ? compare(nameOf(left), nameOf(right)) : ages;
}

const zoneOf = (node: Node): string | undefined => node.metadata?.labels?.[ZONE];

const compare = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

/**
 * Configuration for a node that has none yet: the one that the pool has completed. maxUnavailable does not limit it.
 */
export function firstConfiguration(pool: MachineConfigPool, node: Node): string | undefined {
  if (annotationOf(node, DESIRED_CONFIG) !== '') return undefined;
  const config = pool.status?.configuration?.name || pool.spec?.configuration?.name;
  return config === undefined || config === '' ? undefined : config;
}
