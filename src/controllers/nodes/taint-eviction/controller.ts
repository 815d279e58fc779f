/** Deletes pods that do not tolerate their node's NoExecute taints after the toleration period. */

import type { Node, Pod, Taint } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { tolerates } from '../../../api/podspec/scheduling/tolerations.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { indexByNode, podsOnNode } from '../../framework/owner-indices.ts';
import { noExecuteTaints, planEviction } from './plan.ts';

export const taintEvictionController: ControllerSpec = {
  name: 'taint-eviction',
  reads: [resources.nodes, resources.pods],
  writes: [resources.pods],
  prepare,
};

const taintKey = (taint: Taint): string => `${taint.key}=${taint.value ?? ''}:${taint.effect}`;

function prepare(handle: ControllerHandle): ControllerRun {
  const { clock, recorder } = handle;
  const nodes = handle.informer(resources.nodes);
  const pods = handle.informer(resources.pods);
  const client = handle.writer(resources.pods);
  indexByNode(pods);

  return (scope) => {
    /**
     * Time at which this process first observed each taint, by node. The taint's own time is not used, because the wall
     * clock may change. A new leader restarts the periods, as upstream does.
     */
    const seenAt = new Map<string, Map<string, number>>();
    const queue = scope.queue(sync, 4);

    const follow = (node: Node): void => {
      const name = node.metadata?.name ?? '';
      const taints = noExecuteTaints(node);
      if (taints.length === 0) {
        seenAt.delete(name);
        return;
      }
      const known = seenAt.get(name);
      const now = clock.monotonicMs();
      seenAt.set(name, new Map(taints.map((taint) => [taintKey(taint), known?.get(taintKey(taint)) ?? now])));
      for (const pod of podsOnNode(pods, name)) queue.add(objectKey(pod));
    };
    scope.onChange(nodes, {
      added: follow,
      updated: (node, old) => {
        if (noExecuteTaints(node).length + noExecuteTaints(old).length > 0) follow(node);
      },
      deleted: (node) => seenAt.delete(node.metadata?.name ?? ''),
    });
    const wake = (pod: Pod): void => {
      if (seenAt.has(pod.spec?.nodeName ?? '')) queue.add(objectKey(pod));
    };
    scope.onChange(pods, { added: wake, updated: wake });

    async function sync(key: string): Promise<void> {
      const pod = pods.get(key);
      const nodeName = pod?.spec?.nodeName ?? '';
      const node = nodes.get(nodeName);
      if (pod === undefined || node === undefined) return;
      const plan = planEviction(pod, node, {
        tolerates,
        heldForMs: (taint) => {
          const now = clock.monotonicMs();
          return now - (seenAt.get(nodeName)?.get(taintKey(taint)) ?? now);
        },
      });
      if (plan.kind === 'stay') return;
      if (plan.inMs > 0) queue.addAfter(key, plan.inMs);
      else await evict(pod);
    }
  };

  async function evict(pod: Pod): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    recorder.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${objectKey(pod)}`);
    const condition = {
      type: 'DisruptionTarget',
      ...observedGeneration(pod),
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: timestamp(handle.plan().nowMs),
    };
    try {
      await client.patch(
        name,
        namespace,
        'strategic',
        { metadata: { uid }, status: { conditions: [condition] } },
        { subresource: 'status' },
      );
      await client.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}
