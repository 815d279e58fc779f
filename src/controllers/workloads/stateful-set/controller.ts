/** Stateful sets. Plans in controllers/workloads/stateful-set. */
import type { ControllerRevision, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { isEverything, matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { carryOutClaim } from '../../framework/adoption.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { claimObjects, controllerOf, isControlledBy, mayBeAdopted } from '../../framework/core/ownership.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { controlledBy, indexByController, orphansIn } from '../../framework/owner-indices.ts';
import { isNamespaceTerminating } from '../../framework/pod-control.ts';
import { isRevisionOf, planStatefulHistory, type StatefulHistory } from './history.ts';
import { planStatefulSet, type StatefulAction } from './plan.ts';
import { isClaimOf, ordinalOf } from './pod.ts';

export const statefulSetController: ControllerSpec = {
  name: 'statefulset',
  reads: [resources.statefulSets, resources.controllerRevisions, resources.pods, resources.persistentVolumeClaims],
  writes: [resources.statefulSets, resources.controllerRevisions, resources.pods, resources.persistentVolumeClaims],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    sets: handle.informer(resources.statefulSets),
    revisions: handle.informer(resources.controllerRevisions),
    pods: handle.informer(resources.pods),
    claims: handle.informer(resources.persistentVolumeClaims),
    setClient: handle.writer(resources.statefulSets),
    revisionClient: handle.writer(resources.controllerRevisions),
    podClient: handle.writer(resources.pods),
    claimClient: handle.writer(resources.persistentVolumeClaims),
  };
  indexByController(access.pods);
  indexByController(access.revisions);
  return (scope) => new StatefulSetController(handle, access, scope).start();
}

interface Access {
  readonly sets: Informer<StatefulSet>;
  readonly revisions: Informer<ControllerRevision>;
  readonly pods: Informer<Pod>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly setClient: ResourceClient<StatefulSet>;
  readonly revisionClient: ResourceClient<ControllerRevision>;
  readonly podClient: ResourceClient<Pod>;
  readonly claimClient: ResourceClient<PersistentVolumeClaim>;
}

class StatefulSetController extends ControllerTerm {
  readonly #access: Access;
  readonly #wakeSets: CandidateWaker<StatefulSet>;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
    this.#wakeSets = candidateWaker(scope, access.sets, (set) => this.queue.add(objectKey(set)));
  }

  override start(): void {
    const wake = (set: StatefulSet): void => this.queue.add(objectKey(set));
    this.scope.onChange(this.#access.sets, { added: wake, updated: wake, deleted: wake });
    this.scope.onChange(this.#access.pods, {
      added: this.#wakeOwner,
      updated: (pod, old) => {
        if (controllerOf(old)?.uid !== controllerOf(pod)?.uid) this.#wakeOwner(old);
        if (controllerOf(pod) !== undefined || mayBeAdopted(pod, old)) this.#wakeOwner(pod);
      },
      deleted: this.#wakeOwner,
    });
    // Claims are watched, because the pod of an ordinal is not created while its claim is being deleted.
    this.scope.onChange(this.#access.claims, { updated: this.#wakeClaimant, deleted: this.#wakeClaimant });
  }

  readonly #wakeClaimant = ({ metadata }: PersistentVolumeClaim): void => {
    this.#wakeSets(metadata?.namespace ?? '', (set) => isClaimOf(set, metadata?.name ?? ''));
  };

  readonly #wakeOwner = (pod: Pod): void => {
    const reference = controllerOf(pod);
    const { namespace = '', deletionTimestamp, labels } = pod.metadata ?? {};
    if (reference !== undefined) {
      if (reference.kind === 'StatefulSet') this.queue.add(`${namespace}/${reference.name}`);
      return;
    }
    if (deletionTimestamp !== undefined) return;
    this.#wakeSets(namespace, ({ spec }) => matchesLabels(storedSelectorOf(spec?.selector), labels));
  };

  protected override async sync(key: string): Promise<void> {
    const set = this.#access.sets.get(key);
    if (set === undefined) return;
    const selector = storedSelectorOf(set.spec?.selector);
    if (isEverything(selector)) return;
    const { namespace = '' } = splitKey(key);
    const uid = set.metadata?.uid ?? '';
    const owner = { ownerType: resources.statefulSets, owners: this.#access.setClient };
    const revisions = await carryOutClaim(
      set,
      claimObjects(
        set,
        [
          ...controlledBy(this.#access.revisions, uid),
          ...orphansIn(this.#access.revisions, namespace).filter((each) =>
            matchesLabels(selector, each.metadata?.labels),
          ),
        ],
        () => true,
      ),
      { ...owner, objects: this.#access.revisionClient },
    );
    const pods = await carryOutClaim(
      set,
      claimObjects(
        set,
        [...controlledBy(this.#access.pods, uid), ...orphansIn(this.#access.pods, namespace)],
        (pod) => matchesLabels(selector, pod.metadata?.labels) && ordinalOf(set, pod) !== undefined,
      ),
      { ...owner, objects: this.#access.podClient },
    );
    const history = planStatefulHistory(set, revisions, pods);
    if (set.metadata?.deletionTimestamp === undefined && !(await this.#writeHistory(set, history))) return;
    const claim = (name: string): PersistentVolumeClaim | undefined => this.#access.claims.get(`${namespace}/${name}`);
    const plan = planStatefulSet({ set, pods, history, claim }, this.handle.plan());
    const error = await this.#carryOut(set, plan.actions);
    if (plan.status !== undefined) {
      await this.#access.setClient.update({ ...set, status: plan.status }, { subresource: 'status' });
    }
    if (plan.recheckAfterMs !== undefined) this.queue.addAfter(key, plan.recheckAfterMs);
    if (error !== undefined && !isNamespaceTerminating(error)) throw error;
  }

  /**
   * Writes the planned revisions. Returns false when the plan is outdated: another template has the same hash, or the
   * namespace is terminating.
   */
  async #writeHistory(set: StatefulSet, history: StatefulHistory): Promise<boolean> {
    const { update, change } = history;
    if (change === 'update') await this.#access.revisionClient.update(update);
    if (change === 'create') {
      try {
        await this.#access.revisionClient.create(update);
      } catch (error) {
        if (isNamespaceTerminating(error)) return false;
        if (!isApiError(error, 'AlreadyExists')) throw error;
        const existing = await this.#access.revisionClient.get(update.metadata?.name ?? '', update.metadata?.namespace);
        if (!isControlledBy(existing, set.metadata?.uid) || !isRevisionOf(existing, set)) {
          const collisionCount = (set.status?.collisionCount ?? 0) + 1;
          const status = { replicas: 0, ...set.status, collisionCount };
          await this.#access.setClient.update({ ...set, status }, { subresource: 'status' });
          return false;
        }
      }
    }
    for (const { metadata } of history.delete) {
      await ignoreNotFound(() => this.#access.revisionClient.delete(metadata?.name ?? '', metadata?.namespace));
    }
    return true;
  }

  /** Executes actions and returns the first error. In an ordered set, an error prevents later actions. */
  async #carryOut(set: StatefulSet, actions: readonly StatefulAction[]): Promise<unknown> {
    if (set.spec?.podManagementPolicy === 'Parallel') {
      // Owner references of claims are written before pods are deleted, because no later plan would write them.
      const isOwner = ({ type }: StatefulAction): boolean => type === 'own';
      for (const phase of [actions.filter(isOwner), actions.filter((action) => !isOwner(action))]) {
        const results = await Promise.allSettled(phase.map((action) => this.#act(set, action)));
        const failed = results.find((result) => result.status === 'rejected');
        if (failed !== undefined) return failed.reason;
      }
      return undefined;
    }
    try {
      for (const action of actions) await this.#act(set, action);
    } catch (error) {
      return error;
    }
    return undefined;
  }

  async #act(set: StatefulSet, action: StatefulAction): Promise<void> {
    switch (action.type) {
      case 'create':
        for (const claim of action.claims) await this.#createClaim(set, action.name, claim);
        if (action.pod !== undefined) await this.#createPod(set, action.pod);
        return;
      case 'delete':
        return this.#deletePod(set, action.pod);
      case 'label': {
        const { name = '', namespace, uid } = action.pod.metadata ?? {};
        const body = { metadata: { uid, labels: action.labels } };
        await this.#access.podClient.patch(name, namespace, 'merge', body);
        return;
      }
      case 'own': {
        const { claim, ownerReferences } = action;
        const metadata = { ...claim.metadata, ownerReferences: [...ownerReferences] };
        await ignoreNotFound(() => this.#access.claimClient.update({ ...claim, metadata }));
        return;
      }
    }
  }

  async #createClaim(set: StatefulSet, pod: string, claim: PersistentVolumeClaim): Promise<void> {
    const about = `create Claim ${claim.metadata?.name ?? ''} Pod ${pod} in StatefulSet ${set.metadata?.name ?? ''}`;
    try {
      await this.#access.claimClient.create(claim);
      this.#record(set, 'SuccessfulCreate', `${about} success`);
    } catch (error) {
      if (isApiError(error, 'AlreadyExists')) {
        const { name = '', namespace } = claim.metadata ?? {};
        const present = await this.#access.claimClient.get(name, namespace);
        if (present.metadata?.deletionTimestamp === undefined) return;
        const why = `pvc ${name} is being deleted`;
        this.#record(
          set,
          'FailedCreate',
          `create Pod ${pod} in StatefulSet ${set.metadata?.name} failed error: ${why}`,
        );
        throw new Error(why);
      }
      if (!isNamespaceTerminating(error)) {
        this.#record(set, 'FailedCreate', `${about} failed error: ${messageOf(error)}`);
      }
      throw error;
    }
  }

  async #createPod(set: StatefulSet, pod: Pod): Promise<void> {
    const about = `create Pod ${pod.metadata?.name ?? ''} in StatefulSet ${set.metadata?.name ?? ''}`;
    try {
      await this.#access.podClient.create(pod);
      this.#record(set, 'SuccessfulCreate', `${about} successful`);
    } catch (error) {
      // The local copy is behind, or a pod of another owner has the name. The set is queued again when that pod ends.
      if (isApiError(error, 'AlreadyExists')) return this.#onNameConflict(set, pod, error);
      if (!isNamespaceTerminating(error)) {
        this.#record(set, 'FailedCreate', `${about} failed error: ${messageOf(error)}`);
      }
      throw error;
    }
  }

  async #onNameConflict(set: StatefulSet, pod: Pod, error: unknown): Promise<void> {
    const { name = '', namespace } = pod.metadata ?? {};
    const present = this.#access.pods.get(`${namespace ?? ''}/${name}`);
    if (present === undefined || isControlledBy(present, set.metadata?.uid)) return;
    const about = `create Pod ${name} in StatefulSet ${set.metadata?.name ?? ''}`;
    this.#record(set, 'FailedCreate', `${about} failed error: ${messageOf(error)}`);
    throw error;
  }

  async #deletePod(set: StatefulSet, pod: Pod): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const about = `delete Pod ${name} in StatefulSet ${set.metadata?.name ?? ''}`;
    try {
      await this.#access.podClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
      this.#record(set, 'SuccessfulDelete', `${about} successful`);
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      this.#record(set, 'FailedDelete', `${about} failed error: ${messageOf(error)}`);
      throw error;
    }
  }

  #record(set: StatefulSet, reason: string, message: string): void {
    this.handle.recorder.event(set, reason.startsWith('Failed') ? 'Warning' : 'Normal', reason, message);
  }
}
