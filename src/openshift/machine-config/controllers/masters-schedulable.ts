/**
 * Sets the labels and taints of masters according to the Scheduler object `cluster`. The plan is made in
 * openshift/machine-config/core/pools/masters.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../../controllers/framework/framework.ts';
import { planMaster } from '../core/pools/masters.ts';
import { nameOf } from '../core/pools/pools.ts';

const NAME = 'cluster';

export const mastersSchedulableController: ControllerSpec = {
  name: 'masters-schedulable',
  eventSource: 'machineconfigcontroller-nodecontroller',
  reads: [resources.nodes, resources.schedulers],
  writes: [resources.nodes],
  prepare: (handle) => {
    const nodes = handle.informer(resources.nodes);
    const schedulers = handle.informer(resources.schedulers);
    const client = handle.writer(resources.nodes);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const wanted = schedulers.get(NAME)?.spec?.mastersSchedulable;
        const known = nodes.get(name);
        // If the Scheduler object does not set the field, masters are left unchanged.
        if (wanted === undefined || known === undefined || planMaster(known, wanted) === undefined) return;
        // Read the Node from the server, because other controllers also write its list of taints.
        const node = await client.get(name);
        const patch = planMaster(node, wanted);
        if (patch === undefined) return;
        const { resourceVersion } = node.metadata ?? {};
        const metadata = { ...patch.metadata, resourceVersion };
        await client.patch(name, undefined, 'merge', { ...patch, metadata });
        handle.log.info('scheduling of pods on a master changed', { node: name, schedulable: wanted });
      }, 1);
      const wake = (node: Node): void => queue.add(nameOf(node));
      const wakeAll = (): void => nodes.list().forEach(wake);
      scope.onChange(schedulers, { added: wakeAll, updated: wakeAll });
      scope.onChange(nodes, { added: wake, updated: wake });
    };
  },
};
