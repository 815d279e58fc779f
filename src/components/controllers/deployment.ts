/** Deployments. The decisions are in core/reconcile/deployment. */
import type { Deployment, ReplicaSet } from 'kubernetes-types/apps/v1';
import type { Pod } from 'kubernetes-types/core/v1';
import { objectKey, splitKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { isEverything, labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import { REVISION } from '../../core/reconcile/deployment/annotations.ts';
import {
  collidedStatus,
  createFailedStatus,
  type DeploymentPlan,
  hasTemplateOf,
  planDeployment,
} from '../../core/reconcile/deployment/plan.ts';
import { claimObjects, controllerOf, isControlledBy } from '../../core/reconcile/ownership.ts';
import { carryOutClaim } from './claim.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { controlledBy, indexByController, orphansIn } from './indices.ts';
import { isNamespaceTerminating } from './pod-control.ts';

export const deploymentController: ControllerSpec = {
  name: 'deployment',
  reads: [resources.deployments, resources.replicaSets, resources.pods],
  writes: [resources.deployments, resources.replicaSets],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const { recorder } = handle;
  const deployments = handle.informer(resources.deployments);
  const replicaSets = handle.informer(resources.replicaSets);
  const pods = handle.informer(resources.pods);
  const deploymentClient = handle.writer(resources.deployments);
  const replicaSetClient = handle.writer(resources.replicaSets);
  indexByController(replicaSets);
  indexByController(pods);

  return (scope) => {
    const queue = scope.queue(sync, 5);

    scope.onChange(deployments, {
      added: (deployment) => queue.add(objectKey(deployment)),
      updated: (deployment) => queue.add(objectKey(deployment)),
      deleted: (deployment) => queue.add(objectKey(deployment)),
    });

    const wakeOwner = (set: ReplicaSet): void => {
      const reference = controllerOf(set);
      const namespace = set.metadata?.namespace;
      if (reference === undefined) {
        for (const deployment of deployments.list(namespace)) {
          const selector = labelSelectorOf(deployment.spec?.selector);
          if (matchesLabels(selector, set.metadata?.labels)) queue.add(objectKey(deployment));
        }
      } else if (reference.kind === 'Deployment') queue.add(`${namespace ?? ''}/${reference.name}`);
    };
    scope.onChange(replicaSets, {
      added: wakeOwner,
      updated: (set, old) => {
        if (controllerOf(old)?.uid !== controllerOf(set)?.uid) wakeOwner(old);
        wakeOwner(set);
      },
      deleted: wakeOwner,
    });

    // Only Recreate waits for pods: its new set is made when the last old pod has gone or ended.
    const wakeRecreate = (pod: Pod): void => {
      const reference = controllerOf(pod);
      if (reference?.kind !== 'ReplicaSet') return;
      const namespace = pod.metadata?.namespace ?? '';
      const set = replicaSets.get(`${namespace}/${reference.name}`);
      const owner = set === undefined ? undefined : controllerOf(set);
      if (owner?.kind !== 'Deployment') return;
      const key = `${namespace}/${owner.name}`;
      if (deployments.get(key)?.spec?.strategy?.type === 'Recreate') queue.add(key);
    };
    scope.onChange(pods, {
      updated: (pod, old) => {
        if (pod.status?.phase !== old.status?.phase) wakeRecreate(pod);
      },
      deleted: wakeRecreate,
    });

    async function sync(key: string): Promise<void> {
      const deployment = deployments.get(key);
      if (deployment === undefined) return;
      const selector = labelSelectorOf(deployment.spec?.selector);
      if (isEverything(selector)) {
        recorder.event(
          deployment,
          'Warning',
          'SelectingAll',
          'This deployment is selecting all pods. A non-empty selector is required.',
        );
        return;
      }
      const uid = deployment.metadata?.uid ?? '';
      const candidates = [...controlledBy(replicaSets, uid), ...orphansIn(replicaSets, splitKey(key).namespace ?? '')];
      const claim = claimObjects(deployment, candidates, (set) => matchesLabels(selector, set.metadata?.labels));
      const owned = await carryOutClaim(deployment, claim, {
        ownerType: resources.deployments,
        owners: deploymentClient,
        objects: replicaSetClient,
      });
      // What was just adopted has a newer version by now; its change wakes this key again.
      if (claim.adopt.length > 0 || claim.release.length > 0) return;
      const podsBySet = new Map(
        owned.map((set) => [set.metadata?.uid ?? '', controlledBy(pods, set.metadata?.uid ?? '')]),
      );
      const plan = planDeployment({ deployment, replicaSets: owned, podsBySet }, handle.plan());
      if (!(await carryOut(deployment, plan))) return;
      for (const event of plan.events) recorder.event(deployment, event.type, event.reason, event.message);
      await writeDeployment(deployment, plan);
      for (const set of plan.delete) await drop(set);
      if (plan.recheckAfterMs !== undefined) queue.addAfter(key, plan.recheckAfterMs);
    }

    /** False when the plan no longer holds and the key will be planned again. */
    async function carryOut(deployment: Deployment, plan: DeploymentPlan): Promise<boolean> {
      if (plan.create !== undefined && !(await create(deployment, plan.create))) return false;
      for (const set of plan.update) await replicaSetClient.update(set);
      return true;
    }

    async function create(deployment: Deployment, set: ReplicaSet): Promise<boolean> {
      try {
        await replicaSetClient.create(set);
        return true;
      } catch (error) {
        if (isApiError(error, 'AlreadyExists')) return resolveCollision(deployment, set);
        if (isNamespaceTerminating(error)) return false;
        const message = `Failed to create new replica set "${set.metadata?.name ?? ''}": ${messageOf(error)}`;
        recorder.event(deployment, 'Warning', 'ReplicaSetCreateError', message);
        const status = createFailedStatus(deployment, message, handle.plan().nowMs);
        await deploymentClient.update({ ...deployment, status }, { subresource: 'status' });
        throw error;
      }
    }

    /** Either the copy lags and the set is ours already, or another template has the same hash. */
    async function resolveCollision(deployment: Deployment, set: ReplicaSet): Promise<boolean> {
      const existing = await replicaSetClient.get(set.metadata?.name ?? '', set.metadata?.namespace);
      if (isControlledBy(existing, deployment.metadata?.uid) && hasTemplateOf(existing, deployment)) {
        queue.addAfter(objectKey(deployment), 50);
        return false;
      }
      await deploymentClient.update({ ...deployment, status: collidedStatus(deployment) }, { subresource: 'status' });
      return false;
    }

    /** Revision and status in one write: through the status endpoint the annotation does not count as a new generation. */
    async function writeDeployment(deployment: Deployment, plan: DeploymentPlan): Promise<void> {
      if (plan.revision === undefined && plan.status === undefined) return;
      const annotations =
        plan.revision === undefined
          ? deployment.metadata?.annotations
          : { ...deployment.metadata?.annotations, [REVISION]: plan.revision };
      const status = plan.status ?? deployment.status;
      await deploymentClient.update(
        {
          ...deployment,
          metadata: { ...deployment.metadata, ...(annotations === undefined ? {} : { annotations }) },
          ...(status === undefined ? {} : { status }),
        },
        { subresource: 'status' },
      );
    }

    async function drop(set: ReplicaSet): Promise<void> {
      const { name = '', namespace, uid } = set.metadata ?? {};
      try {
        await replicaSetClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
  };
}
