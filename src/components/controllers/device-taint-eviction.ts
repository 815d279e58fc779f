/** Deletes pods whose devices were tainted. Plan in core/reconcile/device-taint-eviction. */
import type { Pod } from 'kubernetes-types/core/v1';
import { objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { timestamp } from '../../core/reconcile/context.ts';
import { evictionTimeMs, noExecuteTaints, podsToEvict } from '../../core/reconcile/device-taint-eviction/plan.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';

export const deviceTaintEvictionController: ControllerSpec = {
  name: 'device-taint-eviction',
  eventSource: 'device-taint-eviction',
  reads: [resources.pods, resources.resourceClaims, resources.resourceSlices],
  writes: [resources.pods],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const pods = handle.informer(resources.pods);
  const claims = handle.informer(resources.resourceClaims);
  const slices = handle.informer(resources.resourceSlices);
  const client = handle.writer(resources.pods);

  const evict = async (pod: Pod): Promise<void> => {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    handle.recorder.event(pod, 'Normal', 'DeviceTaintManagerEviction', 'Marking for deletion');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByDeviceTaintManager',
      message: 'Device Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: timestamp(handle.plan().nowMs),
    };
    const patch = { metadata: { uid }, status: { conditions: [condition] } };
    await ignoreNotFound(async () => {
      await client.patch(name, namespace, 'strategic', patch, { subresource: 'status' });
      await client.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    });
  };

  return (scope) => {
    let taints = noExecuteTaints([]);
    const queue = scope.queue(async (key) => {
      const claim = claims.get(key);
      if (claim === undefined) return;
      const { nowMs } = handle.plan();
      const atMs = evictionTimeMs(claim, taints, nowMs);
      if (atMs === undefined) return;
      if (atMs > nowMs) {
        queue.addAfter(key, atMs - nowMs);
        return;
      }
      const namespace = claim.metadata?.namespace ?? '';
      for (const pod of podsToEvict(claim, (name) => pods.get(`${namespace}/${name}`))) await evict(pod);
    }, 2);
    const look = (): void => {
      const had = taints.size > 0;
      taints = noExecuteTaints(slices.list());
      if (had || taints.size > 0) for (const claim of claims.list()) queue.add(objectKey(claim));
    };
    scope.onChange(slices, { added: look, updated: look, deleted: look });
    scope.onChange(claims, {
      added: (claim) => queue.add(objectKey(claim)),
      updated: (claim) => queue.add(objectKey(claim)),
    });
  };
}
