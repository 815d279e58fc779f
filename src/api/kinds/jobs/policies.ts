/** When a job counts as failed or done before all of its pods are. Source: k8s.io/kubernetes/pkg/apis/batch/validation. */
import type { JobSpec } from 'kubernetes-types/batch/v1';
import { qualifiedNameErrors } from '../../../base/names.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { validateNameRule, validateOneOf } from '../../validation/scalars.ts';

const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;
const MAX_CONDITIONS = 20;
const MAX_SUCCESS_RULES = 20;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];

type FailureRule = NonNullable<JobSpec['podFailurePolicy']>['rules'][number];
type ExitCodes = NonNullable<FailureRule['onExitCodes']>;

export function validatePodFailurePolicy(spec: JobSpec, path: string): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  if (rules.length > MAX_RULES) return [fieldError.tooMany(`${path}.rules`, rules.length, MAX_RULES)];
  const containers = new Set(
    [...(spec.template?.spec?.containers ?? []), ...(spec.template?.spec?.initContainers ?? [])].map(
      ({ name }) => name,
    ),
  );
  return rules.flatMap((rule, index) => validateFailureRule(spec, rule, containers, `${path}.rules[${index}]`));
}

function validateFailureRule(
  spec: JobSpec,
  rule: FailureRule,
  containers: ReadonlySet<string>,
  at: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (rule.action === 'FailIndex' && spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.invalid(`${at}.action`, rule.action, 'requires the backoffLimitPerIndex to be set'));
  }
  if (!isSet(rule.action))
    errors.push(fieldError.required(`${at}.action`, `valid values: ${ACTIONS.map((each) => `"${each}"`).join(', ')}`));
  else errors.push(...validateOneOf(rule.action, ACTIONS, `${at}.action`));
  if (rule.onExitCodes !== undefined)
    errors.push(...validateExitCodes(rule.onExitCodes, containers, `${at}.onExitCodes`));
  const conditions = rule.onPodConditions ?? [];
  if (conditions.length > 0) {
    if (conditions.length > MAX_CONDITIONS) {
      errors.push(fieldError.tooMany(`${at}.onPodConditions`, conditions.length, MAX_CONDITIONS));
    }
    conditions.forEach((pattern, index) => {
      const place = `${at}.onPodConditions[${index}]`;
      errors.push(...validateNameRule(pattern.type ?? '', qualifiedNameErrors, `${place}.type`));
      if (!isSet(pattern.status)) {
        errors.push(fieldError.required(`${place}.status`, 'valid values: "False", "True", "Unknown"'));
      } else errors.push(...validateOneOf(pattern.status, ['False', 'True', 'Unknown'], `${place}.status`));
    });
  }
  if (rule.onExitCodes !== undefined && conditions.length > 0) {
    errors.push(fieldError.invalid(at, '', 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (rule.onExitCodes === undefined && conditions.length === 0) {
    errors.push(fieldError.invalid(at, '', 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return errors;
}

function validateExitCodes(codes: ExitCodes, containers: ReadonlySet<string>, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(codes.operator)) errors.push(fieldError.required(`${at}.operator`, 'valid values: "In", "NotIn"'));
  else errors.push(...validateOneOf(codes.operator, ['In', 'NotIn'], `${at}.operator`));
  if (codes.containerName !== undefined && !containers.has(codes.containerName)) {
    errors.push(
      fieldError.invalid(
        `${at}.containerName`,
        codes.containerName,
        'must be one of the container or initContainer names in the pod template',
      ),
    );
  }
  const values = codes.values ?? [];
  if (values.length === 0) errors.push(fieldError.invalid(`${at}.values`, values, 'at least one value is required'));
  else if (values.length > MAX_EXIT_CODES)
    errors.push(fieldError.tooMany(`${at}.values`, values.length, MAX_EXIT_CODES));
  const seen = new Set<number>();
  values.forEach((value, index) => {
    const place = `${at}.values[${index}]`;
    if (codes.operator === 'In' && value === 0) {
      errors.push(fieldError.invalid(place, value, 'must not be 0 for the In operator'));
    }
    if (seen.has(value)) errors.push(fieldError.duplicate(place, value));
    seen.add(value);
  });
  if (values.some((value, index) => index > 0 && value < (values[index - 1] ?? 0))) {
    errors.push(fieldError.invalid(`${at}.values`, values, 'must be ordered'));
  }
  return errors;
}

export function validateSuccessPolicy(spec: JobSpec, path: string): FieldError[] {
  const rules =
    (spec.successPolicy as { rules?: { succeededCount?: number; succeededIndexes?: string }[] }).rules ?? [];
  const errors: FieldError[] = [];
  if (spec.completionMode !== 'Indexed') {
    return [fieldError.invalid(path, spec.successPolicy, 'requires indexed completion mode')];
  }
  if (rules.length === 0) errors.push(fieldError.required(`${path}.rules`, 'at least one rules must be specified'));
  if (rules.length > MAX_SUCCESS_RULES)
    errors.push(fieldError.tooMany(`${path}.rules`, rules.length, MAX_SUCCESS_RULES));
  rules.forEach((rule, index) => {
    const at = `${path}.rules[${index}]`;
    if (rule.succeededCount === undefined && rule.succeededIndexes === undefined) {
      errors.push(fieldError.required(at, 'at least one of succeededCount or succeededIndexes must be specified'));
    }
    const indexes =
      rule.succeededIndexes === undefined ? undefined : countIndexes(rule.succeededIndexes, spec.completions ?? 0);
    if (typeof indexes === 'string') {
      errors.push(
        fieldError.invalid(
          `${at}.succeededIndexes`,
          rule.succeededIndexes,
          `error parsing succeededIndexes: ${indexes}`,
        ),
      );
    }
    const count = rule.succeededCount;
    if (count === undefined) return;
    if (count <= 0) errors.push(fieldError.invalid(`${at}.succeededCount`, count, 'must be greater than 0'));
    if (spec.completions !== undefined && count > spec.completions) {
      errors.push(
        fieldError.invalid(
          `${at}.succeededCount`,
          count,
          `must be less than or equal to ${spec.completions} (the number of specified completions)`,
        ),
      );
    }
    if (typeof indexes === 'number' && count > indexes) {
      errors.push(
        fieldError.invalid(
          `${at}.succeededCount`,
          count,
          `must be less than or equal to ${indexes} (the number of indexes in the specified succeededIndexes field)`,
        ),
      );
    }
  });
  return errors;
}

/** How many indexes `1,3-5,7` names, or what is wrong with it. */
function countIndexes(text: string, completions: number): number | string {
  let last = -1;
  let count = 0;
  for (const part of text.split(',')) {
    const bounds = part.split('-');
    if (bounds.length > 2)
      return `the fragment "${part}" violates the requirement that an index interval can have at most two parts separated by '-'`;
    const numbers = bounds.map((bound) => (/^\d{1,10}$/.test(bound) ? Number(bound) : Number.NaN));
    const [from = Number.NaN, to = from] = numbers;
    if (Number.isNaN(from) || Number.isNaN(to))
      return `cannot convert string to integer for index: "${bounds.find((_, index) => Number.isNaN(numbers[index])) ?? ''}"`;
    if (from >= completions || to >= completions)
      return `too large index: "${from >= completions ? bounds[0] : bounds[1]}"`;
    if (from <= last) return `non-increasing order, previous: ${last}, current: ${from}`;
    if (bounds.length === 2 && to <= from) return `non-increasing order, previous: ${from}, current: ${to}`;
    count += to - from + 1;
    last = to;
  }
  return count;
}
