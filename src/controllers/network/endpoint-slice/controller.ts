/** Maintains the endpoint slices of services that have a selector. */
import type { Node, Pod, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { followBackends, podsBehind, unlessTerminating } from '../service-backends/controller.ts';
import { hasManagedBackends } from '../service-backends/plan.ts';
import { MANAGED_BY, MANAGER, planEndpointSlices, SERVICE_NAME, type SlicePlan } from './plan.ts';

/** Maximum wait for the watch to show this controller's writes before planning again. */
const CATCH_UP_MS = 5_000;

export const endpointSliceController: ControllerSpec = {
  name: 'endpointslice',
  reads: [resources.services, resources.pods, resources.nodes, resources.endpointSlices],
  writes: [resources.endpointSlices],
  prepare: prepareSlices,
};

function prepareSlices(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    services: handle.informer(resources.services),
    pods: handle.informer(resources.pods),
    nodes: handle.informer(resources.nodes),
    slices: handle.informer(resources.endpointSlices),
    client: handle.writer(resources.endpointSlices),
  };
  handle.addIndex(access.slices, 'service', (slice) => {
    const serviceKey = keyOfService(slice);
    return serviceKey === undefined ? [] : [serviceKey];
  });
  return (scope) => new EndpointSliceController(handle, access, scope).start();
}

interface Access {
  readonly services: Informer<Service>;
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly slices: Informer<EndpointSlice>;
  readonly client: ResourceClient<EndpointSlice>;
}

class EndpointSliceController extends ControllerTerm {
  readonly #access: Access;
  readonly #unseen: UnseenWrites;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
    this.#unseen = new UnseenWrites(handle.clock);
  }

  override start(): void {
    const { services, pods, slices } = this.#access;
    followBackends(this.scope, this.queue, services, pods);
    this.scope.onChange(slices, {
      added: this.#onWrite,
      updated: this.#onWrite,
      deleted: (slice) => {
        const serviceKey = keyOfService(slice);
        if (serviceKey === undefined) return;
        this.#unseen.forgetSlice(serviceKey, objectKey(slice));
        this.queue.add(serviceKey);
      },
    });
  }

  readonly #onWrite = (slice: EndpointSlice): void => {
    const serviceKey = keyOfService(slice);
    if (serviceKey === undefined) return;
    this.#unseen.observe(serviceKey, slice);
    this.queue.add(serviceKey);
  };

  protected override async sync(key: string): Promise<void> {
    const { services, pods, nodes, slices } = this.#access;
    const service = services.get(key);
    if (service === undefined) {
      this.#unseen.forgetService(key);
      // The garbage collector removes the slices by their owner references.
      return;
    }
    if (!hasManagedBackends(service) || service.metadata?.deletionTimestamp !== undefined) return;
    if (this.#unseen.isBehind(key)) {
      this.queue.addAfter(key, CATCH_UP_MS);
      return;
    }
    const plan = planEndpointSlices({
      service,
      pods: podsBehind(service, pods),
      existing: slices.byIndex('service', key),
      nodeOf: (name) => nodes.get(name),
    });
    await this.#carryOut(key, plan);
  }

  async #carryOut(serviceKey: string, plan: SlicePlan): Promise<void> {
    const { client } = this.#access;
    for (const slice of plan.create)
      await unlessTerminating(async () => this.#remember(serviceKey, await client.create(slice)));
    for (const slice of plan.update) this.#remember(serviceKey, await client.update(slice));
    for (const { metadata } of plan.delete)
      await ignoreNotFound(() => client.delete(metadata?.name ?? '', metadata?.namespace));
  }

  #remember(serviceKey: string, written: EndpointSlice): void {
    const copy = this.#access.slices.get(objectKey(written));
    if (copy === undefined || versionOf(copy) < versionOf(written)) this.#unseen.add(serviceKey, written);
  }
}

/**
 * Versions of written slices that were not observed yet. A plan based on an older copy would repeat the writes.
 */
class UnseenWrites {
  readonly #clock: Clock;
  /** Versions by service key and slice key. */
  readonly #versions = new Map<string, Map<string, bigint>>();
  readonly #writtenAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(serviceKey: string, written: EndpointSlice): void {
    let waiting = this.#versions.get(serviceKey);
    if (waiting === undefined) {
      waiting = new Map();
      this.#versions.set(serviceKey, waiting);
    }
    waiting.set(objectKey(written), versionOf(written));
    this.#writtenAt.set(serviceKey, this.#clock.monotonicMs());
  }

  observe(serviceKey: string, slice: EndpointSlice): void {
    const sliceKey = objectKey(slice);
    const version = this.#versions.get(serviceKey)?.get(sliceKey);
    if (version !== undefined && version <= versionOf(slice)) this.forgetSlice(serviceKey, sliceKey);
  }

  forgetSlice(serviceKey: string, sliceKey: string): void {
    const waiting = this.#versions.get(serviceKey);
    waiting?.delete(sliceKey);
    if (waiting?.size === 0) this.#versions.delete(serviceKey);
  }

  forgetService(serviceKey: string): void {
    this.#versions.delete(serviceKey);
    this.#writtenAt.delete(serviceKey);
  }

  /**
   * Whether the local copy still lacks this controller's writes. False after CATCH_UP_MS, because a write whose object
   * was deleted in the meantime is never observed.
   */
  isBehind(serviceKey: string): boolean {
    if (!this.#versions.has(serviceKey)) return false;
    if (this.#clock.monotonicMs() - (this.#writtenAt.get(serviceKey) ?? 0) < CATCH_UP_MS) return true;
    this.#versions.delete(serviceKey);
    return false;
  }
}

/** Service key of a slice that this controller manages. */
function keyOfService(slice: EndpointSlice): string | undefined {
  const labels = slice.metadata?.labels;
  const service = labels?.[SERVICE_NAME];
  return service !== undefined && labels?.[MANAGED_BY] === MANAGER
    ? `${slice.metadata?.namespace ?? ''}/${service}`
    : undefined;
}

function versionOf(slice: EndpointSlice): bigint {
  const version = slice.metadata?.resourceVersion ?? '0';
  return /^\d{1,20}$/.test(version) ? BigInt(version) : 0n;
}
