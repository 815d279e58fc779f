/** Pods behind a service, for the endpoints and endpoint slice controllers. */
import type { Pod, Service } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { matchesLabels, storedSelectorOfLabels } from '../../../base/selector.ts';
import type { Informer, WorkQueue } from '../../../client/types.ts';
import { candidateWaker } from '../../framework/candidate-waker.ts';
import type { RunScope } from '../../framework/framework.ts';
import { isNamespaceTerminating } from '../../framework/pod-control.ts';
import { backendFacts, hasManagedBackends } from './plan.ts';

/** Queues the services that select the pod before or after a change. */
export function followBackends(
  scope: RunScope,
  queue: WorkQueue,
  services: Informer<Service>,
  pods: Informer<Pod>,
): void {
  const wakeServices = candidateWaker(scope, services, (service) => queue.add(objectKey(service)));
  const wake = (pod: Pod): void =>
    wakeServices(pod.metadata?.namespace, (service) => hasManagedBackends(service) && isSelected(service, pod));
  scope.onChange(services, {
    added: (service) => queue.add(objectKey(service)),
    updated: (service) => queue.add(objectKey(service)),
    deleted: (service) => queue.add(objectKey(service)),
  });
  scope.onChange(pods, {
    added: wake,
    updated: (pod, old) => {
      if (backendFacts(pod) === backendFacts(old)) return;
      wake(old);
      wake(pod);
    },
    deleted: wake,
  });
}

function isSelected(service: Service, pod: Pod): boolean {
  return matchesLabels(storedSelectorOfLabels(service.spec?.selector), pod.metadata?.labels);
}

export function podsBehind(service: Service, pods: Informer<Pod>): Pod[] {
  return pods.list(service.metadata?.namespace).filter((pod) => isSelected(service, pod));
}

export async function unlessTerminating(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isNamespaceTerminating(error)) throw error;
  }
}
