/**
 * Which volumes of CSI drivers are attached to a node: those of its pods, and for as long as the node uses them. A
 * sidecar of the driver attaches what a VolumeAttachment names. Source: pkg/controller/volume/attachdetach.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import type { CSIDriver, VolumeAttachment } from 'kubernetes-types/storage/v1';
import { attachmentNameOf, uniqueVolumeName } from '../../../api/volumes/attachment.ts';
import { isFullyBound } from '../../../api/volumes/binding.ts';

/** Upstream's maxWaitForUnmountDuration. */
const UNMOUNT_LIMIT_MS = 360_000;
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

export interface AttachView {
  readonly nodeName: string;
  readonly node: Node | undefined;
  /** Of the node. */
  readonly pods: readonly Pod[];
  readonly attachments: readonly VolumeAttachment[];
  claim(key: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  driver(name: string): CSIDriver | undefined;
  /** When the controller first saw that an attachment is no longer needed. */
  unneededSinceMs(name: string): number | undefined;
  readonly nowMs: number;
  readonly sha256: (text: string) => string;
}

export interface AttachEvent {
  readonly pod: Pod;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface AttachPlan {
  readonly create: readonly VolumeAttachment[];
  /** Names. */
  readonly remove: readonly string[];
  /** Names that are not needed, but still used by the node. */
  readonly unneeded: readonly string[];
  /** Undefined: the node's status is right. */
  readonly volumesAttached: readonly { readonly name: string; readonly devicePath: string }[] | undefined;
  readonly events: readonly AttachEvent[];
  readonly again: boolean;
}

interface Wanted {
  readonly volume: PersistentVolume;
  readonly driver: string;
  readonly unique: string;
  readonly pods: Pod[];
}

export function planAttachments(view: AttachView): AttachPlan {
  const wanted = wantedVolumes(view);
  const present = view.attachments.filter(({ spec }) => spec.nodeName === view.nodeName);
  const create: VolumeAttachment[] = [];
  const events: AttachEvent[] = [];
  const attached = new Map<string, { readonly name: string; readonly devicePath: string }>();
  for (const [name, each] of wanted) {
    const found = present.find(({ metadata }) => metadata?.name === name);
    if (found === undefined) {
      const elsewhere = exclusiveElsewhere(each.volume, view);
      if (elsewhere) events.push(...each.pods.map((pod) => multiAttach(pod, each.volume)));
      else create.push(attachmentOf(name, each, view.nodeName));
      continue;
    }
    if (found.metadata?.deletionTimestamp !== undefined) continue;
    if (found.status?.attached === true) attached.set(each.unique, { name: each.unique, devicePath: '' });
    events.push(...each.pods.flatMap((pod) => outcomeOf(pod, each.volume, found, view.node, each.unique)));
  }
  const { remove, unneeded } = detach(view, present, wanted, attached);
  const now = [...attached.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const before = view.node?.status?.volumesAttached ?? [];
  const isSame = before.map(({ name }) => name).join(' ') === now.map(({ name }) => name).join(' ');
  return {
    ...{ create, remove, unneeded, events },
    volumesAttached: view.node === undefined || isSame ? undefined : now,
    again: unneeded.length > 0 || events.some(({ type }) => type === 'Warning'),
  };
}

function wantedVolumes(view: AttachView): Map<string, Wanted> {
  const wanted = new Map<string, Wanted>();
  for (const pod of view.pods) {
    if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') continue;
    for (const { name, persistentVolumeClaim, ephemeral } of pod.spec?.volumes ?? []) {
      if (persistentVolumeClaim === undefined && ephemeral === undefined) continue;
      const claimName = persistentVolumeClaim?.claimName ?? `${pod.metadata?.name ?? ''}-${name}`;
      const claim = view.claim(`${pod.metadata?.namespace ?? ''}/${claimName}`);
      const volume =
        claim === undefined || !isFullyBound(claim) ? undefined : view.volume(claim.spec?.volumeName ?? '');
      const csi = volume?.spec?.csi;
      if (volume === undefined || csi === undefined || view.driver(csi.driver)?.spec.attachRequired === false) continue;
      const key = attachmentNameOf(csi.volumeHandle, csi.driver, view.nodeName, view.sha256);
      const unique = uniqueVolumeName(csi.driver, csi.volumeHandle);
      const known = wanted.get(key);
      if (known === undefined) wanted.set(key, { volume, driver: csi.driver, unique, pods: [pod] });
      else known.pods.push(pod);
    }
  }
  return wanted;
}

/** A volume for one node stays where it is until it is detached there. */
function exclusiveElsewhere({ metadata, spec }: PersistentVolume, { attachments, nodeName }: AttachView): boolean {
  const isShared = spec?.accessModes?.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany') === true;
  if (isShared) return false;
  return attachments.some(
    (each) => each.spec.source.persistentVolumeName === metadata?.name && each.spec.nodeName !== nodeName,
  );
}

const multiAttach = (pod: Pod, { metadata }: PersistentVolume): AttachEvent => ({
  pod,
  type: 'Warning',
  reason: 'FailedAttachVolume',
  message:
    `Multi-Attach error for volume "${metadata?.name ?? ''}" ` +
    "Volume is already exclusively attached to one node and can't be attached to another",
});

function attachmentOf(name: string, { driver, volume }: Wanted, nodeName: string): VolumeAttachment {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name },
    spec: { attacher: driver, nodeName, source: { persistentVolumeName: volume.metadata?.name ?? '' } },
  };
}

function outcomeOf(
  pod: Pod,
  { metadata }: PersistentVolume,
  { status }: VolumeAttachment,
  node: Node | undefined,
  unique: string,
): AttachEvent[] {
  const name = metadata?.name ?? '';
  if (status?.attached === true) {
    if (node?.status?.volumesAttached?.some((each) => each.name === unique) === true) return [];
    const message = `AttachVolume.Attach succeeded for volume "${name}" `;
    return [{ pod, type: 'Normal', reason: 'SuccessfulAttachVolume', message }];
  }
  if (status?.attachError === undefined) return [];
  const message = `AttachVolume.Attach failed for volume "${name}" : ${status.attachError.message ?? ''}`;
  return [{ pod, type: 'Warning', reason: 'FailedAttachVolume', message }];
}

/** What its node still uses stays attached, unless the node is gone, out of service, or not heard of for minutes. */
function detach(
  view: AttachView,
  present: readonly VolumeAttachment[],
  wanted: ReadonlyMap<string, Wanted>,
  attached: Map<string, { readonly name: string; readonly devicePath: string }>,
): Pick<AttachPlan, 'remove' | 'unneeded'> {
  const remove: string[] = [];
  const unneeded: string[] = [];
  for (const { metadata, spec, status } of present) {
    const name = metadata?.name ?? '';
    if (!name.startsWith('csi-') || wanted.has(name) || metadata?.deletionTimestamp !== undefined) continue;
    const csi = view.volume(spec.source.persistentVolumeName ?? '')?.spec?.csi;
    const unique = csi === undefined ? '' : uniqueVolumeName(csi.driver, csi.volumeHandle);
    if (csi !== undefined && mustWait(view, unique, view.unneededSinceMs(name))) {
      if (status?.attached === true) attached.set(unique, { name: unique, devicePath: '' });
      unneeded.push(name);
    } else remove.push(name);
  }
  return { remove, unneeded };
}

function mustWait({ node, nowMs }: AttachView, unique: string, sinceMs: number | undefined): boolean {
  if (node === undefined || node.status?.volumesInUse?.includes(unique) !== true) return false;
  if (node.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true) return false;
  const isReady = node.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  return isReady || sinceMs === undefined || nowMs - sinceMs < UNMOUNT_LIMIT_MS;
}
