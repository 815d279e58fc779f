/**
 * Resource arithmetic: requests of pods and remaining resources of nodes. CPU is in millicores, all other resources in
 * whole units. Source: KEP-753 (sidecar containers), KEP-688 (pod overhead), KEP-2837 (pod level resources).
 */

import { quantityMilliValue, quantityValue, tryParseQuantity } from '../../../base/quantity.ts';
import type { Container, Pod } from '../../generated/core/v1.ts';

/** Amounts by resource name; an absent name is zero. A Map, because names come from users. */
export type Amounts = ReadonlyMap<string, number>;

type MutableAmounts = Map<string, number>;
type ResourceList = Readonly<Record<string, string | number>>;

export const CPU = 'cpu';
export const MEMORY = 'memory';
export const EPHEMERAL_STORAGE = 'ephemeral-storage';
export const PODS = 'pods';

/** Upstream's assumed requests of containers without requests, for scores, so that such pods are spread as well. */
const ASSUMED_MILLICPU = 100;
const ASSUMED_MEMORY = 200 * 1024 * 1024;

export function amountsOf(list: ResourceList | undefined): MutableAmounts {
  const amounts: MutableAmounts = new Map();
  for (const [name, text] of Object.entries(list ?? {})) {
    const quantity = tryParseQuantity(text);
    if (quantity !== undefined)
      amounts.set(name, name === CPU ? quantityMilliValue(quantity) : quantityValue(quantity));
  }
  return amounts;
}

export function sameAmounts(a: Amounts, b: Amounts): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [name, amount] of a) if (b.get(name) !== amount) return false;
  return true;
}

export function add(target: MutableAmounts, amounts: Amounts, sign: 1 | -1 = 1): void {
  for (const [name, amount] of amounts) target.set(name, (target.get(name) ?? 0) + sign * amount);
}

function raise(target: MutableAmounts, amounts: Amounts): void {
  for (const [name, amount] of amounts) target.set(name, Math.max(target.get(name) ?? 0, amount));
}

/**
 * Resources that the pod holds on its node. Until an in-place resize is complete, each container counts with the
 * largest of its requested, allocated and actual amounts. Source: KEP-1287; k8s.io/component-helpers/resource
 * `determineContainerReqs`.
 */
export function heldRequests(pod: Pod): Amounts {
  const { containerStatuses = [], initContainerStatuses = [], conditions = [] } = pod.status ?? {};
  const known = new Map([...containerStatuses, ...initContainerStatuses].map((each) => [each.name, each]));
  // A resize that the node can never grant does not count.
  const isInfeasible = conditions.some(
    ({ type, status, reason }) => type === 'PodResizePending' && status === 'True' && reason === 'Infeasible',
  );
  return total(pod, (container) => {
    const status = known.get(container.name);
    const requested = amountsOf(container.resources?.requests);
    if (status?.resources?.requests === undefined) return requested;
    const held: MutableAmounts = isInfeasible ? new Map() : requested;
    raise(held, amountsOf(status.resources.requests));
    raise(held, amountsOf(status.allocatedResources));
    return held;
  });
}

export const reportsResources = ({ status }: Pod): boolean =>
  [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].some(
    (each) => each.resources !== undefined,
  );

/** Resources that must be free on a node for this pod. */
export function podRequests(pod: Pod): Amounts {
  return total(pod, (container) => amountsOf(container.resources?.requests));
}

/**
 * Like `podRequests`, with assumed amounts for containers without requests. Used for scores, never to reject a node.
 */
export function assumedRequests(pod: Pod): Amounts {
  return total(pod, (container) => {
    const amounts = amountsOf(container.resources?.requests);
    if (!amounts.has(CPU)) amounts.set(CPU, ASSUMED_MILLICPU);
    if (!amounts.has(MEMORY)) amounts.set(MEMORY, ASSUMED_MEMORY);
    return amounts;
  });
}

function total(pod: Pod, requestsOf: (container: Container) => Amounts): Amounts {
  const sum: MutableAmounts = new Map();
  for (const container of pod.spec?.containers ?? []) add(sum, requestsOf(container));
  // Sidecars keep running, so another init container needs its resources in addition to those of earlier sidecars.
  const sidecars: MutableAmounts = new Map();
  const peak: MutableAmounts = new Map();
  for (const container of pod.spec?.initContainers ?? []) {
    const own = requestsOf(container);
    if (container.restartPolicy === 'Always') {
      add(sum, own);
      add(sidecars, own);
      raise(peak, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, own);
      raise(peak, together);
    }
  }
  raise(sum, peak);
  for (const [name, amount] of podLevelRequests(pod)) sum.set(name, amount);
  add(sum, amountsOf(pod.spec?.overhead));
  return sum;
}

/** Pod-level requests, which replace the sum of the containers' requests. */
function podLevelRequests(pod: Pod): Amounts {
  const spec = (pod.spec ?? {}) as { readonly resources?: { readonly requests?: ResourceList } };
  return amountsOf(spec.resources?.requests);
}
