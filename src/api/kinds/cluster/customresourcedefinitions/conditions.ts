/**
 * Conditions of a CustomResourceDefinition. Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/helpers.go.
 */

import type { CustomResourceDefinition } from '../../../generated/apiextensions/v1.ts';
import { findCondition, withCondition } from '../../../meta/conditions.ts';

export type ConditionType =
  | 'Established'
  | 'NamesAccepted'
  | 'NonStructuralSchema'
  | 'StorageMigrating'
  | 'Terminating'
  | 'KubernetesAPIApprovalPolicyConformant';

export interface DefinitionCondition {
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
export function setCondition(
  definition: CustomResourceDefinition,
  condition: DefinitionCondition,
  now: string,
): boolean {
  definition.status ??= {};
  const { status } = definition;
  const known = findCondition(status.conditions, condition.type);
  if (known?.status === condition.status && known.reason === condition.reason && known.message === condition.message)
    return false;
  status.conditions = withCondition(status.conditions, { ...known, ...condition }, now);
  return true;
}

export function dropCondition({ status }: CustomResourceDefinition, type: ConditionType): void {
  if (status?.conditions?.some((each) => each.type === type) !== true) return;
  status.conditions = status.conditions.filter((each) => each.type !== type);
}
