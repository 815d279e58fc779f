/**
 * Keeps IPAddress objects consistent with services: recreates a deleted IPAddress that a service uses, deletes an
 * IPAddress without a service, and ensures that the ServiceCIDR `kubernetes` exists. Source:
 * k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller, pkg/controlplane/controller/defaultservicecidr.
 */

import type { Event, Service } from '../../api/generated/core/v1.ts';
import { type IpAddress, isAllocated } from '../../api/kinds/network/ipaddresses/index.ts';
import { canonicalAddress, ipFamilyOf } from '../../base/addresses/addresses.ts';
import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { LoopContext, ServerContext, WriteContext } from '../rest/context.ts';
import { ignoreNotFound, Work } from '../rest/name-queue.ts';
import { followKind } from '../rest/watches/follow.ts';
import { createObject } from '../rest/writes/create.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import { ownRequest } from './index.ts';
import { ensureServiceRange, RANGE_NAME } from './service-range.ts';

type ServiceAddressesContext = WriteContext & LoopContext & Pick<ServerContext, 'services' | 'store'>;

const GROUP = 'networking.k8s.io';
const SWEEP_MS = 3 * 60_000;
/** Grace period for addresses without a service: other API servers may write the address before the service. */
const LEAK_GRACE_MS = 60_000;
const REPORTER = 'ipallocator-repair-controller';
/** Work queue key for the check of the ranges. It cannot clash with keys of addresses, which contain slashes. */
const RANGES = 'ranges';

export class ServiceAddressRepair {
  readonly #context: ServiceAddressesContext;
  readonly #work: Work;
  #started = false;

  constructor(context: ServiceAddressesContext) {
    this.#context = context;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 2,
      firstRetryMs: 250,
      lastRetryMs: 30_000,
      sync: (name) => (name === RANGES ? ensureServiceRange(context) : this.#reclaim(name)),
      failed: (name, error) =>
        context.log.v(2, 'cannot repair a service address; retrying', { name, error: messageOf(error) }),
    });
  }

  /** Checks all addresses periodically, and each deleted address immediately, until the server stops. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    followKind(
      this.#context,
      'ipaddresses',
      ({ events }) => {
        for (const { type, object } of events) if (type === 'DELETED') this.#deleted(object);
      },
      () => this.#sweep(),
    );
    followKind(
      this.#context,
      'servicecidrs',
      ({ events }) => {
        if (events.some(({ type, object }) => type === 'DELETED' && object.name === RANGE_NAME)) this.#work.add(RANGES);
      },
      () => {},
    );
    this.#again();
  }

  #again(): void {
    this.#context.clock.setTimer(SWEEP_MS, () => {
      if (this.#context.stopping.aborted) return;
      this.#sweep();
      this.#again();
    });
  }

  /**
   * Queues the check of a deleted address. Often the same commit deletes the service, so the check runs after the whole
   * commit has been applied.
   */
  #deleted(object: CachedObject): void {
    const parent = object.parse<IpAddress>().spec?.parentRef;
    if (parent?.resource !== 'services') return;
    this.#work.add(`${parent.namespace ?? ''}/${parent.name ?? ''}/${object.name}`);
  }

  #sweep(): void {
    const { services, cache, clock, log } = this.#context;
    for (const { service, address } of services.unclaimed())
      this.#work.add(`${service.namespace}/${service.name}/${address}`);
    for (const object of cache.kind('ipaddresses')) {
      const each = object.parse<IpAddress>();
      if (!isAllocated(each)) continue;
      const madeMs = Date.parse(each.metadata?.creationTimestamp ?? '');
      if (clock.nowMs() - madeMs < LEAK_GRACE_MS || this.#isUsed(each, object.name)) continue;
      void this.#remove(object).catch((error: unknown) =>
        log.v(2, 'cannot release an orphaned service address; retrying', {
          name: object.name,
          error: messageOf(error),
        }),
      );
    }
  }

  #isUsed({ spec }: IpAddress, address: string): boolean {
    const { group = '', resource, namespace = '', name = '' } = spec?.parentRef ?? {};
    if (group !== '' || resource !== 'services') return false;
    const service = this.#context.cache.kind('services/specs').get(namespace, name);
    return service?.shared<Service>().spec?.clusterIPs?.some((each) => canonicalAddress(each) === address) === true;
  }

  async #remove(object: CachedObject): Promise<void> {
    this.#context.log.info('orphaned service address released', { name: object.name });
    await ignoreNotFound(
      deleteObject(this.#context, ownRequest(this.#context, 'ipaddresses', GROUP, '', object.name), {
        gracePeriodSeconds: undefined,
        propagation: 'Background',
        uid: undefined,
        resourceVersion: String(object.revision),
        dryRun: false,
      }).then(() => {}),
    );
  }

  /** Recreates the address of a service, on the condition that the service has not changed since it was read. */
  async #reclaim(name: string): Promise<void> {
    const [namespace = '', serviceName = '', address = ''] = name.split('/');
    const { cache, services, store } = this.#context;
    const cached = cache.kind('services/specs').get(namespace, serviceName);
    if (cached === undefined || cache.kind('ipaddresses').get('', address) !== undefined) return;
    const service = cached.shared<Service>();
    const effects = services.reclaim(service, address);
    if (effects === undefined) return;
    const guard = {
      key: `/registry/services/specs/${namespace}/${serviceName}`,
      modRevision: storeRevision(cached.revision),
    };
    const result = await store.commit({ guards: [guard, ...effects.guards], puts: effects.puts });
    if (!result.committed) throw new Error(`service ${namespace}/${serviceName} or its address changed meanwhile`);
    await this.#recordEvent(service, `Cluster IP [IPv${ipFamilyOf(address)}]: ${address} is not allocated; repairing`);
  }

  async #recordEvent(service: Readonly<Service>, message: string): Promise<void> {
    const { name = '', namespace = '', uid = '', resourceVersion = '' } = service.metadata ?? {};
    const at = timestamp(this.#context.clock.nowMs());
    const event: Event = {
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Service', name, namespace, uid, resourceVersion },
      type: 'Warning',
      reason: 'ClusterIPNotAllocated',
      action: 'ClusterIPAllocation',
      message,
      source: { component: REPORTER },
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
    await createObject(this.#context, ownRequest(this.#context, 'events', '', namespace, ''), event).catch(
      (error: unknown) => this.#context.log.v(2, 'cannot write an event', { message, error: messageOf(error) }),
    );
  }
}
