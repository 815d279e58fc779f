/** Executes steps of a machine's plan that concern its Node and pods. */
import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { ControllerHandle } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { nodePatch } from '../core/node-link.ts';
import type { BareMetalHost, Machine } from '../kinds/machine-types.ts';

export interface NodeSteps {
  /** Writes the labels, taints and annotations that the Node must have according to its machine. */
  link(node: Node, machine: Machine, host: BareMetalHost | undefined): Promise<void>;
  cordon(node: Node): Promise<void>;
  evict(pods: readonly Pod[]): Promise<void>;
  remove(node: Node): Promise<void>;
}

export function createNodeSteps(handle: ControllerHandle): NodeSteps {
  const nodes = handle.writer(resources.nodes);
  const pods = handle.writer(resources.pods);

  const link = async (node: Node, machine: Machine, host: BareMetalHost | undefined): Promise<void> => {
    const patch = nodePatch(node, machine, host);
    if (patch !== undefined)
      await ignoreNotFound(() => nodes.patch(node.metadata?.name ?? '', undefined, 'merge', patch));
  };

  const evict = async (all: readonly Pod[]): Promise<void> => {
    for (const { metadata } of all) {
      const { name = '', namespace, deletionTimestamp } = metadata ?? {};
      if (deletionTimestamp !== undefined) continue;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      try {
        await pods.createSubresource(name, namespace, 'eviction', eviction);
      } catch (error) {
        // An eviction that a PodDisruptionBudget rejects now (429) is repeated by a later step.
        if (!isApiError(error, 'NotFound') && !isApiError(error, 'TooManyRequests'))
          handle.log.warn('pod not evicted', { pod: `${namespace}/${name}`, error: messageOf(error) });
      }
    }
  };

  return {
    link,
    evict,
    cordon: ({ metadata }) =>
      ignoreNotFound(() => nodes.patch(metadata?.name ?? '', undefined, 'merge', { spec: { unschedulable: true } })),
    remove: ({ metadata }) => {
      const { name = '', uid } = metadata ?? {};
      return ignoreNotFound(() => nodes.delete(name, undefined, uid === undefined ? {} : { preconditions: { uid } }));
    },
  };
}
