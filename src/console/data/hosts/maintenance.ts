/** Firing alerts with their fixes, and maintenance facts, both from conditions that hosts set on their nodes. */
import { ruleGroups } from '../../../alerts/core/rules.ts';
import type { Node } from '../../../api/generated/core/v1.ts';
import { conditionOf } from '../api/resources.ts';

export interface FiringAlert {
  readonly name: string;
  readonly node: string;
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  readonly fix: string;
}

export interface MaintenanceFacts {
  readonly node: string;
  readonly text: string;
  readonly needsAttention: boolean;
}

const ALERTS = 'HyperedgeAlerts';
/** Matches `NAME (SEVERITY)`, the form in which the host writes alerts into the condition. */
const ENTRY = /(\w+) \((critical|warning)\)/g;
const OTHER_FIX = 'Run "hyperedge alerts" on the host.';
const DATE = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/** Firing alerts, critical ones first. */
export function alertsOf(nodes: readonly Node[]): readonly FiringAlert[] {
  const rules = new Map(ruleGroups.flatMap((group) => group.rules).map((rule) => [rule.alert, rule]));
  const alerts = nodes.flatMap((node): FiringAlert[] => {
    const name = node.metadata?.name ?? '';
    const condition = conditionOf(node, ALERTS);
    if (condition?.status !== 'True') return [];
    return [...condition.message.matchAll(ENTRY)].map(([, alert = '', severity]) => {
      const { summary = '', action = OTHER_FIX } = rules.get(alert)?.annotations ?? {};
      return {
        name: alert,
        node: name,
        severity: severity === 'critical' ? 'critical' : 'warning',
        summary: textOf(summary, name),
        fix: action,
      };
    });
  });
  return alerts.sort((a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical'));
}

/** Text of a rule with the node as instance. Other labels are unknown, because the condition does not contain them. */
const textOf = (template: string, node: string): string =>
  template
    .replaceAll(/\{\{\s*\$labels\.instance\s*\}\}/g, node)
    .replaceAll(/\{\{\s*\$labels\.job\s*\}\}/g, 'A component')
    .replaceAll(/\{\{[^}]*\}\}\s*/g, '');

/** The certificate in the cluster that expires next; further certificates only if they need attention. */
export const expiriesOf = (nodes: readonly Node[]): readonly MaintenanceFacts[] =>
  shortened(factsOf(nodes, 'CertificateExpiresSoon').toSorted((a, b) => (dateOf(a) < dateOf(b) ? -1 : 1)));

/** The newest snapshot of the cluster; further snapshots only if they need attention. */
export const snapshotsOf = (nodes: readonly Node[]): readonly MaintenanceFacts[] =>
  shortened(factsOf(nodes, 'SnapshotOverdue').toSorted((a, b) => (dateOf(a) > dateOf(b) ? -1 : 1)));

const dateOf = ({ text }: MaintenanceFacts): string => DATE.exec(text)?.[0] ?? '';

const shortened = (all: readonly MaintenanceFacts[]): readonly MaintenanceFacts[] =>
  all.filter(({ needsAttention }, index) => index === 0 || needsAttention);

function factsOf(nodes: readonly Node[], type: string): readonly MaintenanceFacts[] {
  return nodes.flatMap((node) => {
    const condition = conditionOf(node, type);
    if (condition === undefined) return [];
    return [{ node: node.metadata?.name ?? '', text: condition.message, needsAttention: condition.status === 'True' }];
  });
}
