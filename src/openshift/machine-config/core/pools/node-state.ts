/**
 * Configuration state of a node according to its annotations and conditions. Source: pkg/controller/node/status.go of
 * openshift/machine-config-operator.
 */
import type { Node } from '../../../../api/generated/core/v1.ts';
import { CONFIG_REASON, CONFIG_STATE, CURRENT_CONFIG, DESIRED_CONFIG } from '../../kinds/machine-config-types.ts';

export function annotationOf(node: Node, name: string): string {
  return node.metadata?.annotations?.[name] ?? '';
}

/** Whether the host has completed the update to its desired configuration. */
export function isDone(node: Node): boolean {
  const current = annotationOf(node, CURRENT_CONFIG);
  return (
    current !== '' && current === annotationOf(node, DESIRED_CONFIG) && annotationOf(node, CONFIG_STATE) === 'Done'
  );
}

export const isDoneAt = (node: Node, config: string): boolean =>
  isDone(node) && annotationOf(node, CURRENT_CONFIG) === config;

const hasFailed = (node: Node): boolean => ['Degraded', 'Unreconcilable'].includes(annotationOf(node, CONFIG_STATE));

/** Whether the host has given up an update. The node may then be given another configuration. */
export const isFailing = (node: Node): boolean =>
  hasFailed(node) && annotationOf(node, CURRENT_CONFIG) !== annotationOf(node, DESIRED_CONFIG);

export const isDegraded = (node: Node): boolean => hasFailed(node) && annotationOf(node, DESIRED_CONFIG) !== '';

export const reasonOf = (node: Node): string => annotationOf(node, CONFIG_REASON);

const GOOD: Readonly<Record<string, string>> = { Ready: 'True', DiskPressure: 'False', NetworkUnavailable: 'False' };

/** Reason why the node is not ready or not schedulable; undefined if it is ready and schedulable. */
export function unreadiness(node: Node): string | undefined {
  const { name = '' } = node.metadata ?? {};
  for (const { type, status } of node.status?.conditions ?? []) {
    if (GOOD[type] !== undefined && GOOD[type] !== status)
      return `node ${name} is reporting ${type === 'Ready' ? 'NotReady' : type}=${status}`;
  }
  return node.spec?.unschedulable === true ? `node ${name} is reporting Unschedulable` : undefined;
}

export const isReady = (node: Node): boolean => unreadiness(node) === undefined;

/** Whether the node counts as unavailable for maxUnavailable: it is not ready, or it is being updated. */
export const isUnavailable = (node: Node): boolean => !isReady(node) || (!isDone(node) && !isFailing(node));
