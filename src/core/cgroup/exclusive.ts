/** Which containers get CPUs for themselves. Source: pkg/kubelet/cm/cpumanager/policy_static.go. */
import type { Container, Pod } from 'kubernetes-types/core/v1';
import { amountOf, qosClassOf } from './resources.ts';

/** How many; 0: it runs on the shared ones. Only a Guaranteed pod's container that requests whole CPUs has some. */
export function exclusiveCpus(pod: Pod, container: Container): number {
  const ownPodLevel = (pod.spec as { readonly resources?: object } | undefined)?.resources !== undefined;
  if (ownPodLevel || qosClassOf(pod) !== 'Guaranteed') return 0;
  const milli = amountOf(container, 'requests', 'cpu');
  return milli % 1000 === 0 ? milli / 1000 : 0;
}
