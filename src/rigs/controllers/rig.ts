/**
 * Grants rigs to claims, ungates the pods of granted claims and evicts the pods of ended ones. The plan is made in
 * rigs/core.
 */

import type { ResourceClaim } from '../../api/devices/types.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { attemptAll } from '../../controllers/framework/attempt-all.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../controllers/framework/ignore-not-found.ts';
import { type Eviction, isReady, planRigs, type RigPlan, type Ungating } from '../core/plan.ts';
import { claimNameOf, fixturesOf } from '../core/pods.ts';
import { claimedFixtures } from '../kinds/fixtures.ts';
import { FIXTURE_PREFIX, RELEASE_FINALIZER, type Rig, type RigClaim } from '../kinds/rig-types.ts';

export const rigController: ControllerSpec = {
  name: 'rig',
  reads: [resources.rigs, resources.rigClaims, resources.pods, resources.nodes, resources.resourceClaims],
  writes: [resources.rigs, resources.rigClaims, resources.pods],
  prepare,
};

/** Single key of the work queue: claims compete for rigs, so all claims are planned together. */
const ALL = 'all';

function prepare(handle: ControllerHandle): ControllerRun {
  const rigs = handle.informer(resources.rigs);
  const claims = handle.informer(resources.rigClaims);
  const pods = handle.informer(resources.pods);
  const nodes = handle.informer(resources.nodes);
  const deviceClaims = handle.informer(resources.resourceClaims);
  const rigClient = handle.writer(resources.rigs);
  const claimClient = handle.writer(resources.rigClaims);
  const podClient = handle.writer(resources.pods);

  /**
   * Claims as last written. They may be newer than the informer's copies, and planning with an older copy could grant a
   * rig twice.
   */
  const written = new Map<string, RigClaim>();
  const newest = (claim: RigClaim): RigClaim => {
    const key = objectKey(claim);
    const own = written.get(key);
    if (own === undefined) return claim;
    if (own.metadata?.uid === claim.metadata?.uid && version(own) > version(claim)) return own;
    written.delete(key);
    return claim;
  };

  const writeClaim = async (claim: RigClaim, status: NonNullable<RigClaim['status']>): Promise<void> => {
    if (semanticEqual(claim.status, status)) return;
    await ignoreNotFound(async () => {
      written.set(objectKey(claim), await claimClient.update({ ...claim, status }, { subresource: 'status' }));
    });
    const was = claim.status?.phase ?? 'Queued';
    const message = status.conditions?.[0]?.message ?? '';
    if (status.phase !== was && status.phase !== undefined)
      handle.recorder.event(claim, status.phase === 'Expired' ? 'Warning' : 'Normal', `Rig${status.phase}`, message);
  };

  const evict = async ({ pod, reason, message }: Eviction): Promise<void> => {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    handle.recorder.event(pod, 'Warning', reason, message);
    await ignoreNotFound(() => podClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } }));
  };

  const ungate = async ({ pod, gate, nodeSelector }: Ungating): Promise<void> => {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const schedulingGates = [{ name: gate, $patch: 'delete' }];
    const patch = { metadata: { uid }, spec: { schedulingGates, nodeSelector } };
    await ignoreNotFound(() => podClient.patch(name, namespace, 'strategic', patch));
  };

  const release = async (claim: RigClaim): Promise<void> => {
    const current = newest(claim);
    const finalizers = (current.metadata?.finalizers ?? []).filter((each) => each !== RELEASE_FINALIZER);
    await ignoreNotFound(() => claimClient.update({ ...current, metadata: { ...current.metadata, finalizers } }));
  };

  const carryOut = async (plan: RigPlan, known: readonly RigClaim[]): Promise<void> => {
    const writes: (() => Promise<unknown>)[] = [];
    for (const claim of known) {
      const status = plan.claims.get(objectKey(claim));
      if (status !== undefined) writes.push(() => writeClaim(claim, status));
    }
    for (const rig of rigs.list()) {
      const status = plan.rigs.get(rig.metadata?.name ?? '');
      if (status === undefined || semanticEqual(rig.status ?? {}, status)) continue;
      writes.push(() => ignoreNotFound(() => rigClient.update({ ...rig, status }, { subresource: 'status' })));
    }
    for (const each of plan.evict) writes.push(() => evict(each));
    for (const each of plan.release) writes.push(() => release(each));
    for (const each of plan.ungate) writes.push(() => ungate(each));
    await attemptAll(writes, (write) => write());
  };

  return (scope) => {
    const reported = new Set<string>();
    const queue = scope.queue(async () => {
      const { nowMs } = handle.plan();
      const known = claims.list().map(newest);
      for (const key of written.keys()) if (claims.get(key) === undefined) written.delete(key);
      const using = { pods: pods.list().filter(usesRig), deviceClaims: deviceClaims.list() };
      const plan = planRigs({ rigs: rigs.list(), claims: known, nodes: nodes.list(), ...using }, nowMs);
      if (plan.nextMs !== undefined) queue.addAfter(ALL, Math.max(0, plan.nextMs - nowMs));
      for (const { pod, reason, message } of plan.refused) {
        const uid = pod.metadata?.uid ?? '';
        if (!reported.has(uid)) handle.recorder.event(pod, 'Warning', reason, message);
        reported.add(uid);
      }
      if (plan.refused.length === 0) reported.clear();
      await carryOut(plan, known);
    }, 1);
    const wake = (): void => queue.add(ALL);
    scope.onChange(rigs, {
      added: wake,
      updated: (rig, old) => {
        if (!semanticEqual(facts(rig), facts(old))) wake();
      },
      deleted: wake,
    });
    scope.onChange(claims, { added: wake, updated: wake, deleted: wake });
    const wakeForPod = (pod: Pod): void => {
      if (usesRig(pod)) wake();
    };
    scope.onChange(pods, { added: wakeForPod, updated: wakeForPod, deleted: wakeForPod });
    const wakeForFixture = (...versions: readonly ResourceClaim[]): void => {
      if (versions.some((each) => claimedFixtures(each).length > 0)) wake();
    };
    scope.onChange(deviceClaims, { added: wakeForFixture, updated: wakeForFixture, deleted: wakeForFixture });
    scope.onChange(nodes, {
      added: wake,
      updated: (node, old) => {
        const names = fixtureNames(node);
        if (names !== fixtureNames(old) || (names !== '' && isReady(node) !== isReady(old))) wake();
      },
      deleted: wake,
    });
  };
}

const version = ({ metadata }: KubeObject): bigint => BigInt(metadata?.resourceVersion ?? '0');

const usesRig = (pod: Pod): boolean => claimNameOf(pod) !== undefined || fixturesOf(pod).size > 0;

const facts = ({ metadata, spec }: Rig): unknown => [metadata?.labels, metadata?.deletionTimestamp, spec];

const fixtureNames = ({ status }: Node): string =>
  Object.keys(status?.capacity ?? {})
    .filter((name) => name.startsWith(FIXTURE_PREFIX))
    .sort()
    .join();
