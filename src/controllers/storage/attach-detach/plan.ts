/**
 * Plans for one volume the nodes to which it is attached and from which it is detached. Source:
 * pkg/controller/volume/attachdetach/reconciler.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';
import type { NodeName } from '../../../base/brand.ts';

/** Upstream's maxWaitForUnmountDuration. */
export const UNMOUNT_LIMIT_MS = 360_000;

export interface VolumeView {
  /** Name of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  readonly isForOneNode: boolean;
  /** Nodes with pods that need the volume, in order of pod creation. */
  readonly wanted: readonly WantedNode[];
  readonly held: readonly HeldNode[];
}

/** A node with pods that need the volume. */
export interface WantedNode {
  readonly nodeName: NodeName;
  readonly pods: readonly Pod[];
  readonly exists: boolean;
}

/** A node to which the volume is attached, being attached, or from which it is being detached. */
export interface HeldNode {
  readonly nodeName: NodeName;
  readonly state: 'attaching' | 'attached' | 'detaching';
  readonly error?: string;
  /** Whether the node reports, or last reported, that the volume is in use. */
  readonly isMounted: boolean;
  readonly isHealthy: boolean;
  readonly isOutOfService: boolean;
  /** Time since the last pod on the node that needed the volume, counted within this leadership term. */
  readonly unneededMs: number;
  /** Whether the volume is in the node's `volumesAttached`. */
  readonly isListed: boolean;
  /** Whether this controller created the attachment. */
  readonly isOwn: boolean;
}

export interface AttachEvent {
  readonly pod: Pod;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface VolumePlan {
  readonly attach: readonly NodeName[];
  readonly detach: readonly Detachment[];
  /** Nodes on which no pod needs the volume, but from which the volume is not detached yet. */
  readonly waiting: readonly NodeName[];
  readonly events: readonly AttachEvent[];
}

export interface Detachment {
  readonly nodeName: NodeName;
  /** Whether the volume is detached although the node may still use it. */
  readonly isForced: boolean;
}

export function planVolume(view: VolumeView): VolumePlan {
  const held = new Map(view.held.map((each) => [each.nodeName, each]));
  const attach: NodeName[] = [];
  const events: AttachEvent[] = [];
  for (const { nodeName, pods, exists } of view.wanted) {
    const found = held.get(nodeName);
    if (found !== undefined) {
      events.push(...pods.flatMap((pod) => outcomeOf(pod, view.name, found)));
      continue;
    }
    const others = [...held.keys(), ...attach];
    if (view.isForOneNode && others.length > 0) {
      const users = view.wanted.filter((each) => others.includes(each.nodeName)).flatMap((each) => each.pods);
      events.push(...pods.map((pod) => multiAttach(pod, view.name, users)));
    } else if (exists) attach.push(nodeName);
  }
  const wanted = new Set(view.wanted.map(({ nodeName }) => nodeName));
  const unneeded = view.held.filter(
    ({ nodeName, state, isOwn }) => !wanted.has(nodeName) && state !== 'detaching' && isOwn,
  );
  const detach = unneeded.flatMap((each) => detachmentOf(each) ?? []);
  const detached = new Set(detach.map(({ nodeName }) => nodeName));
  const waiting = unneeded.map(({ nodeName }) => nodeName).filter((nodeName) => !detached.has(nodeName));
  return { attach, detach, waiting, events };
}

/**
 * Plans the detachment of a volume. A volume that may be in use is detached only if the node is out of service or has
 * been unhealthy longer than the limit.
 */
function detachmentOf({ nodeName, ...held }: HeldNode): Detachment | undefined {
  if (!held.isMounted) return { nodeName, isForced: false };
  const isExpired = !held.isHealthy && held.unneededMs > UNMOUNT_LIMIT_MS;
  return held.isOutOfService || isExpired ? { nodeName, isForced: true } : undefined;
}

function outcomeOf(pod: Pod, name: string, { state, error, isListed }: HeldNode): AttachEvent[] {
  if (state === 'attached') {
    if (isListed) return [];
    const message = `AttachVolume.Attach succeeded for volume "${name}" `;
    return [{ pod, type: 'Normal', reason: 'SuccessfulAttachVolume', message }];
  }
  if (state === 'detaching' || error === undefined) return [];
  const message = `AttachVolume.Attach failed for volume "${name}" : ${error}`;
  return [{ pod, type: 'Warning', reason: 'FailedAttachVolume', message }];
}

/**
 * Event about a volume that other pods use on another node. The message does not contain names of pods in other
 * namespaces. Source: reconciler.go reportMultiAttachError.
 */
function multiAttach(pod: Pod, name: string, users: readonly Pod[]): AttachEvent {
  const own = users.filter(({ metadata }) => metadata?.namespace === pod.metadata?.namespace);
  const foreign = users.length - own.length;
  const names = own.map(({ metadata }) => metadata?.name ?? '').join(', ');
  const elsewhere = `${foreign} pod(s) in different namespaces`;
  let reason = "Volume is already exclusively attached to one node and can't be attached to another";
  if (own.length > 0) reason = `Volume is already used by pod(s) ${names}${foreign > 0 ? ` and ${elsewhere}` : ''}`;
  else if (foreign > 0) reason = `Volume is already used by ${elsewhere}`;
  const message = `Multi-Attach error for volume "${name}" ${reason}`;
  return { pod, type: 'Warning', reason: 'FailedAttachVolume', message };
}
