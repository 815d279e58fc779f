/**
 * Filter for the number of volumes that a CSI driver can attach to a node. Source: upstream's nodevolumelimits plug-in,
 * KEP-554.
 */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import { type Filter, reject } from './filter.ts';

export const nodeVolumeLimits: Filter = (pod, view) => {
  const wanted = csiVolumes(pod, view);
  if (wanted.length === 0) return undefined;
  return (node) => {
    const drivers = view.volumes?.csiNode(node.name)?.spec?.drivers ?? [];
    for (const { name, allocatable } of drivers) {
      const limit = allocatable?.count;
      const added = wanted.filter(({ driver }) => driver === name);
      if (limit === undefined || added.length === 0) continue;
      const attached = new Set(added.map(({ handle }) => handle));
      for (const other of node.pods.values()) {
        for (const volume of csiVolumes(other, view)) if (volume.driver === name) attached.add(volume.handle);
      }
      if (attached.size > limit) return reject('NodeVolumeLimits', 'node(s) exceed max volume count');
    }
    return undefined;
  };
};

interface CsiVolume {
  readonly driver: string;
  readonly handle: string;
}

/** CSI volumes of a pod. An unbound claim counts for the driver that will create its volume. */
function csiVolumes(pod: PodInfo, { volumes }: ClusterView): CsiVolume[] {
  return pod.claims.flatMap((key) => {
    const claim = volumes?.claim(pod.namespace, key.slice(key.indexOf('/') + 1));
    if (claim === undefined) return [];
    const name = claim.spec?.volumeName ?? '';
    if (name === '') {
      const driver = volumes?.storageClass(claim.spec?.storageClassName ?? '')?.provisioner;
      return driver === undefined ? [] : [{ driver, handle: `claim ${key}` }];
    }
    const csi = volumes?.volume(name)?.spec?.csi;
    return csi === undefined ? [] : [{ driver: csi.driver, handle: csi.volumeHandle }];
  });
}
