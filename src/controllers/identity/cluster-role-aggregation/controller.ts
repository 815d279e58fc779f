/** Writes the rules of aggregated cluster roles from the roles that their selectors match. */
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planAggregation } from './plan.ts';

export const clusterRoleAggregationController: ControllerSpec = {
  name: 'clusterrole-aggregation',
  reads: [resources.clusterRoles],
  writes: [resources.clusterRoles],
  prepare: (handle) => {
    const roles = handle.informer(resources.clusterRoles);
    const client = handle.writer(resources.clusterRoles);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const role = roles.get(name);
        const rules = role === undefined ? undefined : planAggregation(role, roles.list());
        if (role !== undefined && rules !== undefined) await client.update({ ...role, rules });
      }, 2);
      // Each change queues all aggregated roles, because any role may match any selector and there are few aggregated
      // roles.
      const wake = (): void => {
        for (const role of roles.list()) if (role.aggregationRule !== undefined) queue.add(role.metadata?.name ?? '');
      };
      scope.onChange(roles, { added: wake, updated: wake, deleted: wake });
    };
  },
};
