/** Rolls out deployments: creates, scales and deletes their replica sets, and reports progress in the status. */

import type { Deployment, ReplicaSet } from '../../../api/generated/apps/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { isEverything, matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { carryOutClaim } from '../../framework/adoption.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { claimObjects, controllerOf, isControlledBy } from '../../framework/core/ownership.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { controlledBy, indexByController, orphansIn } from '../../framework/owner-indices.ts';
import { isNamespaceTerminating } from '../../framework/pod-control.ts';
import { REVISION } from './annotations.ts';
import { collidedStatus, createFailedStatus, type DeploymentPlan, hasTemplateOf, planDeployment } from './plan.ts';

export const deploymentController: ControllerSpec = {
  name: 'deployment',
  reads: [resources.deployments, resources.replicaSets, resources.pods],
  writes: [resources.deployments, resources.replicaSets],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    deployments: handle.informer(resources.deployments),
    replicaSets: handle.informer(resources.replicaSets),
    pods: handle.informer(resources.pods),
    deploymentClient: handle.writer(resources.deployments),
    replicaSetClient: handle.writer(resources.replicaSets),
  };
  indexByController(access.replicaSets);
  indexByController(access.pods);
  return (scope) => new DeploymentController(handle, access, scope).start();
}

interface Access {
  readonly deployments: Informer<Deployment>;
  readonly replicaSets: Informer<ReplicaSet>;
  readonly pods: Informer<Pod>;
  readonly deploymentClient: ResourceClient<Deployment>;
  readonly replicaSetClient: ResourceClient<ReplicaSet>;
}

class DeploymentController extends ControllerTerm {
  readonly #access: Access;
  readonly #wakeDeployments: CandidateWaker<Deployment>;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
    this.#wakeDeployments = candidateWaker(scope, access.deployments, (each) => this.queue.add(objectKey(each)));
  }

  override start(): void {
    this.scope.onChange(this.#access.deployments, {
      added: (deployment) => this.queue.add(objectKey(deployment)),
      updated: (deployment) => this.queue.add(objectKey(deployment)),
      deleted: (deployment) => this.queue.add(objectKey(deployment)),
    });
    this.scope.onChange(this.#access.replicaSets, {
      added: this.#wakeOwner,
      updated: (set, old) => {
        if (controllerOf(old)?.uid !== controllerOf(set)?.uid) this.#wakeOwner(old);
        this.#wakeOwner(set);
      },
      deleted: this.#wakeOwner,
    });
    this.scope.onChange(this.#access.pods, {
      updated: (pod, old) => {
        if (pod.status?.phase !== old.status?.phase) this.#wakeRecreate(pod);
      },
      deleted: this.#wakeRecreate,
    });
  }

  readonly #wakeOwner = (set: ReplicaSet): void => {
    const reference = controllerOf(set);
    const namespace = set.metadata?.namespace;
    if (reference === undefined) {
      this.#wakeDeployments(namespace, ({ spec }) =>
        matchesLabels(storedSelectorOf(spec?.selector), set.metadata?.labels),
      );
    } else if (reference.kind === 'Deployment') this.queue.add(`${namespace ?? ''}/${reference.name}`);
  };

  // Queues the deployment of a pod. Only the strategy Recreate waits for pods: it creates the new replica set after the
  // last old pod has ended.
  readonly #wakeRecreate = (pod: Pod): void => {
    const reference = controllerOf(pod);
    if (reference?.kind !== 'ReplicaSet') return;
    const namespace = pod.metadata?.namespace ?? '';
    const set = this.#access.replicaSets.get(`${namespace}/${reference.name}`);
    const owner = set === undefined ? undefined : controllerOf(set);
    if (owner?.kind !== 'Deployment') return;
    const key = `${namespace}/${owner.name}`;
    if (this.#access.deployments.get(key)?.spec?.strategy?.type === 'Recreate') this.queue.add(key);
  };

  protected override async sync(key: string): Promise<void> {
    const deployment = this.#access.deployments.get(key);
    if (deployment === undefined) return;
    const selector = storedSelectorOf(deployment.spec?.selector);
    if (isEverything(selector)) {
      this.handle.recorder.event(
        deployment,
        'Warning',
        'SelectingAll',
        'This deployment is selecting all pods. A non-empty selector is required.',
      );
      return;
    }
    const uid = deployment.metadata?.uid ?? '';
    const candidates = [
      ...controlledBy(this.#access.replicaSets, uid),
      ...orphansIn(this.#access.replicaSets, splitKey(key).namespace ?? ''),
    ];
    const claim = claimObjects(deployment, candidates, (set) => matchesLabels(selector, set.metadata?.labels));
    const owned = await carryOutClaim(deployment, claim, {
      ownerType: resources.deployments,
      owners: this.#access.deploymentClient,
      objects: this.#access.replicaSetClient,
    });
    // The watch events of the adopted or released objects queue this key again. The next sync then plans with their new
    // versions.
    if (claim.adopt.length > 0 || claim.release.length > 0) return;
    const podsBySet = new Map(
      owned.map((set) => [set.metadata?.uid ?? '', controlledBy(this.#access.pods, set.metadata?.uid ?? '')]),
    );
    const plan = planDeployment({ deployment, replicaSets: owned, podsBySet }, this.handle.plan());
    if (!(await this.#carryOut(deployment, plan))) return;
    for (const event of plan.events) this.handle.recorder.event(deployment, event.type, event.reason, event.message);
    await this.#writeDeployment(deployment, plan);
    for (const set of plan.delete) await this.#drop(set);
    if (plan.recheckAfterMs !== undefined) this.queue.addAfter(key, plan.recheckAfterMs);
  }

  /** Executes the plan. Returns false when the plan is outdated and the key will be planned again. */
  async #carryOut(deployment: Deployment, plan: DeploymentPlan): Promise<boolean> {
    if (plan.create !== undefined && !(await this.#create(deployment, plan.create))) return false;
    for (const set of plan.update) await this.#access.replicaSetClient.update(set);
    return true;
  }

  async #create(deployment: Deployment, set: ReplicaSet): Promise<boolean> {
    try {
      await this.#access.replicaSetClient.create(set);
      return true;
    } catch (error) {
      if (isApiError(error, 'AlreadyExists')) return this.#resolveCollision(deployment, set);
      if (isNamespaceTerminating(error)) return false;
      const message = `Failed to create new replica set "${set.metadata?.name ?? ''}": ${messageOf(error)}`;
      this.handle.recorder.event(deployment, 'Warning', 'ReplicaSetCreateError', message);
      const status = createFailedStatus(deployment, message, this.handle.plan().nowMs);
      await this.#access.deploymentClient.update({ ...deployment, status }, { subresource: 'status' });
      throw error;
    }
  }

  /**
   * Called when a replica set of the new name exists. Either the local copy is behind and the set already belongs to
   * the deployment, or another template has the same hash.
   */
  async #resolveCollision(deployment: Deployment, set: ReplicaSet): Promise<boolean> {
    const existing = await this.#access.replicaSetClient.get(set.metadata?.name ?? '', set.metadata?.namespace);
    if (isControlledBy(existing, deployment.metadata?.uid) && hasTemplateOf(existing, deployment)) {
      this.queue.addAfter(objectKey(deployment), 50);
      return false;
    }
    await this.#access.deploymentClient.update(
      { ...deployment, status: collidedStatus(deployment) },
      { subresource: 'status' },
    );
    return false;
  }

  /**
   * Writes the revision annotation and the status together through the status endpoint, where an annotation does not
   * increase the generation.
   */
  async #writeDeployment(deployment: Deployment, plan: DeploymentPlan): Promise<void> {
    if (plan.revision === undefined && plan.status === undefined) return;
    const annotations =
      plan.revision === undefined
        ? deployment.metadata?.annotations
        : { ...deployment.metadata?.annotations, [REVISION]: plan.revision };
    const status = plan.status ?? deployment.status;
    await this.#access.deploymentClient.update(
      {
        ...deployment,
        metadata: { ...deployment.metadata, ...(annotations === undefined ? {} : { annotations }) },
        ...(status === undefined ? {} : { status }),
      },
      { subresource: 'status' },
    );
  }

  async #drop(set: ReplicaSet): Promise<void> {
    const { name = '', namespace, uid } = set.metadata ?? {};
    try {
      await this.#access.replicaSetClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}
