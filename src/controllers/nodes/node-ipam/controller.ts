/** Allocates the pod CIDR of every node. */
import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { toNodeName } from '../../../base/brand.ts';
import { messageOf } from '../../../base/errors.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { CidrPool, needsCidr } from './plan.ts';

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
      const { clusterCidr, serviceCidr, nodeCidrMaskSize, nodeCidrMaskSizeIpv6 } = handle.options;
      const pools = clusterCidr
        .split(',')
        .map((cidr) => new CidrPool(cidr, cidr.includes(':') ? nodeCidrMaskSizeIpv6 : nodeCidrMaskSize));
      const occupy = (node: Node): void => {
        for (const cidr of node.spec?.podCIDRs ?? [node.spec?.podCIDR ?? '']) {
          if (cidr === '') continue;
          try {
            for (const pool of pools) pool.occupy(cidr, toNodeName(node.metadata?.name));
          } catch (error) {
            log.warn('node has an invalid pod CIDR', { node: nameOf(node), error: messageOf(error) });
          }
        }
      };
      for (const pool of pools) for (const cidr of serviceCidr.split(',')) pool.occupy(cidr, toNodeName(''));
      // All used ranges are marked before the first range is allocated.
      for (const node of nodes.list()) occupy(node);
      const queue = scope.queue(async (key) => {
        const name = toNodeName(key);
        const node = nodes.get(name);
        if (node === undefined || !needsCidr(node)) return;
        const cidrs = pools.map((pool) => pool.allocate(name));
        const podCIDRs = cidrs.filter((cidr) => cidr !== undefined);
        if (podCIDRs.length < pools.length) {
          for (const pool of pools) pool.release(name);
          const full = pools[cidrs.indexOf(undefined)]?.clusterCidr;
          handle.recorder.event(node, 'Normal', 'CIDRNotAvailable', `Node ${name} status is now: CIDRNotAvailable`);
          throw new Error(`no free pod network left in ${full}`);
        }
        try {
          await client.patch(name, undefined, 'strategic', {
            metadata: { uid: node.metadata?.uid },
            spec: { podCIDR: podCIDRs[0], podCIDRs },
          });
        } catch (error) {
          for (const pool of pools) pool.release(name);
          throw error;
        }
        log.info('pod CIDR allocated', { node: name, cidrs: podCIDRs.join() });
      }, 1);
      const wake = (node: Node): void => {
        if (needsCidr(node)) queue.add(nameOf(node));
        else occupy(node);
      };
      scope.onChange(nodes, {
        added: wake,
        updated: wake,
        deleted: (node) => {
          for (const pool of pools) pool.release(toNodeName(node.metadata?.name));
        },
      });
    };
  },
};
