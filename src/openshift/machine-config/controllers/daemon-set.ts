/** Maintains the DaemonSet `machine-config-daemon` in the profile `okd` and deletes it in other profiles. */
import type { DaemonSet } from '../../../api/generated/apps/v1.ts';
import { resources } from '../../../api/resources.ts';
import { createUnlessPresent } from '../../../controllers/framework/create-unless-present.ts';
import type { ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { DAEMON, DAEMON_NAMESPACE, hasFields, machineConfigDaemonSet } from '../core/pools/daemon-set.ts';

export const machineConfigDaemonSetController: ControllerSpec = {
  name: 'machine-config-daemon-set',
  eventSource: 'machineconfigoperator',
  reads: [resources.daemonSets],
  writes: [resources.daemonSets],
  prepare: (handle) => {
    const known = handle.informer(resources.daemonSets);
    const client = handle.writer(resources.daemonSets);
    return (scope) => {
      const queue = scope.queue(async () => {
        const stored = known.get(`${DAEMON_NAMESPACE}/${DAEMON}`);
        if (!handle.options.daemonPods) {
          if (stored === undefined || stored.metadata?.deletionTimestamp !== undefined) return;
          await ignoreNotFound(() => client.delete(DAEMON, DAEMON_NAMESPACE));
          return;
        }
        if (stored === undefined) await createUnlessPresent(() => client.create(machineConfigDaemonSet));
        else if (!hasFields(stored.spec, machineConfigDaemonSet.spec))
          await client.patch(DAEMON, DAEMON_NAMESPACE, 'merge', { spec: machineConfigDaemonSet.spec });
      }, 1);
      const wake = ({ metadata }: DaemonSet): void => {
        if (metadata?.name === DAEMON && metadata.namespace === DAEMON_NAMESPACE) queue.add(DAEMON);
      };
      scope.onChange(known, { added: wake, updated: wake, deleted: wake });
      queue.add(DAEMON);
    };
  },
};
