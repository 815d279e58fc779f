/** Allocates the pod CIDR of every node. */
import type { Node } from 'kubernetes-types/core/v1';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { CidrPool, needsCidr } from '../../core/reconcile/node-ipam/plan.ts';
import type { ControllerSpec } from './framework.ts';

const nameOf = (node: Node): string => node.metadata?.name ?? '';

export const nodeIpamController: ControllerSpec = {
  name: 'nodeipam',
  eventSource: 'cidrAllocator',
  reads: [resources.nodes],
  writes: [resources.nodes],
  prepare: (handle) => {
    const nodes = handle.informer(resources.nodes);
    const client = handle.writer(resources.nodes);
    const { log } = handle;
    return (scope) => {
      if (!handle.options.allocateNodeCidrs) return;
      const pool = new CidrPool(handle.options.clusterCidr, handle.options.nodeCidrMaskSize);
      const occupy = (node: Node): void => {
        for (const cidr of node.spec?.podCIDRs ?? [node.spec?.podCIDR ?? '']) {
          if (cidr === '' || cidr.includes(':')) continue;
          try {
            pool.occupy(cidr, nameOf(node));
          } catch (error) {
            log.warn('a node has a pod network that cannot be read', { node: nameOf(node), error: messageOf(error) });
          }
        }
      };
      if (!handle.options.serviceCidr.includes(':')) pool.occupy(handle.options.serviceCidr, '');
      // Everything in use is marked before anything is given away.
      for (const node of nodes.list()) occupy(node);
      const queue = scope.queue(async (name) => {
        const node = nodes.get(name);
        if (node === undefined || !needsCidr(node)) return;
        const cidr = pool.allocate(name);
        if (cidr === undefined) {
          handle.recorder.event(node, 'Normal', 'CIDRNotAvailable', `Node ${name} status is now: CIDRNotAvailable`);
          throw new Error(`no free pod network left in ${handle.options.clusterCidr}`);
        }
        try {
          await client.patch(name, undefined, 'strategic', {
            metadata: { uid: node.metadata?.uid },
            spec: { podCIDR: cidr, podCIDRs: [cidr] },
          });
        } catch (error) {
          pool.release(name);
          throw error;
        }
        log.info('gave a node its pod network', { node: name, cidr });
      }, 1);
      const wake = (node: Node): void => {
        if (needsCidr(node)) queue.add(nameOf(node));
        else occupy(node);
      };
      scope.onChange(nodes, { added: wake, updated: wake, deleted: (node) => pool.release(nameOf(node)) });
    };
  },
};
