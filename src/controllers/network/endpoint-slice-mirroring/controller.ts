/** Mirrors Endpoints of services without selector as slices. */
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { MANAGED_BY, SERVICE_NAME } from '../endpoint-slice/plan.ts';
import { unlessTerminating } from '../service-backends/controller.ts';
import { MIRRORING_MANAGER, planMirror } from './plan.ts';

export const endpointSliceMirroringController: ControllerSpec = {
  name: 'endpointslice-mirroring',
  eventSource: 'endpoint-slice-mirroring-controller',
  reads: [resources.services, resources.endpoints, resources.endpointSlices],
  writes: [resources.endpointSlices],
  prepare,
};

/** Maximum wait for the watch to show a created slice before planning again. */
const CATCH_UP_MS = 5_000;

function prepare(handle: ControllerHandle): ControllerRun {
  const services = handle.informer(resources.services);
  const endpoints = handle.informer(resources.endpoints);
  const slices = handle.informer(resources.endpointSlices);
  const client = handle.writer(resources.endpointSlices);
  handle.addIndex(slices, 'mirrored-service', (slice) => {
    const key = keyOf(slice);
    return key === undefined ? [] : [key];
  });
  return (scope) => {
    /** Slices that were created but not observed yet. A plan without them would create them again. */
    const unseen = new Map<string, number>();
    const queue = scope.queue(async (key) => {
      const existing = slices.byIndex('mirrored-service', key);
      const known = new Set(existing.map(objectKey));
      for (const [created, atMs] of unseen) {
        if (!created.startsWith(`${key} `)) continue;
        const isLate = handle.clock.monotonicMs() - atMs > CATCH_UP_MS;
        if (isLate || known.has(created.slice(key.length + 1))) unseen.delete(created);
        else return queue.addAfter(key, CATCH_UP_MS);
      }
      const plan = planMirror({ service: services.get(key), endpoints: endpoints.get(key), existing });
      for (const slice of plan.create) {
        await unlessTerminating(async () => {
          const created = await client.create(slice);
          unseen.set(`${key} ${objectKey(created)}`, handle.clock.monotonicMs());
        });
      }
      for (const slice of plan.update) await client.update(slice);
      for (const { metadata } of plan.delete) {
        await ignoreNotFound(() => client.delete(metadata?.name ?? '', metadata?.namespace));
      }
    }, 5);
    const wake = (object: Parameters<typeof objectKey>[0]): void => queue.add(objectKey(object));
    scope.onChange(services, { added: wake, updated: wake, deleted: wake });
    scope.onChange(endpoints, { added: wake, updated: wake, deleted: wake });
    const wakeService = (slice: EndpointSlice): void => {
      const key = keyOf(slice);
      if (key !== undefined) queue.add(key);
    };
    scope.onChange(slices, { added: wakeService, updated: wakeService, deleted: wakeService });
  };
}

/** Service key of a slice that this controller manages. */
function keyOf(slice: EndpointSlice): string | undefined {
  const labels = slice.metadata?.labels;
  const service = labels?.[SERVICE_NAME];
  return service !== undefined && labels?.[MANAGED_BY] === MIRRORING_MANAGER
    ? `${slice.metadata?.namespace ?? ''}/${service}`
    : undefined;
}
