/**
 * Attaches volumes to the nodes of their pods and detaches them. Each volume is handled by one worker at a time, for
 * all nodes.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { CSIDriver, VolumeAttachment } from '../../../api/generated/storage/v1.ts';
import { resources } from '../../../api/resources.ts';
import { uniqueNameOf } from '../../../api/volumes/attachment.ts';
import { toNodeName } from '../../../base/brand.ts';
import type { WorkQueue } from '../../../client/types.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { indexByNode, podsOnNode } from '../../framework/owner-indices.ts';
import { AttachedVolumes } from './attached-volumes-controller.ts';
import { planVolume } from './plan.ts';
import { VolumeNeeds } from './volume-needs-controller.ts';

const RETRY_MS = 10_000;
const RESYNC_MS = 60_000;
const WORKERS = 8;

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

function prepare(handle: ControllerHandle): ControllerRun {
  const attachments = handle.informer(resources.volumeAttachments);
  indexByNode(handle.informer(resources.pods));
  handle.addIndex(attachments, 'node', ({ spec }) => [spec.nodeName]);
  handle.addIndex(attachments, 'volume', ({ spec }) => [spec.source.persistentVolumeName ?? '']);
  const needs = new VolumeNeeds(handle);
  return async (scope) => {
    const attached = new AttachedVolumes(handle);
    await attached.load();
    /** Last reported message by pod, reason and volume. */
    const reported = new Map<string, string>();
    const published = scope.queue((key) => attached.publish(toNodeName(key)));
    const queue = scope.queue(async (key) => {
      await attached.refresh(key);
      const need = needs.needOf(key);
      const held = attached.held(key, new Set(need.wanted.map(({ nodeName }) => nodeName)));
      const plan = planVolume({ ...need, held });
      for (const { pod, type, reason, message } of plan.events) {
        const about = `${pod.metadata?.uid ?? ''}/${reason}/${key}`;
        if (reported.get(about) === message) continue;
        reported.set(about, message);
        handle.recorder.event(pod, type, reason, message);
      }
      for (const nodeName of plan.attach) await attached.attach(key, nodeName, need.persistentVolumeName);
      let isBlocked = false;
      for (const { nodeName, isForced } of plan.detach) {
        if (isForced)
          handle.log.warn('volume force-detached; its node may still use it', { volume: key, node: nodeName });
        if (!(await attached.detach(key, nodeName, isForced))) isBlocked = true;
      }
      for (const nodeName of [...held.map((each) => each.nodeName), ...plan.attach]) {
        if (!attached.isPublished(nodeName)) published.add(nodeName);
      }
      // The detached volume may be required on another node.
      if (plan.detach.length > 0 && !isBlocked && need.wanted.length > 0) queue.add(key);
      const isWaiting = plan.waiting.length > 0 || plan.events.some(({ type }) => type === 'Warning');
      if (isWaiting || isBlocked) queue.addAfter(key, RETRY_MS);
    }, WORKERS);
    wakeOnChanges(handle, scope, { attached, needs, reported, published, queue });
  };
}

interface Term {
  readonly attached: AttachedVolumes;
  readonly needs: VolumeNeeds;
  readonly reported: Map<string, string>;
  /** Nodes whose `volumesAttached` must be written. */
  readonly published: WorkQueue;
  /** Volumes to reconcile. */
  readonly queue: WorkQueue;
}

function wakeOnChanges(handle: ControllerHandle, scope: RunScope, term: Term): void {
  const { attached, needs, reported, published, queue } = term;
  const pods = handle.informer(resources.pods);
  const volumes = handle.informer(resources.persistentVolumes);
  const attachments = handle.informer(resources.volumeAttachments);
  const wake = (keys: readonly string[]): void => {
    for (const key of keys) queue.add(key);
  };
  const wakeAll = (): void => wake(attached.keys());
  wakeAll();
  scope.every(RESYNC_MS, wakeAll);

  const wakePod = (pod: Pod): void => {
    if ((pod.spec?.nodeName ?? '') !== '') wake(needs.keysOf(pod));
  };
  scope.onChange(pods, {
    added: wakePod,
    updated: (pod, old) => {
      if (pod.status?.phase !== old.status?.phase || pod.spec?.nodeName !== old.spec?.nodeName) wakePod(pod);
    },
    deleted: (pod) => {
      for (const about of reported.keys()) if (about.startsWith(`${pod.metadata?.uid ?? ''}/`)) reported.delete(about);
      wakePod(pod);
    },
  });
  const wakeVolume = ({ spec }: PersistentVolume): void => wake([uniqueNameOf(spec ?? {}) ?? []].flat());
  const wakeClaim = ({ spec }: PersistentVolumeClaim): void => {
    const volume = volumes.get(spec?.volumeName ?? '');
    if (volume !== undefined) wakeVolume(volume);
  };
  scope.onChange(handle.informer(resources.persistentVolumeClaims), {
    added: wakeClaim,
    updated: wakeClaim,
    deleted: wakeClaim,
  });
  scope.onChange(volumes, {
    added: (volume) => {
      for (const each of attachments.byIndex('volume', volume.metadata?.name ?? '')) attached.observe(each, false);
      wakeVolume(volume);
    },
    updated: wakeVolume,
    deleted: (volume) => {
      attached.volumeDeleted(volume.metadata?.name ?? '');
      wakeVolume(volume);
    },
  });
  const wakeAttachment = (attachment: VolumeAttachment): void => {
    attached.observe(attachment, false);
    wake([attached.keyOf(attachment)]);
  };
  scope.onChange(attachments, {
    added: wakeAttachment,
    updated: wakeAttachment,
    deleted: (attachment) => {
      attached.observe(attachment, true);
      wake([attached.keyOf(attachment)]);
      published.add(attachment.spec.nodeName);
    },
  });
  const wakeNode = ({ metadata }: Node): void => {
    const name = toNodeName(metadata?.name);
    wake([...attached.keysOn(name), ...podsOnNode(pods, name).flatMap((pod) => needs.keysOf(pod))]);
    if (!attached.isPublished(name)) published.add(name);
  };
  const stateOf = ({ metadata, spec, status }: Node): string =>
    JSON.stringify([
      ...[metadata?.uid, spec?.taints, status?.volumesInUse, status?.volumesAttached],
      status?.conditions?.find(({ type }) => type === 'Ready')?.status,
    ]);
  scope.onChange(handle.informer(resources.nodes), {
    added: (node) => {
      attached.nodeAdded(node);
      wakeNode(node);
    },
    updated: (node, old) => {
      if (stateOf(node) !== stateOf(old)) wakeNode(node);
    },
    deleted: (node) => {
      attached.nodeDeleted(node);
      wakeNode(node);
    },
  });
  const wakeDriver = ({ metadata }: CSIDriver): void => {
    for (const volume of volumes.list()) if (volume.spec?.csi?.driver === metadata?.name) wakeVolume(volume);
  };
  scope.onChange(handle.informer(resources.csiDrivers), {
    added: wakeDriver,
    updated: wakeDriver,
    deleted: wakeDriver,
  });
}
