/** Exclusive CPUs of containers. Source: pkg/kubelet/cm/cpumanager/policy_static.go. */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import { amountOf, qosClassOf } from './resources.ts';

/**
 * Number of exclusive CPUs; 0 if the container uses the shared ones. Only containers of Guaranteed pods that request
 * whole CPUs have any.
 */
export function exclusiveCpus(pod: Pod, container: Container): number {
  const ownPodLevel = (pod.spec as { readonly resources?: object } | undefined)?.resources !== undefined;
  if (ownPodLevel || qosClassOf(pod) !== 'Guaranteed') return 0;
  const milli = amountOf(container, 'requests', 'cpu');
  return milli % 1000 === 0 ? milli / 1000 : 0;
}
