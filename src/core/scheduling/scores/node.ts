/**
 * Scorers that look at single nodes. Source: upstream's noderesources, nodeaffinity, tainttoleration and imagelocality
 * plug-ins.
 */
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { type NodeInfo, normalizedImage } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { CPU, MEMORY } from '../resources.ts';
import { tolerates } from '../tolerations.ts';
import { MAX_SCORE, normalize, type Scorer } from './score.ts';

export const leastAllocated: Scorer = {
  name: 'NodeResourcesFit',
  weight: 1,
  score: (pod, nodes) =>
    nodes.map((node) => {
      let sum = 0;
      let weights = 0;
      for (const name of [CPU, MEMORY]) {
        const allocatable = node.allocatable.get(name) ?? 0;
        if (allocatable === 0) continue;
        const requested = (node.assumed.get(name) ?? 0) + (pod.assumed.get(name) ?? 0);
        sum += requested > allocatable ? 0 : Math.floor(((allocatable - requested) * MAX_SCORE) / allocatable);
        weights++;
      }
      return weights === 0 ? 0 : Math.floor(sum / weights);
    }),
};

/** Prefers nodes where cpu and memory stay used to the same degree. Pods that ask for nothing change nothing. */
export const balancedAllocation: Scorer = {
  name: 'NodeResourcesBalancedAllocation',
  weight: 1,
  score: (pod, nodes) => {
    if (![CPU, MEMORY].some((name) => (pod.requests.get(name) ?? 0) > 0)) return undefined;
    return nodes.map((node) => balance(pod, node));
  },
};

function balance(pod: PodInfo, node: NodeInfo): number {
  const fractions: number[] = [];
  for (const name of [CPU, MEMORY]) {
    const allocatable = node.allocatable.get(name) ?? 0;
    if (allocatable === 0) continue;
    const requested = (node.requested.get(name) ?? 0) + (pod.requests.get(name) ?? 0);
    fractions.push(Math.min(1, requested / allocatable));
  }
  const [first = 0, second = first] = fractions;
  return Math.floor((1 - Math.abs(first - second) / 2) * MAX_SCORE);
}

export const preferredNodes: Scorer = {
  name: 'NodeAffinity',
  weight: 2,
  score: (pod, nodes) => {
    const preferred = pod.pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    if (preferred.length === 0) return undefined;
    const scores = nodes.map((node) =>
      preferred.reduce((sum, each) => sum + (matchesTerm(each.preference, node.node) ? each.weight : 0), 0),
    );
    return normalize(scores, false);
  },
};

export const taintPreference: Scorer = {
  name: 'TaintToleration',
  weight: 3,
  score: (pod, nodes) => {
    const tolerations = (pod.pod.spec?.tolerations ?? []).filter(
      (toleration) => (toleration.effect ?? '') === '' || toleration.effect === 'PreferNoSchedule',
    );
    const counts = nodes.map(
      (node) =>
        (node.node.spec?.taints ?? []).filter(
          (taint) =>
            taint.effect === 'PreferNoSchedule' && !tolerations.some((toleration) => tolerates(toleration, taint)),
        ).length,
    );
    return normalize(counts, true);
  },
};

const MIN_IMAGE_BYTES = 23 * 1024 * 1024;
const MAX_IMAGE_BYTES = 1000 * 1024 * 1024;

/** Prefers nodes that have the images already; an image on few nodes counts less, so that not all pods gather there. */
export const imageLocality: Scorer = {
  name: 'ImageLocality',
  weight: 1,
  score: (pod, nodes, view) => {
    const containers = [...(pod.pod.spec?.initContainers ?? []), ...(pod.pod.spec?.containers ?? [])];
    const images = containers.map((container) => normalizedImage(container.image ?? ''));
    const spread = new Map<string, number>();
    for (const image of images) {
      const holders = view.nodes.filter((node) => node.images.has(image)).length;
      spread.set(image, holders / Math.max(1, view.nodes.length));
    }
    const max = MAX_IMAGE_BYTES * Math.max(1, containers.length);
    return nodes.map((node) => {
      const bytes = images.reduce(
        (sum, image) => sum + Math.floor((node.images.get(image) ?? 0) * (spread.get(image) ?? 0)),
        0,
      );
      const clamped = Math.min(Math.max(bytes, MIN_IMAGE_BYTES), max);
      return Math.floor((MAX_SCORE * (clamped - MIN_IMAGE_BYTES)) / (max - MIN_IMAGE_BYTES));
    });
  },
};
