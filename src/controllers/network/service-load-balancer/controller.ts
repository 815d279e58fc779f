/** Assigns addresses to services of type LoadBalancer. */
import type { Node, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { type AddressRange, parseAddressPool } from '../../../base/addresses/address-pool.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
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
  const access: Access = {
    services: handle.informer(resources.services),
    nodes: handle.informer(resources.nodes),
    slices: handle.informer(resources.endpointSlices),
    client: handle.writer(resources.services),
    pool: parseAddressPool(handle.options.loadBalancerAddresses),
  };
  handle.addIndex(access.slices, BY_SERVICE, (slice) => [serviceKeyOf(slice)]);
  return (scope) => new ServiceLoadBalancer(handle, access, scope).start();
}

interface Access {
  readonly services: Informer<Service>;
  readonly nodes: Informer<Node>;
  readonly slices: Informer<EndpointSlice>;
  readonly client: ResourceClient<Service>;
  readonly pool: readonly AddressRange[];
}

class ServiceLoadBalancer extends ControllerTerm {
  readonly #access: Access;
  /** Reported problems by service. */
  readonly #reported = new Map<string, string>();

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 1);
    this.#access = access;
  }

  override start(): void {
    const { services, nodes, slices } = this.#access;
    const wake = (): void => this.queue.add(ALL);
    const wakeFor = (service: Service): void => {
      if (service.spec?.type === 'LoadBalancer') wake();
    };
    this.scope.onChange(services, { added: wakeFor, updated: wakeFor, deleted: wakeFor });
    this.scope.onChange(nodes, {
      added: wake,
      updated: (node, old) => {
        if (nodeFacts(node) !== nodeFacts(old)) wake();
      },
      deleted: wake,
    });
    const wakeForSlice = (slice: EndpointSlice): void => {
      const service = services.get(serviceKeyOf(slice));
      if (service?.spec?.externalTrafficPolicy === 'Local') wakeFor(service);
    };
    this.scope.onChange(slices, { added: wakeForSlice, updated: wakeForSlice, deleted: wakeForSlice });
  }

  protected override async sync(): Promise<void> {
    const { services, nodes, slices, pool } = this.#access;
    const { clusterCidr, serviceCidr } = this.handle.options;
    const balanced = services.list().filter(isBalanced);
    const plans = planLoadBalancers({
      services: balanced,
      nodes: nodes.list(),
      pool,
      clusterRanges: [clusterCidr, serviceCidr].flatMap((each) => each.split(',')),
      slices: (service) => slices.byIndex(BY_SERVICE, objectKey(service)),
    });
    for (const key of this.#reported.keys()) if (plans.get(key)?.problem === undefined) this.#reported.delete(key);
    for (const service of balanced) {
      const plan = plans.get(objectKey(service));
      if (plan === undefined) continue;
      await this.#apply(service, plan);
      if (plan.problem !== undefined) this.#report(service, plan.problem);
    }
  }

  async #apply(service: Service, { addresses, problem }: LoadBalancerPlan): Promise<void> {
    const { recorder } = this.handle;
    const current = currentAddresses(service);
    if (addresses === undefined || current.join() === addresses.join()) return;
    if (problem === undefined && current.length === 0)
      recorder.event(service, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer');
    await this.#writeStatus(service, addresses);
    if (problem !== undefined) return;
    if (current.length === 0) recorder.event(service, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer');
    else recorder.event(service, 'Normal', 'UpdatedLoadBalancer', 'Updated load balancer with new hosts');
  }

  async #writeStatus(service: Service, addresses: readonly string[]): Promise<void> {
    const { name = '', namespace, resourceVersion } = service.metadata ?? {};
    const status = { loadBalancer: { ingress: ingressOf(addresses) } };
    const patch = { metadata: { resourceVersion }, status };
    await ignoreNotFound(() => this.#access.client.patch(name, namespace, 'merge', patch, { subresource: 'status' }));
  }

  #report(service: Service, problem: string): void {
    const key = objectKey(service);
    if (this.#reported.get(key) === problem) return;
    this.#reported.set(key, problem);
    const message = `Error syncing load balancer: failed to ensure load balancer: ${problem}`;
    this.handle.recorder.event(service, 'Warning', 'SyncLoadBalancerFailed', message);
  }
}

const serviceKeyOf = ({ metadata }: EndpointSlice): string =>
  `${metadata?.namespace ?? ''}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`;

/** Node fields that the plan depends on. */
function nodeFacts({ metadata, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return JSON.stringify([metadata?.labels, metadata?.annotations, status?.addresses, ready]);
}
