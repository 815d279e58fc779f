/**
 * Protects a VolumeAttributesClass while claims or volumes reference it. Source: pkg/controller/volume/vacprotection.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { ATTRIBUTES_CLASS_PROTECTION, attributesClassesOf } from '../../../api/volumes/attributes-class.ts';
import { planFinalizer, withPlannedFinalizer } from '../../framework/core/protection-finalizer.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';

export const attributesClassProtectionController: ControllerSpec = {
  name: 'volumeattributesclass-protection',
  reads: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.volumeAttributesClasses],
  writes: [resources.volumeAttributesClasses],
  prepare: (handle) => {
    const volumes = handle.informer(resources.persistentVolumes);
    const claims = handle.informer(resources.persistentVolumeClaims);
    const classes = handle.informer(resources.volumeAttributesClasses);
    const client = handle.writer(resources.volumeAttributesClasses);
    return (scope) => {
      const isUsed = (name: string): boolean =>
        [...volumes.list(), ...claims.list()].some((each) => attributesClassesOf(each).includes(name));
      const queue = scope.queue(async (name) => {
        const found = classes.get(name);
        if (found === undefined) return;
        const plan = planFinalizer(found, ATTRIBUTES_CLASS_PROTECTION, isUsed(name));
        if (plan === 'keep') return;
        await ignoreNotFound(() => client.update(withPlannedFinalizer(found, ATTRIBUTES_CLASS_PROTECTION, plan)));
      }, 2);
      const wake = ({ metadata }: KubeObject): void => queue.add(metadata?.name ?? '');
      scope.onChange(classes, { added: wake, updated: wake });
      const wakeClasses = (each: PersistentVolume | PersistentVolumeClaim): void => {
        for (const name of attributesClassesOf(each)) queue.add(name);
      };
      const users = {
        deleted: wakeClasses,
        updated: (_now: PersistentVolume | PersistentVolumeClaim, old: PersistentVolume | PersistentVolumeClaim) =>
          wakeClasses(old),
      };
      scope.onChange(claims, users);
      scope.onChange(volumes, users);
    };
  },
};
