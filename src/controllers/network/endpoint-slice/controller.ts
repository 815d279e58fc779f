/** Maintains the endpoint slices of services that have a selector. */
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { followBackends, podsBehind, unlessTerminating } from '../service-backends/controller.ts';
import { hasManagedBackends } from '../service-backends/plan.ts';
import { MANAGED_BY, MANAGER, planEndpointSlices, SERVICE_NAME } from './plan.ts';

/** Maximum wait for the watch to show this controller's writes before planning again. */
const CATCH_UP_MS = 5_000;

export const endpointSliceController: ControllerSpec = {
  name: 'endpointslice',
  reads: [resources.services, resources.pods, resources.nodes, resources.endpointSlices],
  writes: [resources.endpointSlices],
  prepare: prepareSlices,
};

function prepareSlices(handle: ControllerHandle): ControllerRun {
  const services = handle.informer(resources.services);
  const pods = handle.informer(resources.pods);
  const nodes = handle.informer(resources.nodes);
  const slices = handle.informer(resources.endpointSlices);
  const client = handle.writer(resources.endpointSlices);
  handle.addIndex(slices, 'service', (slice) => {
    const serviceKey = keyOfService(slice);
    return serviceKey === undefined ? [] : [serviceKey];
  });

  return (scope) => {
    /**
     * Versions of written slices that were not observed yet, by service key and slice key. A plan based on an older
     * copy would repeat the writes.
     */
    const unseen = new Map<string, Map<string, bigint>>();
    const writtenAt = new Map<string, number>();
    const queue = scope.queue(sync, 5);
    followBackends(scope, queue, services, pods);

    const seen = (slice: EndpointSlice): void => {
      const serviceKey = keyOfService(slice);
      if (serviceKey === undefined) return;
      const waiting = unseen.get(serviceKey);
      const sliceKey = objectKey(slice);
      const version = waiting?.get(sliceKey);
      if (waiting !== undefined && version !== undefined && version <= versionOf(slice)) {
        waiting.delete(sliceKey);
        if (waiting.size === 0) unseen.delete(serviceKey);
      }
      queue.add(serviceKey);
    };
    scope.onChange(slices, {
      added: seen,
      updated: seen,
      deleted: (slice) => {
        const serviceKey = keyOfService(slice);
        if (serviceKey === undefined) return;
        unseen.get(serviceKey)?.delete(objectKey(slice));
        if (unseen.get(serviceKey)?.size === 0) unseen.delete(serviceKey);
        queue.add(serviceKey);
      },
    });

    async function sync(key: string): Promise<void> {
      const service = services.get(key);
      if (service === undefined) {
        unseen.delete(key);
        writtenAt.delete(key);
        // The garbage collector removes the slices by their owner references.
        return;
      }
      if (!hasManagedBackends(service) || service.metadata?.deletionTimestamp !== undefined) return;
      if (isBehind(key)) {
        queue.addAfter(key, CATCH_UP_MS);
        return;
      }
      const plan = planEndpointSlices({
        service,
        pods: podsBehind(service, pods),
        existing: slices.byIndex('service', key),
        nodeOf: (name) => nodes.get(name),
      });
      for (const slice of plan.create) await unlessTerminating(async () => remember(key, await client.create(slice)));
      for (const slice of plan.update) remember(key, await client.update(slice));
      for (const slice of plan.delete) {
        try {
          await client.delete(slice.metadata?.name ?? '', slice.metadata?.namespace);
        } catch (error) {
          if (!isApiError(error, 'NotFound')) throw error;
        }
      }
    }

    /**
     * Whether the local copy still lacks this controller's writes. False after CATCH_UP_MS, because a write whose
     * object was deleted in the meantime is never observed.
     */
    function isBehind(serviceKey: string): boolean {
      if (!unseen.has(serviceKey)) return false;
      if (handle.clock.monotonicMs() - (writtenAt.get(serviceKey) ?? 0) < CATCH_UP_MS) return true;
      unseen.delete(serviceKey);
      return false;
    }

    function remember(serviceKey: string, written: EndpointSlice): void {
      const sliceKey = objectKey(written);
      const copy = slices.get(sliceKey);
      if (copy !== undefined && versionOf(copy) >= versionOf(written)) return;
      let waiting = unseen.get(serviceKey);
      if (waiting === undefined) {
        waiting = new Map();
        unseen.set(serviceKey, waiting);
      }
      waiting.set(sliceKey, versionOf(written));
      writtenAt.set(serviceKey, handle.clock.monotonicMs());
    }
  };
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
