/** Quota usage of pods. Sources: pkg/quota/v1/evaluator/core/pods.go, k8s.io/component-helpers/resource. */

import { addQuantity, type Quantity, quantityOf } from '../../base/quantity.ts';
import { mayBeDevices } from '../devices/extended-resources.ts';
import type { Container, ContainerStatus, Pod, ResourceRequirements } from '../generated/core/v1.ts';
import { type Amounts, addTo, amountsOf, raiseTo } from './amounts.ts';

type Kind = 'requests' | 'limits';

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'] as const;
const COUNTED = new Set([
  'count/pods',
  'pods',
  ...COMPUTE,
  ...COMPUTE.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
]);
/** Resources that every container must set if a quota limits them. */
const REQUIRED = new Set(['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']);
const REQUESTS = 'requests.';
const HUGE_PAGES = 'hugepages-';

export function podCounts(name: string): boolean {
  if (COUNTED.has(name) || name.startsWith(HUGE_PAGES) || name.startsWith(`${REQUESTS}${HUGE_PAGES}`)) return true;
  return name.startsWith(REQUESTS) && mayBeDevices(name.slice(REQUESTS.length));
}

/** Usage of a pod or container, under every resource name that a quota can have for it. */
function charged(requests: Amounts, limits: Amounts): Map<string, Quantity> {
  const usage = new Map<string, Quantity>([['pods', quantityOf(1)]]);
  for (const name of COMPUTE) {
    const [request, limit] = [requests.get(name), limits.get(name)];
    if (request !== undefined) usage.set(name, request).set(`${REQUESTS}${name}`, request);
    if (limit !== undefined) usage.set(`limits.${name}`, limit);
  }
  for (const [name, quantity] of requests) {
    if (name.startsWith(HUGE_PAGES)) usage.set(name, quantity).set(`${REQUESTS}${name}`, quantity);
    else if (mayBeDevices(name) && !name.startsWith(REQUESTS)) usage.set(`${REQUESTS}${name}`, quantity);
  }
  return usage;
}

/**
 * Resources that containers do not set although a quota requires them, in upstream's wording. Undefined if nothing is
 * missing.
 */
export function podConstraint(required: readonly string[], pod: Pod): string | undefined {
  // In a pod with pod-level resources, the containers need not set resources.
  if (podLevel(pod, 'requests').size > 0 || podLevel(pod, 'limits').size > 0) return undefined;
  const missing = new Map<string, Set<string>>();
  for (const { name, resources } of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])]) {
    const declared = charged(amountsOf(resources?.requests), amountsOf(resources?.limits));
    for (const resource of required) {
      if (!REQUIRED.has(resource) || declared.has(resource)) continue;
      missing.set(resource, (missing.get(resource) ?? new Set()).add(name));
    }
  }
  if (missing.size === 0) return undefined;
  const each = [...missing.keys()]
    .sort()
    .map((name) => `${name} for: ${[...(missing.get(name) ?? [])].sort().join(',')}`);
  return `must specify ${each.join('; ')}`;
}

/**
 * Whether quotas charge the pod and its resources. Terminated pods and pods past their grace period count only for
 * `count/pods`.
 */
export function isCharged(pod: Pod, nowMs: number): boolean {
  const phase = pod.status?.phase;
  if (phase === 'Failed' || phase === 'Succeeded') return false;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata ?? {};
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return true;
  return nowMs <= Date.parse(String(deletionTimestamp)) + Number(deletionGracePeriodSeconds) * 1000;
}

export function podUsage(pod: Pod, nowMs: number): Amounts {
  const usage = new Map<string, Quantity>([['count/pods', quantityOf(1)]]);
  if (isCharged(pod, nowMs)) addTo(usage, charged(podTotal(pod, 'requests'), podTotal(pod, 'limits')));
  return usage;
}

/**
 * Maximum use of a pod. Sidecars keep running. Other init containers run beside the sidecars that were started before.
 */
function podTotal(pod: Pod, kind: Kind): Map<string, Quantity> {
  const total = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const peak = new Map<string, Quantity>();
  for (const container of pod.spec?.containers ?? []) {
    addTo(total, containerAmounts(pod, container, pod.status?.containerStatuses, kind));
  }
  for (const container of pod.spec?.initContainers ?? []) {
    if (container.restartPolicy === 'Always') {
      const own = containerAmounts(pod, container, pod.status?.initContainerStatuses, kind);
      addTo(total, own);
      addTo(sidecars, own);
      raiseTo(peak, sidecars);
    } else {
      const together = new Map(sidecars);
      addTo(together, amountsOf(container.resources?.[kind]));
      raiseTo(peak, together);
    }
  }
  raiseTo(total, peak);
  for (const [name, quantity] of podLevel(pod, kind)) total.set(name, quantity);
  for (const [name, quantity] of amountsOf(pod.spec?.overhead)) {
    const present = total.get(name);
    if (present !== undefined) total.set(name, addQuantity(present, quantity));
    else if (kind === 'requests') total.set(name, quantity);
  }
  return total;
}

interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

/** Amounts of a container. During a resize, the larger of the allocated and requested amounts are used. */
function containerAmounts(
  pod: Pod,
  container: Container,
  statuses: readonly ContainerStatus[] | undefined,
  kind: Kind,
): Map<string, Quantity> {
  const amounts = amountsOf((container.resources as Resources | undefined)?.[kind]);
  const status = statuses?.find(({ name }) => name === container.name) as
    | { readonly resources?: ResourceRequirements; readonly allocatedResources?: Readonly<Record<string, string>> }
    | undefined;
  if (status?.resources === undefined) return amounts;
  if (isResizeInfeasible(pod)) amounts.clear();
  raiseTo(amounts, amountsOf((status.resources as Resources)[kind]));
  if (kind === 'requests') raiseTo(amounts, amountsOf(status.allocatedResources));
  return amounts;
}

const isResizeInfeasible = (pod: Pod): boolean =>
  (pod.status?.conditions ?? []).some(
    ({ type, reason }) => (type as string) === 'PodResizePending' && reason === 'Infeasible',
  );

/** Pod-level resources. They support only CPU, memory and huge pages; other names are ignored. */
function podLevel(pod: Pod, kind: Kind): Map<string, Quantity> {
  const { resources } = (pod.spec ?? {}) as { readonly resources?: Resources };
  const amounts = amountsOf(resources?.[kind]);
  for (const name of amounts.keys()) {
    if (name !== 'cpu' && name !== 'memory' && !name.startsWith(HUGE_PAGES)) amounts.delete(name);
  }
  return amounts;
}
