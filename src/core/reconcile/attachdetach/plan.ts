/**
 * Plan of one volume: the nodes that it is attached to and detached from. Source:
 * pkg/controller/volume/attachdetach/reconciler.
 */
import type { Pod } from 'kubernetes-types/core/v1';

/** Upstream's maxWaitForUnmountDuration. */
export const UNMOUNT_LIMIT_MS = 360_000;

export interface VolumeView {
  /** The PersistentVolume's name, or the volume's in the pod. */
  readonly name: string;
  readonly isForOneNode: boolean;
  /** In the order in which the pods were created. */
  readonly wanted: readonly WantedNode[];
  readonly held: readonly HeldNode[];
}

/** A node with pods that need the volume. */
export interface WantedNode {
  readonly nodeName: string;
  readonly pods: readonly Pod[];
  /** Whether a Node object exists. */
  readonly exists: boolean;
}

/** A node that the volume is attached to, or that it is being attached to or detached from. */
export interface HeldNode {
  readonly nodeName: string;
  readonly state: 'attaching' | 'attached' | 'detaching';
  readonly error?: string;
  /** The node reports, or last reported, that it uses the volume. */
  readonly isMounted: boolean;
  readonly isHealthy: boolean;
  readonly isOutOfService: boolean;
  /** For how long no pod on the node has needed the volume, of this term. */
  readonly unneededMs: number;
  /** In the node's `volumesAttached`. */
  readonly isListed: boolean;
  /** Made by this controller. */
  readonly isOwn: boolean;
}

export interface AttachEvent {
  readonly pod: Pod;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface VolumePlan {
  readonly attach: readonly string[];
  readonly detach: readonly Detachment[];
  /** Nodes whose attachment no pod needs, but which is not detached yet. */
  readonly waiting: readonly string[];
  readonly events: readonly AttachEvent[];
}

export interface Detachment {
  readonly nodeName: string;
  /** Although the node may use the volume. */
  readonly isForced: boolean;
}

export function planVolume(view: VolumeView): VolumePlan {
  const held = new Map(view.held.map((each) => [each.nodeName, each]));
  const attach: string[] = [];
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

/** A volume that its node may use stays, unless the node is out of service, or was not healthy for minutes. */
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

/** Names no pods of other namespaces. Source: reconciler.go reportMultiAttachError. */
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
