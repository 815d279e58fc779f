/** Scorers that use the requested resources of a node. Source: upstream's noderesources plug-ins. */

import { type Amounts, CPU, MEMORY } from '../../../api/podspec/scheduling/node-resources.ts';
import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { NodeInfo } from '../node-info.ts';
import type { ResourceWeight, ShapePoint } from '../plugin-args.ts';
import { MAX_SCORE, type ScorerFactory } from './score.ts';

/** Factor from the scores of a shape (0 to 10) to the scores of nodes (0 to 100). */
const SHAPE_SCALE = MAX_SCORE / 10;

export const resourcesFit: ScorerFactory = ({ scoringStrategy: { type, resources, shape } }) => {
  const scoreOf = SCORE_OF[type];
  return (pod, nodes) => nodes.map((node) => average(pod, node, resources, shape, scoreOf));
};

type ScoreOf = (requested: number, allocatable: number, shape: readonly ShapePoint[]) => number;

const SCORE_OF: Readonly<Record<'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio', ScoreOf>> = {
  LeastAllocated: (requested, allocatable) =>
    requested > allocatable ? 0 : Math.floor(((allocatable - requested) * MAX_SCORE) / allocatable),
  MostAllocated: (requested, allocatable) => Math.floor((Math.min(requested, allocatable) * MAX_SCORE) / allocatable),
  RequestedToCapacityRatio: (requested, allocatable, shape) =>
    onShape(requested > allocatable ? 100 : Math.floor((requested * 100) / allocatable), shape),
};

function average(
  pod: PodInfo,
  node: NodeInfo,
  resources: readonly ResourceWeight[],
  shape: readonly ShapePoint[],
  scoreOf: ScoreOf,
): number {
  let sum = 0;
  let weights = 0;
  for (const { name, weight } of resources) {
    const allocatable = node.allocatable.get(name) ?? 0;
    if (allocatable === 0 || !concerns(pod, name)) continue;
    sum += weight * scoreOf((node.assumed.get(name) ?? 0) + (pod.assumed.get(name) ?? 0), allocatable, shape);
    weights += weight;
  }
  return weights === 0 ? 0 : Math.floor(sum / weights);
}

/** Whether the resource counts for the pod. An extended resource counts only if the pod requests it. */
const concerns = (pod: PodInfo, name: string): boolean =>
  name === CPU || name === MEMORY || (pod.requests.get(name) ?? 0) > 0;

/**
 * Value of the shape at this utilization: linear between points, and constant before the first and after the last
 * point.
 */
function onShape(utilization: number, shape: readonly ShapePoint[]): number {
  let before: ShapePoint | undefined;
  for (const point of shape) {
    if (utilization > point.utilization) {
      before = point;
      continue;
    }
    if (before === undefined) return point.score * SHAPE_SCALE;
    const share = (utilization - before.utilization) / (point.utilization - before.utilization);
    return Math.trunc((before.score + share * (point.score - before.score)) * SHAPE_SCALE);
  }
  return (before?.score ?? 0) * SHAPE_SCALE;
}

/**
 * Prefers nodes whose resources are used to a similar degree. A pod that requests none of the resources gets no scores.
 */
export const balancedAllocation: ScorerFactory = ({ balancedResources }) => {
  const names = balancedResources.map(({ name }) => name);
  return (pod, nodes) => {
    if (!names.some((name) => (pod.requests.get(name) ?? 0) > 0)) return undefined;
    const counted = names.filter((name) => concerns(pod, name));
    // One array is reused for all nodes, because one array per node would cause most of the memory allocations of a
    // decision.
    const fractions = counted.map(() => 0);
    return nodes.map((node) => balance(pod.requests, node, counted, fractions));
  };
};

/**
 * Score of a node.
 *
 * @param fractions Array for intermediate results, as long as `names`.
 */
function balance(requests: Amounts, node: NodeInfo, names: readonly string[], fractions: number[]): number {
  let count = 0;
  for (const name of names) {
    const allocatable = node.allocatable.get(name) ?? 0;
    if (allocatable === 0) continue;
    fractions[count++] = Math.min(1, ((node.requested.get(name) ?? 0) + (requests.get(name) ?? 0)) / allocatable);
  }
  return Math.floor((1 - deviation(fractions, count)) * MAX_SCORE);
}

/** Standard deviation of the first `count` fractions. */
function deviation(fractions: readonly number[], count: number): number {
  const first = count > 0 ? (fractions[0] ?? 0) : 0;
  const second = count > 1 ? (fractions[1] ?? 0) : first;
  if (count <= 2) return Math.abs(first - second) / 2;
  const used = fractions.slice(0, count);
  const mean = used.reduce((sum, each) => sum + each, 0) / count;
  return Math.sqrt(used.reduce((sum, each) => sum + (each - mean) ** 2, 0) / count);
}
