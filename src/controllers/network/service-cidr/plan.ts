/**
 * ServiceCIDRs. A range is ready once its finalizer is set. It is deleted only when every service address in it is also
 * in another range. Source: KEP-1880, k8s.io/kubernetes/pkg/controller/servicecidrs.
 */

import type { ServiceCidr } from '../../../api/kinds/network/servicecidrs/index.ts';
import { isInNetwork } from '../../../base/addresses/addresses.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { PlanContext } from '../../framework/core/plan-context.ts';

const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
const READY = 'Ready';

export type ServiceCidrPlan =
  | { readonly action: 'keep' }
  /** `update` writes the object with an added or removed finalizer; `status` writes its changed conditions. */
  | { readonly action: 'update' | 'status'; readonly object: ServiceCidr }
  | { readonly action: 'wait'; readonly ms: number };

/**
 * @param all Every range, including this one.
 * @param addresses Addresses that API servers have allocated to services.
 * @param graceMs Minimum time before a deleted range is removed.
 */
export function planServiceCidr(
  range: ServiceCidr,
  all: readonly ServiceCidr[],
  addresses: Iterable<string>,
  { nowMs, graceMs }: Pick<PlanContext, 'nowMs'> & { readonly graceMs: number },
): ServiceCidrPlan {
  const { metadata } = range;
  const finalizers = metadata?.finalizers ?? [];
  const isHeld = finalizers.includes(FINALIZER);
  if (metadata?.deletionTimestamp === undefined) {
    if (!isHeld) return { action: 'update', object: withFinalizers(range, [...finalizers, FINALIZER]) };
    return withReady(range, nowMs, 'True', '', 'Kubernetes Service CIDR is ready');
  }
  if (!isHeld) return { action: 'keep' };
  if (hasOrphans(range, all, addresses)) {
    const message =
      'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR';
    return withReady(range, nowMs, 'False', 'Terminating', message);
  }
  const ms = Date.parse(metadata.deletionTimestamp) + graceMs - nowMs;
  if (ms > 0) return { action: 'wait', ms };
  return {
    action: 'update',
    object: withFinalizers(
      range,
      finalizers.filter((each) => each !== FINALIZER),
    ),
  };
}

/** Whether the deletion would leave an address without a range. Other ranges that are being deleted do not count. */
function hasOrphans(range: ServiceCidr, all: readonly ServiceCidr[], addresses: Iterable<string>): boolean {
  const others = all.filter(
    ({ metadata }) => metadata?.deletionTimestamp === undefined && metadata?.name !== range.metadata?.name,
  );
  for (const address of addresses) {
    if (holds(range, address) && !others.some((other) => holds(other, address))) return true;
  }
  return false;
}

const holds = ({ spec }: ServiceCidr, address: string): boolean =>
  (spec?.cidrs ?? []).some((cidr) => isInNetwork(address, cidr));

const withFinalizers = (range: ServiceCidr, finalizers: string[]): ServiceCidr => ({
  ...range,
  metadata: { ...range.metadata, finalizers },
});

function withReady(
  range: ServiceCidr,
  nowMs: number,
  status: 'True' | 'False',
  reason: string,
  message: string,
): ServiceCidrPlan {
  const conditions = range.status?.conditions ?? [];
  if (conditions.some((each) => each.type === READY && each.status === status)) return { action: 'keep' };
  const lastTransitionTime = timestamp(nowMs);
  const ready = { type: READY, status, reason, message, lastTransitionTime };
  return {
    action: 'status',
    object: { ...range, status: { conditions: [...conditions.filter(({ type }) => type !== READY), ready] } },
  };
}
