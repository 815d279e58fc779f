/** Deletes pods whose devices were tainted. */

import { slicesWithRules } from '../../../api/devices/taint-rules.ts';
import type { DeviceTaintRule } from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { evictionTimeMs, noExecuteTaints, podsToEvict, ruleCondition } from './plan.ts';

export const deviceTaintEvictionController: ControllerSpec = {
  name: 'device-taint-eviction',
  eventSource: 'device-taint-eviction',
  reads: [resources.pods, resources.resourceClaims, resources.resourceSlices, resources.deviceTaintRules],
  writes: [resources.pods, resources.deviceTaintRules],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const pods = handle.informer(resources.pods);
  const claims = handle.informer(resources.resourceClaims);
  const slices = handle.informer(resources.resourceSlices);
  const rules = handle.informer(resources.deviceTaintRules, { optional: true });
  const client = handle.writer(resources.pods);
  const ruleClient = handle.writer(resources.deviceTaintRules);

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

  /** Pods that the taint of this rule evicts and no other taint does. */
  const pending = (rule: DeviceTaintRule): readonly Pod[] => {
    const plain = slices.list().map((slice) => ({
      ...slice,
      spec: { ...slice.spec, devices: (slice.spec?.devices ?? []).map((device) => ({ ...device, taints: [] })) },
    }));
    const taint = { ...rule.spec?.taint, effect: 'NoExecute' };
    const tainted = noExecuteTaints(slicesWithRules(plain, [{ ...rule, spec: { ...rule.spec, taint } }]));
    return claims.list().flatMap((claim) => {
      if (evictionTimeMs(claim, tainted, handle.plan().nowMs) === undefined) return [];
      const { namespace = '' } = claim.metadata ?? {};
      return podsToEvict(claim, (name) => pods.get(`${namespace}/${name}`));
    });
  };

  const report = async (name: string): Promise<void> => {
    const rule = rules.get(name);
    if (rule?.spec?.taint === undefined) return;
    const status = ruleCondition(rule, pending(rule), handle.plan().nowMs);
    if (status === undefined) return;
    await ignoreNotFound(async () => void (await ruleClient.update({ ...rule, status }, { subresource: 'status' })));
  };

  return (scope) => {
    const reports = scope.queue(report, 1);
    const reportAll = (): void => {
      for (const rule of rules.list()) reports.add(objectKey(rule));
    };
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
      await attemptAll(
        podsToEvict(claim, (name) => pods.get(`${namespace}/${name}`)),
        evict,
      );
    }, 2);
    scope.onChange(pods, { deleted: reportAll });
    const look = (): void => {
      reportAll();
      const had = taints.size > 0;
      taints = noExecuteTaints(slicesWithRules(slices.list(), rules.list()));
      if (had || taints.size > 0) for (const claim of claims.list()) queue.add(objectKey(claim));
    };
    scope.onChange(slices, { added: look, updated: look, deleted: look });
    scope.onChange(rules, { added: look, updated: look, deleted: look });
    scope.onChange(claims, {
      added: (claim) => queue.add(objectKey(claim)),
      updated: (claim) => queue.add(objectKey(claim)),
      deleted: reportAll,
    });
  };
}
