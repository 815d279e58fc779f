/** Deletes pods whose devices were tainted. */

import { slicesWithRules } from '../../../api/devices/taint-rules.ts';
import type { DeviceTaintRule, ResourceClaim, ResourceSlice } from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient, WorkQueue } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
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
  const access: Access = {
    pods: handle.informer(resources.pods),
    claims: handle.informer(resources.resourceClaims),
    slices: handle.informer(resources.resourceSlices),
    rules: handle.informer(resources.deviceTaintRules, { optional: true }),
    podClient: handle.writer(resources.pods),
    ruleClient: handle.writer(resources.deviceTaintRules),
  };
  return (scope) => new DeviceTaintEviction(handle, access, scope).start();
}

interface Access {
  readonly pods: Informer<Pod>;
  readonly claims: Informer<ResourceClaim>;
  readonly slices: Informer<ResourceSlice>;
  readonly rules: Informer<DeviceTaintRule>;
  readonly podClient: ResourceClient<Pod>;
  readonly ruleClient: ResourceClient<DeviceTaintRule>;
}

/** The keys of the queue are those of resource claims. A second queue reports the progress of the taint rules. */
class DeviceTaintEviction extends ControllerTerm {
  readonly #access: Access;
  readonly #reports: WorkQueue;
  #taints = noExecuteTaints([]);

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 2);
    this.#access = access;
    this.#reports = scope.queue((name) => this.#report(name), 1);
  }

  override start(): void {
    const { pods, claims, slices, rules } = this.#access;
    const reportAll = (): void => this.#reportAll();
    const onTaints = (): void => this.#onTaints();
    const wake = (claim: ResourceClaim): void => this.queue.add(objectKey(claim));
    this.scope.onChange(pods, { deleted: reportAll });
    this.scope.onChange(slices, { added: onTaints, updated: onTaints, deleted: onTaints });
    this.scope.onChange(rules, { added: onTaints, updated: onTaints, deleted: onTaints });
    this.scope.onChange(claims, { added: wake, updated: wake, deleted: reportAll });
  }

  #reportAll(): void {
    for (const rule of this.#access.rules.list()) this.#reports.add(objectKey(rule));
  }

  #onTaints(): void {
    const { claims, slices, rules } = this.#access;
    this.#reportAll();
    const had = this.#taints.size > 0;
    this.#taints = noExecuteTaints(slicesWithRules(slices.list(), rules.list()));
    if (had || this.#taints.size > 0) for (const claim of claims.list()) this.queue.add(objectKey(claim));
  }

  protected override async sync(key: string): Promise<void> {
    const claim = this.#access.claims.get(key);
    if (claim === undefined) return;
    const { nowMs } = this.handle.plan();
    const atMs = evictionTimeMs(claim, this.#taints, nowMs);
    if (atMs === undefined) return;
    if (atMs > nowMs) this.queue.addAfter(key, atMs - nowMs);
    else await attemptAll(this.#podsOf(claim), (pod) => this.#evict(pod));
  }

  /** Pods that are evicted if the devices of the claim are tainted. */
  #podsOf(claim: ResourceClaim): readonly Pod[] {
    const { namespace = '' } = claim.metadata ?? {};
    return podsToEvict(claim, (name) => this.#access.pods.get(`${namespace}/${name}`));
  }

  async #evict(pod: Pod): Promise<void> {
    const { podClient } = this.#access;
    const { name = '', namespace, uid } = pod.metadata ?? {};
    this.handle.recorder.event(pod, 'Normal', 'DeviceTaintManagerEviction', 'Marking for deletion');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByDeviceTaintManager',
      message: 'Device Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: timestamp(this.handle.plan().nowMs),
    };
    const patch = { metadata: { uid }, status: { conditions: [condition] } };
    await ignoreNotFound(async () => {
      await podClient.patch(name, namespace, 'strategic', patch, { subresource: 'status' });
      await podClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    });
  }

  async #report(name: string): Promise<void> {
    const { rules, ruleClient } = this.#access;
    const rule = rules.get(name);
    if (rule?.spec?.taint === undefined) return;
    const status = ruleCondition(rule, this.#pendingPods(rule), this.handle.plan().nowMs);
    if (status === undefined) return;
    await ignoreNotFound(() => ruleClient.update({ ...rule, status }, { subresource: 'status' }));
  }

  /** Pods that the taint of this rule evicts and no other taint does. */
  #pendingPods(rule: DeviceTaintRule): readonly Pod[] {
    const { claims, slices } = this.#access;
    const plain = slices.list().map((slice) => ({
      ...slice,
      spec: { ...slice.spec, devices: (slice.spec?.devices ?? []).map((device) => ({ ...device, taints: [] })) },
    }));
    const taint = { ...rule.spec?.taint, effect: 'NoExecute' };
    const tainted = noExecuteTaints(slicesWithRules(plain, [{ ...rule, spec: { ...rule.spec, taint } }]));
    const { nowMs } = this.handle.plan();
    return claims
      .list()
      .filter((claim) => evictionTimeMs(claim, tainted, nowMs) !== undefined)
      .flatMap((claim) => this.#podsOf(claim));
  }
}
