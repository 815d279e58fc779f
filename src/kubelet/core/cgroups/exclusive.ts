/** Exclusive CPUs of containers. Source: pkg/kubelet/cm/cpumanager/policy_static.go. */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import { amountOf, qosClassOf } from './resources.ts';

/**
 * Number of exclusive CPUs of a container; 0 if the container uses the shared CPUs. Only a container of a Guaranteed
 * pod that requests a whole number of CPUs gets exclusive CPUs.
 */
export function exclusiveCpus(pod: Pod, container: Container): number {
  const ownPodLevel = (pod.spec as { readonly resources?: object } | undefined)?.resources !== undefined;
  if (ownPodLevel || qosClassOf(pod) !== 'Guaranteed') return 0;
  const milli = amountOf(container, 'requests', 'cpu');
  return milli % 1000 === 0 ? milli / 1000 : 0;
}
