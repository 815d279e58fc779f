/** Annotates nodes with the TTL of cached secrets and config maps, depending on the cluster size. */
import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planTtl, TTL_ANNOTATION, ttlSeconds } from './plan.ts';

const nameOf = (node: Node): string => node.metadata?.name ?? '';

export const ttlController: ControllerSpec = {
  name: 'ttl',
  reads: [resources.nodes],
  writes: [resources.nodes],
  prepare: (handle) => {
    const nodes = handle.informer(resources.nodes);
    const client = handle.writer(resources.nodes);
    return (scope) => {
      let seconds = 0;
      const queue = scope.queue(async (name) => {
        const node = nodes.get(name);
        const value = node === undefined ? undefined : planTtl(node, seconds);
        if (value === undefined) return;
        await client.patch(name, undefined, 'merge', { metadata: { annotations: { [TTL_ANNOTATION]: value } } });
      }, 1);
      const count = (): void => {
        const next = ttlSeconds(nodes.list().length, seconds);
        if (next === seconds) return;
        seconds = next;
        for (const node of nodes.list()) queue.add(nameOf(node));
      };
      scope.onChange(nodes, {
        added: (node) => {
          count();
          queue.add(nameOf(node));
        },
        updated: (node) => queue.add(nameOf(node)),
        deleted: count,
      });
    };
  },
};
