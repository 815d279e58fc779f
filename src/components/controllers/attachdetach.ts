/** Asks for volumes to be attached to nodes and detached from them. Plan in core/reconcile/attachdetach. */
import { createHash } from 'node:crypto';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import type { CSIDriver, VolumeAttachment } from 'kubernetes-types/storage/v1';
import { objectKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { type AttachPlan, planAttachments } from '../../core/reconcile/attachdetach/plan.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';
import { indexByClaim, indexByNode, podsOnNode, podsWithClaim } from './indices.ts';

const RETRY_MS = 10_000;

export const attachDetachController: ControllerSpec = {
  name: 'attachdetach',
  eventSource: 'attachdetach-controller',
  reads: [
    resources.pods,
    resources.nodes,
    resources.persistentVolumes,
    resources.persistentVolumeClaims,
    resources.volumeAttachments,
    resources.csiDrivers,
  ],
  writes: [resources.volumeAttachments, resources.nodes],
  prepare,
};

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function prepare(handle: ControllerHandle): ControllerRun {
  const pods = handle.informer(resources.pods);
  const nodes = handle.informer(resources.nodes);
  const volumes = handle.informer(resources.persistentVolumes);
  const claims = handle.informer(resources.persistentVolumeClaims);
  const attachments = handle.informer(resources.volumeAttachments);
  const drivers = handle.informer(resources.csiDrivers);
  indexByNode(pods);
  indexByClaim(pods);
  const attachmentClient = handle.writer(resources.volumeAttachments);
  const nodeClient = handle.writer(resources.nodes);
  const unneededSince = new Map<string, number>();
  const reported = new Map<string, string>();

  async function carryOut(nodeName: string, plan: AttachPlan): Promise<void> {
    const nowMs = handle.plan().nowMs;
    for (const name of plan.unneeded) if (!unneededSince.has(name)) unneededSince.set(name, nowMs);
    for (const { pod, type, reason, message } of plan.events) {
      const key = `${pod.metadata?.uid ?? ''}/${reason}`;
      // The same outcome of the same attachment is one event, however often it is looked at.
      if (type === 'Warning' && reported.get(key) === message) continue;
      reported.set(key, message);
      handle.recorder.event(pod, type, reason, message);
    }
    if (plan.volumesAttached !== undefined) {
      const status = { volumesAttached: plan.volumesAttached };
      await ignoreNotFound(() => nodeClient.patch(nodeName, undefined, 'merge', { status }, { subresource: 'status' }));
    }
    for (const attachment of plan.create) {
      try {
        await attachmentClient.create(attachment);
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
    for (const name of plan.remove) {
      unneededSince.delete(name);
      await ignoreNotFound(() => attachmentClient.delete(name));
    }
  }

  return (scope) => {
    const queue = scope.queue(async (nodeName) => {
      const plan = planAttachments({
        ...{ nodeName, sha256, nowMs: handle.plan().nowMs },
        node: nodes.get(nodeName),
        pods: podsOnNode(pods, nodeName),
        attachments: attachments.list(),
        claim: (key) => claims.get(key),
        volume: (name) => volumes.get(name),
        driver: (name) => drivers.get(name),
        unneededSinceMs: (name) => unneededSince.get(name),
      });
      await carryOut(nodeName, plan);
      if (plan.again) queue.addAfter(nodeName, RETRY_MS);
    }, 4);
    const hasClaims = ({ spec }: Pod): boolean =>
      spec?.volumes?.some((each) => each.persistentVolumeClaim !== undefined || each.ephemeral !== undefined) === true;
    const wakePod = (pod: Pod): void => {
      const nodeName = pod.spec?.nodeName ?? '';
      if (nodeName !== '' && hasClaims(pod)) queue.add(nodeName);
    };
    const wakeClaim = (claim: PersistentVolumeClaim): void => {
      for (const pod of podsWithClaim(pods, objectKey(claim))) wakePod(pod);
    };
    const wakeVolume = ({ spec }: PersistentVolume): void => {
      if (spec?.csi === undefined || spec.claimRef === undefined) return;
      for (const pod of podsWithClaim(pods, `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`))
        wakePod(pod);
    };
    const wakeAttachment = ({ spec }: VolumeAttachment): void => queue.add(spec.nodeName);
    scope.onChange(pods, {
      added: wakePod,
      updated: (pod, old) => {
        if (pod.status?.phase !== old.status?.phase || pod.spec?.nodeName !== old.spec?.nodeName) wakePod(pod);
      },
      deleted: (pod) => {
        for (const key of reported.keys()) if (key.startsWith(`${pod.metadata?.uid ?? ''}/`)) reported.delete(key);
        wakePod(pod);
      },
    });
    scope.onChange(claims, { added: wakeClaim, updated: wakeClaim });
    scope.onChange(volumes, { added: wakeVolume, updated: wakeVolume });
    scope.onChange(attachments, {
      added: wakeAttachment,
      updated: wakeAttachment,
      deleted: (attachment) => {
        wakeAttachment(attachment);
        const volume = volumes.get(attachment.spec.source.persistentVolumeName ?? '');
        if (volume !== undefined) wakeVolume(volume);
      },
    });
    scope.onChange(nodes, {
      updated: (node, old) => {
        const text = ({ status }: typeof node): string => JSON.stringify(status?.volumesInUse ?? []);
        if (text(node) !== text(old) || node.spec?.taints?.length !== old.spec?.taints?.length) {
          queue.add(node.metadata?.name ?? '');
        }
      },
      deleted: (node) => queue.add(node.metadata?.name ?? ''),
    });
    const wakeDriver = ({ metadata }: CSIDriver): void => {
      for (const volume of volumes.list()) if (volume.spec?.csi?.driver === metadata?.name) wakeVolume(volume);
    };
    scope.onChange(drivers, { added: wakeDriver, updated: wakeDriver });
  };
}
