/** Creates and deletes volumes of the embedded local provisioner. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { annotationOf, classNameOf } from '../../../api/volumes/binding.ts';
import { LOCAL_DELETE, LOCAL_FINALIZER, LOCAL_NODE } from '../../../api/volumes/local.ts';
import { withPlan } from '../../framework/core/protection-finalizer.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { localStorageClass, planLocalClaim, planLocalVolume } from './plan.ts';

const RETRY_MS = 15_000;

export const localVolumeProvisioner: ControllerSpec = {
  name: 'local-volume-provisioner',
  eventSource: 'hyperedge.dev/local',
  reads: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.storageClasses, resources.nodes],
  writes: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.storageClasses, resources.nodes],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const volumes = handle.informer(resources.persistentVolumes);
  const claims = handle.informer(resources.persistentVolumeClaims);
  const classes = handle.informer(resources.storageClasses);
  const nodes = handle.informer(resources.nodes);
  const volumeClient = handle.writer(resources.persistentVolumes);
  const claimClient = handle.writer(resources.persistentVolumeClaims);
  const classClient = handle.writer(resources.storageClasses);
  const nodeClient = handle.writer(resources.nodes);
  const nodeOf = (volume: PersistentVolume): Node | undefined => nodes.get(annotationOf(volume, LOCAL_NODE) ?? '');

  return async (scope) => {
    if (handle.options.localVolumes) {
      try {
        await classClient.create(localStorageClass);
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
    const claimQueue = scope.queue(async (key) => {
      const claim = claims.get(key);
      if (claim === undefined) return;
      const plan = planLocalClaim(claim, classes.get(classNameOf(claim)), (name) => nodes.get(name));
      const event = (type: 'Normal' | 'Warning', reason: string, message: string): void =>
        handle.recorder.event(claim, type, reason, message);
      if (plan.kind === 'fail') {
        event('Warning', 'ProvisioningFailed', plan.message);
        claimQueue.addAfter(key, RETRY_MS);
      } else if (plan.kind === 'deselect') await ignoreNotFound(() => claimClient.update(plan.claim));
      else if (plan.kind === 'create') {
        try {
          await volumeClient.create(plan.volume);
          event('Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${plan.volume.metadata?.name}`);
        } catch (error) {
          if (!isApiError(error, 'AlreadyExists')) throw error;
        }
      }
    }, 2);
    const volumeQueue = scope.queue(async (name) => {
      const volume = volumes.get(name);
      if (volume === undefined) return;
      const plan = planLocalVolume(volume, nodeOf(volume));
      if (plan === 'delete') {
        const { uid } = volume.metadata ?? {};
        await ignoreNotFound(() =>
          volumeClient.delete(name, undefined, uid === undefined ? {} : { preconditions: { uid } }),
        );
      } else if (plan === 'release') {
        await ignoreNotFound(() => volumeClient.update(withPlan(volume, LOCAL_FINALIZER, 'remove')));
      } else if (plan === 'deleteData') nodeQueue.add(annotationOf(volume, LOCAL_NODE) ?? '');
    }, 2);
    /** Writes the names of the volumes whose data a node must delete into an annotation of the Node. */
    const nodeQueue = scope.queue(async (name) => {
      const node = nodes.get(name);
      if (node === undefined) return;
      const names = volumes.list().filter((volume) => {
        return annotationOf(volume, LOCAL_NODE) === name && planLocalVolume(volume, undefined) === 'release';
      });
      const isDeleted = (volume: PersistentVolume): boolean => volume.spec?.persistentVolumeReclaimPolicy === 'Delete';
      const text = names
        .filter(isDeleted)
        .map(({ metadata }) => metadata?.name ?? '')
        .sort()
        .join(',');
      if (text === (node.metadata?.annotations?.[LOCAL_DELETE] ?? '')) return;
      const annotations = { [LOCAL_DELETE]: text === '' ? null : text };
      await ignoreNotFound(() => nodeClient.patch(name, undefined, 'merge', { metadata: { annotations } }));
    }, 1);
    const wakeClaim = (claim: PersistentVolumeClaim): void => claimQueue.add(objectKey(claim));
    scope.onChange(claims, { added: wakeClaim, updated: wakeClaim });
    const wakeVolume = (volume: PersistentVolume): void => volumeQueue.add(volume.metadata?.name ?? '');
    scope.onChange(volumes, {
      added: wakeVolume,
      updated: wakeVolume,
      deleted: (volume) => nodeQueue.add(annotationOf(volume, LOCAL_NODE) ?? ''),
    });
    const wakeNode = (node: Node): void => {
      for (const volume of volumes.list())
        if (annotationOf(volume, LOCAL_NODE) === node.metadata?.name) wakeVolume(volume);
    };
    scope.onChange(nodes, {
      updated: (node, old) => {
        if (JSON.stringify(node.metadata?.annotations) !== JSON.stringify(old.metadata?.annotations)) wakeNode(node);
      },
      deleted: wakeNode,
    });
  };
}
