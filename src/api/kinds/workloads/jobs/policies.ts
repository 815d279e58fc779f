/**
 * Validation of podFailurePolicy and successPolicy, which end a job before all of its pods have ended. Source:
 * k8s.io/kubernetes/pkg/apis/batch/validation.
 */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import type { JobSpec } from '../../../generated/batch/v1.ts';
import { type FieldError, fieldError, OMITTED } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { validateNameRule, validateNonNegative, validateOneOf } from '../../../validation/scalars.ts';
import { parseIndexes } from './indexes.ts';

const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;
const MAX_CONDITIONS = 20;
const MAX_SUCCESS_RULES = 20;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const STATUSES = ['False', 'True', 'Unknown'];
const OPERATORS = ['In', 'NotIn'];
const MAX_INDEXES_LENGTH = 64 * 1024;

/** List of values in Go's format. */
const validValues = (all: readonly string[]): string =>
  `valid values: [${all.map((each) => JSON.stringify(each)).join(' ')}]`;

type FailureRule = NonNullable<JobSpec['podFailurePolicy']>['rules'][number];
type ExitCodes = NonNullable<FailureRule['onExitCodes']>;

export function validatePodFailurePolicy(spec: JobSpec, path: string): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const containers = new Set(
    [...(spec.template?.spec?.containers ?? []), ...(spec.template?.spec?.initContainers ?? [])].map(
      ({ name }) => name,
    ),
  );
  return [
    ...(rules.length > MAX_RULES ? [fieldError.tooMany(`${path}.rules`, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, index) => validateFailureRule(spec, rule, containers, `${path}.rules[${index}]`)),
  ];
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
  if (!isSet(rule.action)) errors.push(fieldError.required(`${at}.action`, validValues(ACTIONS)));
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
        errors.push(fieldError.required(`${place}.status`, validValues(STATUSES)));
      } else errors.push(...validateOneOf(pattern.status, STATUSES, `${place}.status`));
    });
  }
  if (rule.onExitCodes !== undefined && conditions.length > 0) {
    errors.push(fieldError.invalid(at, OMITTED, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (rule.onExitCodes === undefined && conditions.length === 0) {
    errors.push(fieldError.invalid(at, OMITTED, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return errors;
}

function validateExitCodes(codes: ExitCodes, containers: ReadonlySet<string>, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(codes.operator)) errors.push(fieldError.required(`${at}.operator`, validValues(OPERATORS)));
  else errors.push(...validateOneOf(codes.operator, OPERATORS, `${at}.operator`));
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
  if (rules.length === 0)
    errors.push(
      fieldError.required(`${path}.rules`, 'at least one rules must be specified when the successPolicy is specified'),
    );
  if (rules.length > MAX_SUCCESS_RULES)
    errors.push(fieldError.tooMany(`${path}.rules`, rules.length, MAX_SUCCESS_RULES));
  rules.forEach((rule, index) => {
    const at = `${path}.rules[${index}]`;
    if (rule.succeededCount === undefined && rule.succeededIndexes === undefined) {
      errors.push(fieldError.required(at, 'at least one of succeededCount or succeededIndexes must be specified'));
    }
    if ((rule.succeededIndexes?.length ?? 0) > MAX_INDEXES_LENGTH) {
      errors.push(fieldError.tooLong(`${at}.succeededIndexes`, MAX_INDEXES_LENGTH));
    }
    const parsed =
      rule.succeededIndexes === undefined ? undefined : parseIndexes(rule.succeededIndexes, spec.completions ?? 0);
    const indexes = typeof parsed === 'object' ? parsed.reduce((sum, [from, to]) => sum + to - from + 1, 0) : parsed;
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
    errors.push(...validateNonNegative(count, `${at}.succeededCount`));
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
