/** Assigns addresses to services of type LoadBalancer. */
import type { Node, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { parseAddressPool } from '../../../base/addresses/address-pool.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { currentAddresses, ingressOf, isBalanced, type LoadBalancerPlan, planLoadBalancers } from './plan.ts';

export const serviceLbController: ControllerSpec = {
  name: 'service-lb',
  eventSource: 'service-controller',
  reads: [resources.services, resources.nodes, resources.endpointSlices],
  writes: [resources.services],
  prepare,
};

/**
 * The only key of the queue: all services are planned together, because the addresses of a service depend on those of
 * other services.
 */
const ALL = 'all';
const SERVICE_NAME = 'kubernetes.io/service-name';
/** Name of the index. It differs from those of other controllers, because informers are shared. */
const BY_SERVICE = 'load-balancer-service';

function prepare(handle: ControllerHandle): ControllerRun {
  const services = handle.informer(resources.services);
  const nodes = handle.informer(resources.nodes);
  const slices = handle.informer(resources.endpointSlices);
  handle.addIndex(slices, BY_SERVICE, ({ metadata }) => [
    `${metadata?.namespace ?? ''}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`,
  ]);
  const client = handle.writer(resources.services);
  const pool = parseAddressPool(handle.options.loadBalancerAddresses);

  const apply = async (service: Service, { addresses, problem }: LoadBalancerPlan): Promise<void> => {
    const current = currentAddresses(service);
    if (addresses === undefined || current.join() === addresses.join()) return;
    const { name = '', namespace, resourceVersion } = service.metadata ?? {};
    if (problem === undefined && current.length === 0)
      handle.recorder.event(service, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer');
    const ingress = ingressOf(addresses);
    await ignoreNotFound(() =>
      client.patch(
        name,
        namespace,
        'merge',
        { metadata: { resourceVersion }, status: { loadBalancer: { ingress } } },
        { subresource: 'status' },
      ),
    );
    if (problem !== undefined) return;
    const [reason, message] =
      current.length === 0
        ? ['EnsuredLoadBalancer', 'Ensured load balancer']
        : ['UpdatedLoadBalancer', 'Updated load balancer with new hosts'];
    handle.recorder.event(service, 'Normal', reason, message);
  };

  return (scope) => {
    /** Reported problems by service. */
    const reported = new Map<string, string>();
    const queue = scope.queue(async () => {
      const balanced = services.list().filter(isBalanced);
      const plans = planLoadBalancers({
        services: balanced,
        nodes: nodes.list(),
        pool,
        clusterRanges: [handle.options.clusterCidr, handle.options.serviceCidr].flatMap((each) => each.split(',')),
        slices: (service) => slices.byIndex(BY_SERVICE, objectKey(service)),
      });
      for (const key of reported.keys()) if (plans.get(key)?.problem === undefined) reported.delete(key);
      for (const service of balanced) {
        const key = objectKey(service);
        const plan = plans.get(key);
        if (plan === undefined) continue;
        await apply(service, plan);
        if (plan.problem === undefined || reported.get(key) === plan.problem) continue;
        reported.set(key, plan.problem);
        const message = `Error syncing load balancer: failed to ensure load balancer: ${plan.problem}`;
        handle.recorder.event(service, 'Warning', 'SyncLoadBalancerFailed', message);
      }
    }, 1);
    const wake = (): void => queue.add(ALL);
    const wakeFor = (service: Service): void => {
      if (service.spec?.type === 'LoadBalancer') wake();
    };
    scope.onChange(services, { added: wakeFor, updated: wakeFor, deleted: wakeFor });
    scope.onChange(nodes, {
      added: wake,
      updated: (node, old) => {
        if (nodeFacts(node) !== nodeFacts(old)) wake();
      },
      deleted: wake,
    });
    const wakeForSlice = (slice: EndpointSlice): void => {
      const { namespace = '', labels } = slice.metadata ?? {};
      const service = services.get(`${namespace}/${labels?.[SERVICE_NAME] ?? ''}`);
      if (service?.spec?.externalTrafficPolicy === 'Local') wakeFor(service);
    };
    scope.onChange(slices, { added: wakeForSlice, updated: wakeForSlice, deleted: wakeForSlice });
  };
}

/** Node fields that the plan depends on. */
function nodeFacts({ metadata, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return JSON.stringify([metadata?.labels, metadata?.annotations, status?.addresses, ready]);
}
