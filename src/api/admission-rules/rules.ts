/**
 * Rules, match conditions and match resources of webhooks and admission policies. Source:
 * k8s.io/kubernetes/pkg/apis/admissionregistration/{v1,validation}.
 */

import { pathSegmentErrors, qualifiedNameErrors } from '../../base/names.ts';
import type { MatchCondition, MatchResources, RuleWithOperations } from '../generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule, validateOneOf, validateOptionalOneOf } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const MAX_CONDITIONS = 64;

/** Rule with the fields that the generated type lacks. Only rules of policies have resource names. */
type Rule = RuleWithOperations & { scope?: string; resources?: string[]; resourceNames?: string[] };

export function setRuleDefaults(rules: readonly Rule[] | undefined): void {
  for (const rule of rules ?? []) rule.scope ??= '*';
}

export function setMatchDefaults(match: MatchResources): void {
  match.matchPolicy ??= 'Equivalent';
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  setRuleDefaults(match.resourceRules);
  setRuleDefaults(match.excludeResourceRules);
}

export function validateRules(rules: readonly Rule[] | undefined, path: string): FieldError[] {
  return (rules ?? []).flatMap((rule, index) => validateRule(rule, `${path}[${index}]`));
}

function validateRule(rule: Rule, at: string): FieldError[] {
  const errors = validateNames(rule.resourceNames ?? [], `${at}.resourceNames`);
  const operations = rule.operations ?? [];
  if (operations.length === 0) errors.push(fieldError.required(`${at}.operations`));
  errors.push(...loneStar(operations, `${at}.operations`, 'operations'));
  operations.forEach((operation, index) => {
    errors.push(...validateOneOf(operation, OPERATIONS, `${at}.operations[${index}]`));
  });
  for (const [field, noun] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    const values = rule[field] ?? [];
    if (values.length === 0) errors.push(fieldError.required(`${at}.${field}`));
    errors.push(...loneStar(values, `${at}.${field}`, noun));
    if (field === 'apiVersions') {
      values.forEach((value, index) => {
        if (value === '') errors.push(fieldError.required(`${at}.${field}[${index}]`));
      });
    }
  }
  errors.push(...validateResources(rule.resources ?? [], `${at}.resources`));
  if (rule.scope !== undefined) {
    errors.push(...validateOptionalOneOf(rule.scope, ['*', 'Cluster', 'Namespaced'], `${at}.scope`));
  }
  return errors;
}

function validateNames(names: readonly string[], path: string): FieldError[] {
  return names.flatMap((name, index) => {
    const at = `${path}[${index}]`;
    const errors = validateNameRule(name, pathSegmentErrors, at);
    return names.indexOf(name) === index ? errors : [...errors, fieldError.duplicate(at, name)];
  });
}

function loneStar(values: readonly string[], path: string, noun: string): FieldError[] {
  return values.length > 1 && values.includes('*')
    ? [fieldError.invalid(path, values, `if '*' is present, must not specify other ${noun}`)]
    : [];
}

/**
 * Validates the resources of a rule. As upstream, a wildcard conflicts only with entries after it. Of the entries for
 * whole resources, only the last one is checked.
 */
function validateResources(resources: readonly string[], path: string): FieldError[] {
  if (resources.length === 0) return [fieldError.required(path)];
  const errors: FieldError[] = [];
  const wholeOf = new Set<string>();
  const everywhere = new Set<string>();
  let lastIsWhole = false;
  resources.forEach((resource, index) => {
    const at = `${path}[${index}]`;
    if (resource === '') {
      errors.push(fieldError.required(at));
      return;
    }
    const slash = resource.indexOf('/');
    if (slash < 0) {
      lastIsWhole = resource !== '*';
      return;
    }
    const name = resource.slice(0, slash);
    const sub = resource.slice(slash + 1);
    for (const [covered, pattern] of [
      [wholeOf.has(name), `${name}/*`],
      [everywhere.has(sub), `*/${sub}`],
    ] as const) {
      if (covered) {
        errors.push(fieldError.invalid(at, resource, `if '${pattern}' is present, must not specify ${resource}`));
      }
    }
    if (sub === '*') wholeOf.add(name);
    if (name === '*') everywhere.add(sub);
  });
  if (resources.includes('*/*') && resources.length > 1) {
    errors.push(fieldError.invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && lastIsWhole) {
    errors.push(
      fieldError.invalid(path, resources, "if '*' is present, must not specify other resources without subresources"),
    );
  }
  return errors;
}

export function validateMatchResources(match: MatchResources | undefined, path: string): FieldError[] {
  if (match === undefined) return [];
  return [
    ...validateOptionalOneOf(match.matchPolicy, ['Equivalent', 'Exact'], `${path}.matchPolicy`),
    ...validateLabelSelector(match.namespaceSelector, `${path}.namespaceSelector`),
    ...validateLabelSelector(match.objectSelector, `${path}.objectSelector`),
    ...validateRules(match.resourceRules, `${path}.resourceRules`),
    ...validateRules(match.excludeResourceRules, `${path}.excludeResourceRules`),
  ];
}

export function validateMatchConditions(conditions: readonly MatchCondition[] | undefined, path: string): FieldError[] {
  const given = conditions ?? [];
  const errors: FieldError[] = [];
  if (given.length > MAX_CONDITIONS) errors.push(fieldError.tooMany(path, given.length, MAX_CONDITIONS));
  const names = new Set<string>();
  given.slice(0, MAX_CONDITIONS).forEach((condition, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(condition.expression?.trim())) errors.push(fieldError.required(`${at}.expression`));
    if (!isSet(condition.name)) {
      errors.push(fieldError.required(`${at}.name`));
      return;
    }
    errors.push(...validateNameRule(condition.name, qualifiedNameErrors, `${at}.name`));
    if (names.has(condition.name)) errors.push(fieldError.duplicate(`${at}.name`, condition.name));
    names.add(condition.name);
  });
  return errors;
}
