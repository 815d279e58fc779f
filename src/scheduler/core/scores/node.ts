/** Scorers that depend on single nodes. Source: upstream's nodeaffinity, tainttoleration and imagelocality plug-ins. */
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { tolerates } from '../../../api/podspec/scheduling/tolerations.ts';
import { normalizedImage } from '../node-info.ts';
import { MAX_SCORE, normalize, type Scorer, type ScorerFactory } from './score.ts';

export const preferredNodes: ScorerFactory = ({ addedAffinity }) => {
  const added = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return (pod, nodes) => {
    const own = pod.pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const preferred = [...own, ...added];
    if (preferred.length === 0) return undefined;
    const scores = nodes.map((node) =>
      preferred.reduce((sum, each) => sum + (matchesTerm(each.preference, node.node) ? each.weight : 0), 0),
    );
    return normalize(scores, { reverse: false });
  };
};

export const taintPreference: Scorer = (pod, nodes) => {
  const tolerations = (pod.pod.spec?.tolerations ?? []).filter(
    (toleration) => (toleration.effect ?? '') === '' || toleration.effect === 'PreferNoSchedule',
  );
  let any = false;
  const counts = nodes.map((node) => {
    let count = 0;
    for (const taint of node.node.spec?.taints ?? []) {
      if (taint.effect !== 'PreferNoSchedule') continue;
      if (!tolerations.some((toleration) => tolerates(toleration, taint))) count++;
    }
    any ||= count > 0;
    return count;
  });
  return any ? normalize(counts, { reverse: true }) : undefined;
};

const MIN_IMAGE_BYTES = 23 * 1024 * 1024;
const MAX_IMAGE_BYTES = 1000 * 1024 * 1024;

/**
 * Prefers nodes that have the images of the pod. An image that few nodes have counts less, so that pods do not
 * concentrate on these nodes.
 */
export const imageLocality: Scorer = (pod, nodes, view) => {
  const containers = [...(pod.pod.spec?.initContainers ?? []), ...(pod.pod.spec?.containers ?? [])];
  const images = containers
    .map((container) => normalizedImage(container.image ?? ''))
    .map((name) => ({ name, spread: view.imageHolders(name) / Math.max(1, view.nodes.length) }))
    .filter(({ spread }) => spread > 0);
  if (images.length === 0) return undefined;
  const max = MAX_IMAGE_BYTES * Math.max(1, containers.length);
  return nodes.map((node) => {
    let bytes = 0;
    for (const { name, spread } of images) bytes += Math.floor((node.images.get(name) ?? 0) * spread);
    const clamped = Math.min(Math.max(bytes, MIN_IMAGE_BYTES), max);
    return Math.floor((MAX_SCORE * (clamped - MIN_IMAGE_BYTES)) / (max - MIN_IMAGE_BYTES));
  });
};
