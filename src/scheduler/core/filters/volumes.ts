/**
 * Filter for claims: each must be bound or be able to be bound on the node, and its volume must be accessible from the
 * node.
 */
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { unboundVolumesOn, volumesOfPod } from '../volumes/pod-volumes.ts';
import { type Filter, rejectUnresolvable } from './filter.ts';

export const volumeBinding: Filter = (pod, view) => {
  const volumes = volumesOfPod(pod.pod, view.volumes);
  if (volumes === undefined) return undefined;
  if (volumes.problem !== undefined) {
    const rejection = { ...rejectUnresolvable('VolumeBinding', volumes.problem), isOfPod: true };
    return () => rejection;
  }
  const { terms, unbound } = volumes;
  return (node) => {
    if (!terms.every((alternatives) => alternatives.some((term) => matchesTerm(term, node.node)))) {
      return rejectUnresolvable('VolumeBinding', "node(s) didn't match PersistentVolume's node affinity");
    }
    const found = unboundVolumesOn(node.node, unbound, view.volumes);
    return typeof found === 'string' ? rejectUnresolvable('VolumeBinding', found) : undefined;
  };
};
