/** Claims of pods: where their volumes can be reached, and which pods may share them. */
import type { PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { claimNames } from '../../../api/volumes/pod-claims.ts';
import { unboundVolumesOn, volumesOfPod } from '../pod-volumes.ts';
import { type Filter, reject } from './filter.ts';

/** Claims must be bound or wait for this pod, and their volumes be reachable from the node. */
export const volumeBinding: Filter = (pod, view) => {
  const volumes = volumesOfPod(pod.pod, view.volumes);
  if (volumes === undefined) return undefined;
  if (volumes.problem !== undefined) {
    const rejection = { ...reject('VolumeBinding', volumes.problem, true), isOfPod: true };
    return () => rejection;
  }
  const { terms, unbound } = volumes;
  return (node) => {
    if (!terms.every((alternatives) => alternatives.some((term) => matchesTerm(term, node.node)))) {
      return reject('VolumeBinding', "node(s) didn't match PersistentVolume's node affinity", true);
    }
    return unboundVolumesOn(node.node, unbound, view.volumes) === undefined
      ? reject('VolumeBinding', "node(s) didn't find available persistent volumes to bind", true)
      : undefined;
  };
};

/** A ReadWriteOncePod claim has one pod. */
export const volumeRestrictions: Filter = (pod, view) => {
  const exclusive = claimNames(pod.pod).filter((name) => isExclusive(view.volumes?.claim(pod.namespace, name)));
  if (exclusive.length === 0) return undefined;
  const uses = (other: Pod): boolean => claimNames(other).some((name) => exclusive.includes(name));
  const isTaken = view.nodes.some(({ pods }) =>
    [...pods.values()].some((other) => other.namespace === pod.namespace && other.uid !== pod.uid && uses(other.pod)),
  );
  if (!isTaken) return undefined;
  const reason = 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode';
  return () => reject('VolumeRestrictions', reason, false);
};

const isExclusive = (claim: PersistentVolumeClaim | undefined): boolean =>
  claim?.spec?.accessModes?.includes('ReadWriteOncePod') === true;
