/**
 * Grants rigs to claims, ungates the pods of granted claims and evicts the pods of ended ones. The plan is made in
 * rigs/core.
 */

import type { ResourceClaim } from '../../api/devices/types.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import type { Informer, ResourceClient } from '../../client/types.ts';
import { attemptAll } from '../../controllers/framework/attempt-all.ts';
import { ControllerTerm } from '../../controllers/framework/controller-term.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../controllers/framework/ignore-not-found.ts';
import { EVICTION_GRACE_SECONDS, type Eviction, isReady, planRigs, type RigPlan, type Ungating } from '../core/plan.ts';
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

interface Access {
  readonly rigs: Informer<Rig>;
  readonly claims: Informer<RigClaim>;
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly deviceClaims: Informer<ResourceClaim>;
  readonly rigClient: ResourceClient<Rig>;
  readonly claimClient: ResourceClient<RigClaim>;
  readonly podClient: ResourceClient<Pod>;
  /**
   * Claims as last written in any term. They may be newer than the informer's copies, and planning with an older copy
   * could grant a rig twice.
   */
  readonly written: Map<string, RigClaim>;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    rigs: handle.informer(resources.rigs),
    claims: handle.informer(resources.rigClaims),
    pods: handle.informer(resources.pods),
    nodes: handle.informer(resources.nodes),
    deviceClaims: handle.informer(resources.resourceClaims),
    rigClient: handle.writer(resources.rigs),
    claimClient: handle.writer(resources.rigClaims),
    podClient: handle.writer(resources.pods),
    written: new Map(),
  };
  return (scope) => new RigController(handle, access, scope).start();
}

class RigController extends ControllerTerm {
  readonly #access: Access;
  /** UIDs of pods whose rejection was reported by an event. */
  readonly #reported = new Set<string>();

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 1);
    this.#access = access;
  }

  override start(): void {
    const { rigs, claims, pods, nodes, deviceClaims } = this.#access;
    const wake = (): void => this.queue.add(ALL);
    const wakeForPod = (pod: Pod): void => {
      if (usesRig(pod)) wake();
    };
    const wakeForFixture = (...versions: readonly ResourceClaim[]): void => {
      if (versions.some((each) => claimedFixtures(each).length > 0)) wake();
    };
    this.scope.onChange(rigs, {
      added: wake,
      updated: (rig, old) => {
        if (!semanticEqual(facts(rig), facts(old))) wake();
      },
      deleted: wake,
    });
    this.scope.onChange(claims, { added: wake, updated: wake, deleted: wake });
    this.scope.onChange(pods, { added: wakeForPod, updated: wakeForPod, deleted: wakeForPod });
    this.scope.onChange(deviceClaims, { added: wakeForFixture, updated: wakeForFixture, deleted: wakeForFixture });
    this.scope.onChange(nodes, {
      added: wake,
      updated: (node, old) => {
        const names = fixtureNames(node);
        if (names !== fixtureNames(old) || (names !== '' && isReady(node) !== isReady(old))) wake();
      },
      deleted: wake,
    });
  }

  protected override async sync(): Promise<void> {
    const { rigs, claims, pods, nodes, deviceClaims, written } = this.#access;
    const { nowMs } = this.handle.plan();
    const known = claims.list().map((claim) => this.#newest(claim));
    for (const key of written.keys()) if (claims.get(key) === undefined) written.delete(key);
    const using = { pods: pods.list().filter(usesRig), deviceClaims: deviceClaims.list() };
    const plan = planRigs({ rigs: rigs.list(), claims: known, nodes: nodes.list(), ...using }, nowMs);
    if (plan.nextMs !== undefined) this.queue.addAfter(ALL, Math.max(0, plan.nextMs - nowMs));
    this.#reportRefused(plan);
    await this.#carryOut(plan, known);
  }

  /** Returns the informer's copy, unless this controller wrote a later version. */
  #newest(claim: RigClaim): RigClaim {
    const { written } = this.#access;
    const key = objectKey(claim);
    const own = written.get(key);
    if (own === undefined) return claim;
    if (own.metadata?.uid === claim.metadata?.uid && version(own) > version(claim)) return own;
    written.delete(key);
    return claim;
  }

  #reportRefused({ refused }: RigPlan): void {
    for (const { pod, reason, message } of refused) {
      const uid = pod.metadata?.uid ?? '';
      if (!this.#reported.has(uid)) this.handle.recorder.event(pod, 'Warning', reason, message);
      this.#reported.add(uid);
    }
    if (refused.length === 0) this.#reported.clear();
  }

  async #carryOut(plan: RigPlan, known: readonly RigClaim[]): Promise<void> {
    const writes: (() => Promise<unknown>)[] = [];
    for (const claim of known) {
      const status = plan.claims.get(objectKey(claim));
      if (status !== undefined) writes.push(() => this.#writeClaim(claim, status));
    }
    for (const rig of this.#access.rigs.list()) {
      const status = plan.rigs.get(rig.metadata?.name ?? '');
      if (status === undefined || semanticEqual(rig.status ?? {}, status)) continue;
      const changed = { ...rig, status };
      writes.push(() => ignoreNotFound(() => this.#access.rigClient.update(changed, { subresource: 'status' })));
    }
    for (const each of plan.evict) writes.push(() => this.#evict(each));
    for (const each of plan.release) writes.push(() => this.#release(each));
    for (const each of plan.ungate) writes.push(() => this.#ungate(each));
    await attemptAll(writes, (write) => write());
  }

  async #writeClaim(claim: RigClaim, status: NonNullable<RigClaim['status']>): Promise<void> {
    if (semanticEqual(claim.status, status)) return;
    await ignoreNotFound(async () => {
      const { claimClient, written } = this.#access;
      written.set(objectKey(claim), await claimClient.update({ ...claim, status }, { subresource: 'status' }));
    });
    const was = claim.status?.phase ?? 'Queued';
    if (status.phase === was || status.phase === undefined) return;
    const type = status.phase === 'Expired' ? 'Warning' : 'Normal';
    this.handle.recorder.event(claim, type, `Rig${status.phase}`, status.conditions?.[0]?.message ?? '');
  }

  async #evict({ pod, reason, message }: Eviction): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    this.handle.recorder.event(pod, 'Warning', reason, message);
    const usual = pod.spec?.terminationGracePeriodSeconds ?? EVICTION_GRACE_SECONDS;
    const gracePeriodSeconds = Math.min(usual, EVICTION_GRACE_SECONDS);
    const options = { gracePeriodSeconds, ...(uid === undefined ? {} : { preconditions: { uid } }) };
    await ignoreNotFound(() => this.#access.podClient.delete(name, namespace, options));
  }

  async #ungate({ pod, gate, nodeSelector }: Ungating): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const schedulingGates = [{ name: gate, $patch: 'delete' }];
    const patch = { metadata: { uid }, spec: { schedulingGates, nodeSelector } };
    await ignoreNotFound(() => this.#access.podClient.patch(name, namespace, 'strategic', patch));
  }

  /** Removes the finalizer of a claim whose rig is free. */
  async #release(claim: RigClaim): Promise<void> {
    const current = this.#newest(claim);
    const finalizers = (current.metadata?.finalizers ?? []).filter((each) => each !== RELEASE_FINALIZER);
    const released = { ...current, metadata: { ...current.metadata, finalizers } };
    await ignoreNotFound(() => this.#access.claimClient.update(released));
  }
}

const version = ({ metadata }: KubeObject): bigint => BigInt(metadata?.resourceVersion ?? '0');

const usesRig = (pod: Pod): boolean => claimNameOf(pod) !== undefined || fixturesOf(pod).size > 0;

const facts = ({ metadata, spec }: Rig): unknown => [metadata?.labels, metadata?.deletionTimestamp, spec];

const fixtureNames = ({ status }: Node): string =>
  Object.keys(status?.capacity ?? {})
    .filter((name) => name.startsWith(FIXTURE_PREFIX))
    .sort()
    .join();
