/**
 * Filter for volumes that pods cannot share: ReadWriteOncePod claims, and disks that a pod references without a claim.
 * Source: upstream's volumerestrictions plug-in, KEP-2485.
 */
import type { Volume } from '../../../api/generated/core/v1.ts';
import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import { type Filter, type NodeCheck, reject } from './filter.ts';

const IN_USE = 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode';
const NO_DISK = 'node(s) had no available disk';

export const volumeRestrictions: Filter = (pod, view) => {
  const isExclusive = (claim: string): boolean => {
    const name = claim.slice(claim.indexOf('/') + 1);
    return view.volumes?.claim(pod.namespace, name)?.spec?.accessModes?.includes('ReadWriteOncePod') === true;
  };
  const isInUse = pod.claims.some((claim) => isExclusive(claim) && view.counts.usersOf(claim) > 0);
  if (isInUse) return () => reject('VolumeRestrictions', IN_USE);
  return diskCheck(pod);
};

function diskCheck(pod: PodInfo): NodeCheck | undefined {
  const disks = disksOf(pod);
  if (disks.length === 0) return undefined;
  return (node) => {
    for (const other of node.pods.values()) {
      if (disksOf(other).some((theirs) => disks.some((own) => conflict(own, theirs)))) {
        return reject('VolumeRestrictions', NO_DISK);
      }
    }
    return undefined;
  };
}

const disksOf = ({ pod }: PodInfo): Volume[] =>
  (pod.spec?.volumes ?? []).filter(
    ({ gcePersistentDisk, awsElasticBlockStore, rbd, iscsi }) =>
      gcePersistentDisk !== undefined || awsElasticBlockStore !== undefined || rbd !== undefined || iscsi !== undefined,
  );

function conflict(a: Volume, b: Volume): boolean {
  const areReadOnly = (one: { readOnly?: boolean }, other: { readOnly?: boolean }): boolean =>
    one.readOnly === true && other.readOnly === true;
  if (a.gcePersistentDisk !== undefined && b.gcePersistentDisk !== undefined) {
    const [one, other] = [a.gcePersistentDisk, b.gcePersistentDisk];
    return one.pdName === other.pdName && !areReadOnly(one, other);
  }
  if (a.awsElasticBlockStore !== undefined && b.awsElasticBlockStore !== undefined) {
    return a.awsElasticBlockStore.volumeID === b.awsElasticBlockStore.volumeID;
  }
  if (a.iscsi !== undefined && b.iscsi !== undefined) {
    return a.iscsi.iqn === b.iscsi.iqn && !areReadOnly(a.iscsi, b.iscsi);
  }
  if (a.rbd === undefined || b.rbd === undefined) return false;
  const [one, other] = [a.rbd, b.rbd];
  return (
    one.monitors.some((monitor) => other.monitors.includes(monitor)) &&
    (one.pool ?? 'rbd') === (other.pool ?? 'rbd') &&
    one.image === other.image &&
    !areReadOnly(one, other)
  );
}
