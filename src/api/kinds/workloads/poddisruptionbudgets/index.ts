/**
 * Pod disruption budgets. Source: k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget,
 * pkg/apis/policy/validation.
 */
import type { PodDisruptionBudget } from '../../../generated/policy/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindAlias, KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateStandardConditions } from '../../../validation/conditions.ts';
import {
  percentOf,
  validateCountOrPercent,
  validateNonNegative,
  validateOptionalOneOf,
} from '../../../validation/scalars.ts';
import { isEmptySelector, validateLabelSelector } from '../../../validation/selectors.ts';

type Budget = PodDisruptionBudget;

const { strategy, statusStrategy } = specStatusStrategies<Budget>({
  initialStatus: () => ({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
  validate: validateBudget,
  validateStatusUpdate: validateStatus,
});

function validateBudget(budget: Budget): FieldError[] {
  const spec = budget.spec ?? {};
  const errors: FieldError[] = [];
  if (spec.minAvailable !== undefined && spec.maxUnavailable !== undefined) {
    errors.push(fieldError.invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  for (const field of ['minAvailable', 'maxUnavailable'] as const) {
    errors.push(...validateCountOrPercent(spec[field], `spec.${field}`));
    if ((percentOf(spec[field]) ?? 0) > 100) {
      errors.push(fieldError.invalid(`spec.${field}`, spec[field], 'must not be greater than 100%'));
    }
  }
  errors.push(...validateLabelSelector(spec.selector, 'spec.selector'));
  errors.push(
    ...validateOptionalOneOf(
      spec.unhealthyPodEvictionPolicy,
      ['AlwaysAllow', 'IfHealthyBudget'],
      'spec.unhealthyPodEvictionPolicy',
    ),
  );
  return errors;
}

/**
 * Label that no object has. An empty selector has different meanings in v1 and v1beta1; with this label, a selector in
 * one version expresses the meaning of the other version.
 */
const NOBODYS_LABEL = 'pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match';
const SELECTS_NONE = { matchExpressions: [{ key: NOBODYS_LABEL, operator: 'Exists' }] };
const SELECTS_ALL = { matchExpressions: [{ key: NOBODYS_LABEL, operator: 'DoesNotExist' }] };

/** An empty selector selects no pods in v1beta1 and all pods in v1. */
function withSelector(budget: Budget, from: object, to: NonNullable<Budget['spec']>['selector']): Budget {
  const selector = budget.spec?.selector;
  if (selector === undefined) return budget;
  const empty = isEmptySelector(selector);
  if (empty) return { ...budget, spec: { ...budget.spec, selector: structuredClone(to ?? {}) } };
  return semanticEqual(selector, from) ? { ...budget, spec: { ...budget.spec, selector: {} } } : budget;
}

const olderBudget: KindAlias<Budget> = {
  group: 'policy',
  version: 'v1beta1',
  deprecated: { since: '1.21', removed: '1.25' },
  convertTo: (object) => withSelector(object as Budget, SELECTS_ALL, SELECTS_NONE),
  convertFrom: (budget) => withSelector(budget, SELECTS_NONE, SELECTS_ALL),
};

const COUNTS = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'] as const;

function validateStatus(budget: Budget): FieldError[] {
  return [
    ...validateStandardConditions(budget.status?.conditions ?? [], 'status.conditions'),
    ...COUNTS.flatMap((field) => validateNonNegative(budget.status?.[field], `status.${field}`)),
  ];
}

export const podDisruptionBudgets: KindDefinition<Budget> = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  singular: 'poddisruptionbudget',
  listKind: 'PodDisruptionBudgetList',
  namespaced: true,
  shortNames: ['pdb'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.policy.v1.PodDisruptionBudget',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'poddisruptionbudgets',
  // As upstream, the name only needs to be a valid path segment.
  nameRule: 'pathSegment',
  allowUnconditionalUpdate: false,
  aliases: [olderBudget],
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Budget>('Min Available', 'Minimum number of available pods.', (each) =>
      String(each.spec?.minAvailable ?? 'N/A'),
    ),
    column<Budget>('Max Unavailable', 'Maximum number of unavailable pods.', (each) =>
      String(each.spec?.maxUnavailable ?? 'N/A'),
    ),
    column<Budget>(
      'Allowed Disruptions',
      'Number of pods that may be evicted now.',
      (each) => each.status?.disruptionsAllowed ?? 0,
      { type: 'integer' },
    ),
    ageColumn,
  ],
};
