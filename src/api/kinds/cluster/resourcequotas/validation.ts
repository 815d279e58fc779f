/** Validation of resource quotas. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateResourceQuota. */
import type { ResourceQuota, ResourceQuotaSpec } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { IMMUTABLE_MESSAGE, isSet } from '../../../meta/validation.ts';
import { validateResourceQuantity } from '../../../podspec/containers/resources.ts';
import { validateQuotaResourceName } from '../../../validation/resource-names.ts';

const SCOPES = [
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'PriorityClass',
  'Terminating',
  'VolumeAttributesClass',
];
/** Maximum number of resources of a quota. Admission reads all of them for each object created in the namespace. */
const MAX_RESOURCES = 2_000;
/** Scopes that only support the operator Exists, without values. */
const BARE_SCOPES = new Set([
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'Terminating',
]);
/** Resource names that are checked against the scopes of the quota. */
const STANDARD = new Set([
  ...['', 'requests.', 'limits.'].flatMap((prefix) =>
    ['cpu', 'memory', 'ephemeral-storage'].map((name) => `${prefix}${name}`),
  ),
  'requests.storage',
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
]);
const OPPOSITES = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;

export function validateQuota(quota: ResourceQuota): FieldError[] {
  return [
    ...validateAmounts(quota.spec?.hard, 'spec.hard'),
    ...validateScopes(quota.spec),
    ...validateScopeSelector(quota.spec),
  ];
}

export function validateQuotaUpdate(quota: ResourceQuota, old: ResourceQuota): FieldError[] {
  const errors: FieldError[] = [];
  const scopes = (each: ResourceQuota): string[] => [...new Set(each.spec?.scopes)].sort();
  if (!semanticEqual(scopes(quota), scopes(old))) {
    errors.push(fieldError.invalid('spec.scopes', quota.spec?.scopes ?? null, IMMUTABLE_MESSAGE));
  }
  if (!semanticEqual(quota.spec?.scopeSelector, old.spec?.scopeSelector)) {
    errors.push(fieldError.invalid('spec.scopeSelector', quota.spec?.scopeSelector ?? null, IMMUTABLE_MESSAGE));
  }
  return errors;
}

export function validateQuotaStatus(quota: ResourceQuota): FieldError[] {
  return [...validateAmounts(quota.status?.hard, 'status.hard'), ...validateAmounts(quota.status?.used, 'status.used')];
}

function validateAmounts(amounts: Readonly<Record<string, string>> | undefined, path: string): FieldError[] {
  const entries = Object.entries(amounts ?? {});
  if (entries.length > MAX_RESOURCES) return [fieldError.tooMany(path, entries.length, MAX_RESOURCES)];
  return entries.flatMap(([name, value]) => [
    ...validateQuotaResourceName(name, `${path}[${name}]`),
    ...validateResourceQuantity(name, value, `${path}[${name}]`),
  ]);
}

const isComputed = (name: string): boolean =>
  /^(?:(?:requests|limits)\.)?(?:cpu|memory)$/.test(name) || name === 'pods';

/**
 * Whether the scope may be used with the resource. Scopes select pods; best-effort pods have no compute resources and
 * can only be counted.
 */
function applies(scope: string, resource: string): boolean {
  switch (scope) {
    case 'Terminating':
    case 'NotTerminating':
    case 'NotBestEffort':
    case 'PriorityClass':
    case 'CrossNamespacePodAffinity':
      return isComputed(resource);
    case 'BestEffort':
      return resource === 'pods';
    default:
      return true;
  }
}

const standardNames = ({ hard = {} }: ResourceQuotaSpec = {}): string[] =>
  Object.keys(hard).filter((name) => STANDARD.has(name));

function validateScopes(spec: ResourceQuotaSpec | undefined): FieldError[] {
  const path = 'spec.scopes';
  const scopes = spec?.scopes ?? [];
  const limited = standardNames(spec);
  const errors: FieldError[] = [];
  for (const scope of new Set(scopes)) {
    if (!SCOPES.includes(scope)) errors.push(fieldError.invalid(path, scopes, 'unsupported scope'));
    for (const name of limited) {
      if (!applies(scope, name)) {
        errors.push(fieldError.invalid(path, scopes, 'unsupported scope applied to resource'));
      }
    }
  }
  for (const [one, other] of OPPOSITES) {
    if (scopes.includes(one) && scopes.includes(other)) {
      errors.push(fieldError.invalid(path, scopes, 'conflicting scopes'));
    }
  }
  return errors;
}

function validateScopeSelector(spec: ResourceQuotaSpec | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const path = 'spec.scopeSelector.matchExpressions';
  const limited = standardNames(spec);
  const names = new Set<string>();
  for (const expression of spec?.scopeSelector?.matchExpressions ?? []) {
    const { scopeName, operator } = expression;
    const values = expression.values ?? [];
    const at = path;
    if (!SCOPES.includes(scopeName)) {
      errors.push(fieldError.invalid(`${at}.scopeName`, scopeName ?? '', 'unsupported scope'));
    }
    for (const name of limited) {
      if (!applies(scopeName, name)) {
        errors.push(fieldError.invalid(path, spec?.scopeSelector, 'unsupported scope applied to resource'));
      }
    }
    if (BARE_SCOPES.has(scopeName) && operator !== 'Exists') {
      errors.push(
        fieldError.invalid(
          `${at}.operator`,
          operator,
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        ),
      );
    }
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0) {
        errors.push(
          fieldError.required(
            `${at}.values`,
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
          ),
        );
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        errors.push(
          fieldError.invalid(
            `${at}.values`,
            values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
          ),
        );
      }
    } else {
      errors.push(fieldError.invalid(`${at}.operator`, operator ?? '', 'not a valid selector operator'));
    }
    if (isSet(scopeName)) names.add(scopeName);
  }
  for (const [one, other] of OPPOSITES) {
    if (names.has(one) && names.has(other)) {
      errors.push(fieldError.invalid(path, spec?.scopeSelector?.matchExpressions, 'conflicting scopes'));
    }
  }
  return errors;
}
