/**
 * Sets ServiceCIDRs ready, and blocks deletion while services use their addresses. Plans in
 * controllers/network/service-cidr.
 */
import { isAllocated } from '../../../api/kinds/network/ipaddresses/index.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planServiceCidr } from './plan.ts';

export const serviceCidrsController: ControllerSpec = {
  name: 'service-cidr',
  reads: [resources.serviceCidrs, resources.ipAddresses],
  writes: [resources.serviceCidrs],
  prepare: (handle) => {
    const ranges = handle.informer(resources.serviceCidrs);
    const addresses = handle.informer(resources.ipAddresses);
    const client = handle.writer(resources.serviceCidrs);
    function* used(): Iterable<string> {
      for (const each of addresses.list()) if (isAllocated(each)) yield each.metadata?.name ?? '';
    }
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const range = ranges.get(name);
        if (range === undefined) return;
        const plan = planServiceCidr(range, ranges.list(), used(), {
          ...handle.plan(),
          graceMs: handle.options.serviceCidrGraceMs,
        });
        if (plan.action === 'wait') scope.after(plan.ms, () => queue.add(name));
        if (plan.action === 'wait' || plan.action === 'keep') return;
        await client
          .update(plan.object, plan.action === 'status' ? { subresource: 'status' } : {})
          .catch((error: unknown) => {
            if (!isApiError(error, 'NotFound')) throw error;
          });
      }, 1);
      // All ranges are queued, because whether a range may be deleted depends on the other ranges.
      const wakeAll = (): void => {
        for (const { metadata } of ranges.list()) queue.add(metadata?.name ?? '');
      };
      scope.onChange(ranges, { added: wakeAll, updated: wakeAll, deleted: wakeAll });
      scope.onChange(addresses, {
        deleted: () => {
          for (const { metadata } of ranges.list()) {
            if (metadata?.deletionTimestamp !== undefined) queue.add(metadata.name ?? '');
          }
        },
      });
    };
  },
};
