/**
 * Resources of a pod and their kernel settings. Sources: k8s.io/component-helpers resource (pod requests with sidecars,
 * KEP-753), k8s.io/kubernetes pkg/apis/core/v1/helper/qos and pkg/kubelet/cm (helpers_linux.go) for the arithmetic.
 */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import { type QosClass, qosClassOf } from '../../../api/podspec/qos.ts';
import { quantityMilliValue, quantityValue, tryParseQuantity } from '../../../base/quantity.ts';

export { type QosClass, qosClassOf };

type Side = 'requests' | 'limits';

/**
 * Amount of a resource: thousandths of a CPU for `cpu`, the plain value otherwise; 0 if absent. A missing request
 * equals the limit, as in API defaulting.
 */
export function amountOf(container: Container, side: Side, resource: string): number {
  const resources = container.resources;
  const text = resources?.[side]?.[resource] ?? (side === 'requests' ? resources?.limits?.[resource] : undefined);
  const quantity = text === undefined ? undefined : tryParseQuantity(text);
  if (quantity === undefined) return 0;
  return resource === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity);
}

/**
 * The pod's effective amount: the sum of running containers and sidecars, or the peak during its initialization if that
 * is larger.
 */
export function podAmount(pod: Pod, side: Side, resource: string): number {
  const whole = podLevelAmount(pod, side, resource);
  return withOverhead(pod, side, resource, whole > 0 ? whole : containersAmount(pod, side, resource));
}

/** Pod-level amount (KEP-2837); 0 if not set. */
export function podLevelAmount(pod: Pod, side: Side, resource: string): number {
  const resources = pod.spec?.resources;
  return resources === undefined ? 0 : amountOf({ name: '', resources }, side, resource);
}

function containersAmount(pod: Pod, side: Side, resource: string): number {
  let running = 0;
  for (const container of pod.spec?.containers ?? []) running += amountOf(container, side, resource);
  let sidecars = 0;
  let initPeak = 0;
  for (const container of pod.spec?.initContainers ?? []) {
    const amount = amountOf(container, side, resource);
    if (container.restartPolicy === 'Always') {
      sidecars += amount;
      initPeak = Math.max(initPeak, sidecars);
    } else {
      initPeak = Math.max(initPeak, sidecars + amount);
    }
  }
  return Math.max(running + sidecars, initPeak);
}

function withOverhead(pod: Pod, side: Side, resource: string, peak: number): number {
  const overhead = pod.spec?.overhead?.[resource];
  const extra = overhead === undefined ? undefined : tryParseQuantity(overhead);
  if (extra === undefined || (side === 'limits' && peak === 0)) return peak;
  return peak + (resource === 'cpu' ? quantityMilliValue(extra) : quantityValue(extra));
}

export const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
export const CPU_PERIOD_US = 100_000;
const MIN_QUOTA_US = 1_000;

export function sharesOfMilli(milli: number): number {
  if (milli === 0) return MIN_SHARES;
  return Math.min(MAX_SHARES, Math.max(MIN_SHARES, Math.floor((milli * 1024) / 1000)));
}

/** CPU quota in microseconds per period; 0 for no limit. */
export function quotaOfMilli(milli: number, periodUs: number = CPU_PERIOD_US): number {
  if (milli === 0) return 0;
  return Math.max(MIN_QUOTA_US, Math.floor((milli * periodUs) / 1000));
}

/** Converts v1 shares to cgroup v2's cpu.weight (1 … 10000). Source: KEP-2254. */
export function weightOfShares(shares: number): number {
  if (shares === 0) return 0;
  return Math.floor(1 + ((shares - 2) * 9999) / 262142);
}

/**
 * Part of the pod-level memory request that one container gets beyond its own request: the difference between the
 * pod-level request and the sum of the containers' requests, divided equally. Source: KEP-2837.
 */
function shareOfPodLevel(pod: Pod): number {
  const whole = podLevelAmount(pod, 'requests', 'memory');
  const containers = pod.spec?.containers ?? [];
  const own = containersAmount(pod, 'requests', 'memory');
  return whole <= own ? 0 : Math.floor((whole - own) / Math.max(1, containers.length));
}

const GUARANTEED_OOM_SCORE = -997;
const SYSTEM_NODE_CRITICAL = 2_000_001_000;

/** Source: pkg/kubelet/qos GetContainerOOMScoreAdjust. `memoryCapacityBytes` is the node's capacity. */
export function oomScoreAdjOf(pod: Pod, container: Container, memoryCapacityBytes: number): number {
  if ((pod.spec?.priority ?? 0) >= SYSTEM_NODE_CRITICAL) return GUARANTEED_OOM_SCORE;
  const qos = qosClassOf(pod);
  if (qos === 'Guaranteed') return GUARANTEED_OOM_SCORE;
  if (qos === 'BestEffort') return 1000;
  const request = amountOf(container, 'requests', 'memory') + shareOfPodLevel(pod);
  const score = 1000 - Math.floor((1000 * request) / Math.max(1, memoryCapacityBytes));
  return Math.max(1000 + GUARANTEED_OOM_SCORE, Math.min(999, score));
}
