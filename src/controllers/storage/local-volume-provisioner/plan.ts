/** Volumes of the embedded local provisioner: the volume to create for a claim, and when its data is deleted. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import { annotationOf, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER } from '../../../api/volumes/binding.ts';
import {
  LOCAL_CLASS,
  LOCAL_DELETED,
  LOCAL_DIRECTORY,
  LOCAL_FINALIZER,
  LOCAL_NODE,
  LOCAL_PROVISIONER,
  volumeNames,
} from '../../../api/volumes/local-provisioner.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const ACCESS_MODES = ['ReadWriteOnce', 'ReadWriteOncePod'];

export type ClaimPlan =
  | { readonly kind: 'keep' }
  | { readonly kind: 'create'; readonly volume: PersistentVolume }
  /** The selected node was deleted, so the scheduler must select another node. */
  | { readonly kind: 'deselect'; readonly claim: PersistentVolumeClaim }
  | { readonly kind: 'fail'; readonly message: string };

/** Default storage class of clusters that do not disable the provisioner. */
export const localStorageClass: StorageClass = {
  metadata: { name: LOCAL_CLASS, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: LOCAL_PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
  allowVolumeExpansion: true,
};

export function planLocalClaim(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
  node: (name: string) => Node | undefined,
): ClaimPlan {
  const { metadata, spec } = claim;
  // The binder sets this annotation when no existing volume matches, to request a new volume from the provisioner.
  if (annotationOf(claim, STORAGE_PROVISIONER) !== LOCAL_PROVISIONER || storageClass === undefined) return KEEP;
  if (metadata?.deletionTimestamp !== undefined || (spec?.volumeName ?? '') !== '') return KEEP;
  const className = storageClass.metadata?.name ?? '';
  const fail = (why: string): ClaimPlan => ({
    kind: 'fail',
    message: `failed to provision volume with StorageClass "${className}": ${why}`,
  });
  const wrongMode = spec?.accessModes?.find((mode) => !ACCESS_MODES.includes(mode));
  if (wrongMode !== undefined) return fail(`accessModes: a local volume cannot be ${wrongMode}; use ReadWriteOnce`);
  if (spec?.dataSource !== undefined) return fail('dataSource: not supported for local volumes; remove the field');
  const selected = annotationOf(claim, SELECTED_NODE);
  if (selected === undefined)
    return fail('no node is selected; use a class with volumeBindingMode WaitForFirstConsumer');
  const target = node(selected);
  if (target === undefined) {
    const { [SELECTED_NODE]: _node, ...annotations } = metadata?.annotations ?? {};
    return { kind: 'deselect', claim: { ...claim, metadata: { ...metadata, annotations } } };
  }
  const directory = target.metadata?.annotations?.[LOCAL_DIRECTORY];
  if (directory === undefined) return fail(`node ${selected} offers no local volumes yet`);
  return { kind: 'create', volume: localVolume(claim, storageClass, target, directory) };
}

const KEEP: ClaimPlan = { kind: 'keep' };

function localVolume(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  node: Node,
  directory: string,
): PersistentVolume {
  const { name = '', namespace = '', uid = '' } = claim.metadata ?? {};
  const nodeName = node.metadata?.name ?? '';
  const volumeName = `pvc-${uid}`;
  const hostname = node.metadata?.labels?.[HOSTNAME] ?? nodeName;
  return {
    metadata: {
      name: volumeName,
      annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER, [LOCAL_NODE]: nodeName },
      finalizers: [LOCAL_FINALIZER],
    },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.['storage'] ?? '0' },
      accessModes: claim.spec?.accessModes ?? ['ReadWriteOnce'],
      volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
      storageClassName: storageClass.metadata?.name ?? '',
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      local: { path: `${directory}/${volumeName}` },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: HOSTNAME, operator: 'In', values: [hostname] }] }],
        },
      },
    },
  };
}

/** Action for a volume: `deleteData` requests the deletion from the host, `release` removes the finalizer. */
export type VolumePlan = 'keep' | 'delete' | 'deleteData' | 'release';

export function planLocalVolume(volume: PersistentVolume, node: Node | undefined): VolumePlan {
  if (annotationOf(volume, PROVISIONED_BY) !== LOCAL_PROVISIONER) return 'keep';
  const { metadata, spec, status } = volume;
  const deletes = spec?.persistentVolumeReclaimPolicy === 'Delete';
  if (metadata?.deletionTimestamp === undefined) {
    return deletes && status?.phase === 'Released' ? 'delete' : 'keep';
  }
  if (metadata.finalizers?.includes(LOCAL_FINALIZER) !== true || status?.phase === 'Bound') return 'keep';
  // Data of a retained volume is kept. Data on a deleted node was lost with the node.
  if (!deletes || node === undefined) return 'release';
  const deleted = volumeNames(node.metadata?.annotations?.[LOCAL_DELETED]);
  return deleted.includes(metadata.name ?? '') ? 'release' : 'deleteData';
}
