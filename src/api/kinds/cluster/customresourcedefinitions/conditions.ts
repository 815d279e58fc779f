/**
 * Conditions of a CustomResourceDefinition. Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/helpers.go.
 */
import type { CustomResourceDefinition } from '../../../generated/apiextensions/v1.ts';

export type ConditionType =
  | 'Established'
  | 'NamesAccepted'
  | 'NonStructuralSchema'
  | 'StorageMigrating'
  | 'Terminating'
  | 'KubernetesAPIApprovalPolicyConformant';

export interface Condition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

export function isConditionTrue(definition: CustomResourceDefinition, type: ConditionType): boolean {
  return (definition.status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');
}

/** Sets a condition and returns whether anything changed. The transition time changes only with the status. */
export function setCondition(definition: CustomResourceDefinition, condition: Condition, now: string): boolean {
  definition.status ??= {};
  const { status } = definition;
  status.conditions ??= [];
  const known = status.conditions.find((each) => each.type === condition.type);
  if (known === undefined) {
    status.conditions.push({ lastTransitionTime: now, ...condition } as (typeof status.conditions)[number]);
    return true;
  }
  if (known.status === condition.status && known.reason === condition.reason && known.message === condition.message)
    return false;
  if (known.status !== condition.status) known.lastTransitionTime = now;
  Object.assign(known, condition);
  return true;
}

export function dropCondition({ status }: CustomResourceDefinition, type: ConditionType): void {
  if (status?.conditions?.some((each) => each.type === type) !== true) return;
  status.conditions = status.conditions.filter((each) => each.type !== type);
}
