/** The quality-of-service class of a pod. Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/qos ComputePodQOS. */

import { compareQuantity, tryParseQuantity } from '../../base/quantity.ts';
import type { Pod } from '../generated/core/v1.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const QOS_RESOURCES = ['cpu', 'memory'] as const;

/**
 * QoS class from CPU and memory of the containers and init containers, or from pod-level resources if these are set
 * (KEP-2837).
 */
export function qosClassOf(pod: Pod): QosClass {
  const spec = pod.spec as (NonNullable<Pod['spec']> & { resources?: Resources }) | undefined;
  const owners: Resources[] = spec?.resources !== undefined ? [spec.resources] : containersResources(pod);
  let any = false;
  let guaranteed = true;
  for (const owner of owners) {
    for (const name of QOS_RESOURCES) {
      const request = positive(owner.requests?.[name]);
      const limit = positive(owner.limits?.[name]);
      if (request !== undefined || limit !== undefined) any = true;
      if (limit === undefined || (request !== undefined && compareQuantity(request, limit) !== 0)) guaranteed = false;
    }
  }
  if (!any) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

interface Resources {
  readonly limits?: Readonly<Record<string, string>>;
  readonly requests?: Readonly<Record<string, string>>;
}

function containersResources(pod: Pod): Resources[] {
  return [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].map((each) => each.resources ?? {});
}

function positive(text: string | undefined) {
  const quantity = tryParseQuantity(text);
  return quantity !== undefined && quantity.nanos > 0n ? quantity : undefined;
}
