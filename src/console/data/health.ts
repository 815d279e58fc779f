/** Health of the cluster as one sentence, with the problems that cause it. */

import type { Node, Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { countText } from '../../base/text/count-text.ts';
import { type AnyObject, conditionOf, conditionsOf } from './api/resources.ts';
import { explainRig } from './hosts/explain-rig.ts';
import { PRESSURES } from './hosts/node-state.ts';
import { explainPod, podStatusText } from './pods/explain.ts';

export interface Problem {
  readonly severity: 'warning' | 'error';
  readonly title: string;
  readonly detail: string;
  /** Path, below the console's root, of the page with details. */
  readonly link: string;
  /** Number of objects with the problem. Default: 1. */
  readonly count?: number;
}

export interface ClusterHealth {
  readonly level: 'good' | 'warning' | 'error' | 'unknown';
  readonly sentence: string;
  readonly problems: readonly Problem[];
}

export interface HealthFacts {
  /** Nodes, pods and operators; undefined while a list is pending or if the user may not read it. */
  readonly nodes: readonly Node[] | undefined;
  readonly pods: readonly Pod[] | undefined;
  readonly operators: readonly AnyObject[] | undefined;
  readonly rigs?: readonly AnyObject[] | undefined;
}

/** Reasons of waiting containers that usually do not resolve themselves. */
const STUCK = /BackOff|Err|Error|Invalid|Failed|Evicted|OOMKilled/;

export function clusterHealth({ nodes, pods, operators, rigs }: HealthFacts): ClusterHealth {
  const problems: Problem[] = [
    ...(nodes ?? []).flatMap(problemsOfNode),
    ...(operators ?? []).flatMap(problemsOfOperator),
    ...rigProblems(rigs ?? [], nodes ?? []),
    ...podProblems(pods ?? [], nodes ?? []),
  ];
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const warnings = problems.reduce((sum, { severity, count = 1 }) => sum + (severity === 'warning' ? count : 0), 0);
  if (nodes === undefined) return { level: 'unknown', sentence: 'The state of the nodes is not known.', problems };
  const size = `${countText(nodes.length, 'node')}${pods === undefined ? '' : ` and ${countText(pods.length, 'pod')}`}`;
  if (errors > 0) {
    const attention = countText(errors, 'problem needs', 'problems need');
    const others = warnings === 0 ? '' : `, with ${countText(warnings, 'warning')}`;
    return { level: 'error', sentence: `${attention} attention on ${size}${others}.`, problems };
  }
  if (problems.length > 0)
    return {
      level: 'warning',
      sentence: `The cluster works, with ${countText(warnings, 'warning')} on ${size}.`,
      problems,
    };
  return { level: 'good', sentence: `The cluster is healthy: ${size}.`, problems };
}

function problemsOfNode(node: Node): Problem[] {
  const name = node.metadata?.name ?? '';
  const link = `/nodes/${encodeURIComponent(name)}`;
  const problems: Problem[] = [];
  const ready = conditionOf(node, 'Ready');
  if (ready?.status !== 'True') {
    const title = ready?.status === 'Unknown' ? `Node ${name} does not answer.` : `Node ${name} is not ready.`;
    problems.push({ severity: 'error', title, detail: ready?.message ?? '', link });
  }
  for (const { type, status, message } of conditionsOf(node))
    if (PRESSURES.includes(type) && status === 'True')
      problems.push({ severity: 'warning', title: `Node ${name} reports ${type}.`, detail: message, link });
  if (node.spec?.unschedulable === true)
    problems.push({
      severity: 'warning',
      title: `Node ${name} is cordoned.`,
      detail: 'It takes no new pods until it is uncordoned.',
      link,
    });
  return problems;
}

function problemsOfOperator(operator: AnyObject): Problem[] {
  const name = operator.metadata?.name ?? '';
  const link = '/operators';
  const available = conditionOf(operator, 'Available');
  const degraded = conditionOf(operator, 'Degraded');
  if (available?.status === 'False')
    return [{ severity: 'error', title: `${name} is not available.`, detail: available.message, link }];
  if (degraded?.status === 'True')
    return [{ severity: 'warning', title: `${name} is degraded.`, detail: degraded.message, link }];
  return [];
}

const rigProblems = (rigs: readonly AnyObject[], nodes: readonly Node[]): Problem[] =>
  rigs.flatMap((rig) => {
    const name = rig.metadata?.name ?? '';
    return explainRig(rig, nodes)
      .slice(0, 1)
      .map(({ title }) => ({
        severity: 'warning',
        title: `Rig ${name} does not answer.`,
        detail: title,
        link: `/rigs/${encodeURIComponent(name)}`,
      }));
  });

const MAX_PODS = 20;

/** Warnings about pods that do not run: one for each of the first 20, and one for the number of the others. */
export function podProblems(pods: readonly Pod[], nodes: readonly Node[]): Problem[] {
  const stuck = pods.filter((pod) => STUCK.test(podStatusText(pod)) || isUnschedulable(pod));
  const count = stuck.length - MAX_PODS;
  const others: Problem = {
    severity: 'warning',
    title: `${countText(count, 'other pod does', 'other pods do')} not run.`,
    detail: 'The page Pods shows all of them.',
    link: '/pods',
    count,
  };
  const first = stuck.slice(0, MAX_PODS).map((pod): Problem => {
    const { name = '', namespace = '' } = pod.metadata ?? {};
    return {
      severity: 'warning',
      title: `Pod ${namespace}/${name}: ${isUnschedulable(pod) ? 'no node can run it' : podStatusText(pod)}.`,
      detail: explainPod({ pod, events: [], nodes, nowMs: 0 })[0]?.title ?? '',
      link: `/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`,
    };
  });
  return count > 0 ? [...first, others] : first;
}

const isUnschedulable = (pod: KubeObject): boolean => conditionOf(pod, 'PodScheduled')?.reason === 'Unschedulable';
