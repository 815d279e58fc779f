/** Validation of metav1 conditions. Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation ValidateConditions. */

import { qualifiedNameErrors } from '../../base/names.ts';
import type { Condition } from '../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, utf8Length } from '../meta/validation.ts';
import { validateNameRule } from './scalars.ts';

const STATUSES = ['False', 'True', 'Unknown'];
const REASON = /^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const REASON_RULE =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
const MAX_REASON = 1024;
const MAX_MESSAGE = 32 * 1024;

export function validateStandardConditions(conditions: readonly Partial<Condition>[], path: string): FieldError[] {
  const seen = new Set<string>();
  return conditions.flatMap((condition, index) => {
    const at = `${path}[${index}]`;
    const type = condition.type ?? '';
    const repeated = seen.has(type);
    seen.add(type);
    return [...(repeated ? [fieldError.duplicate(`${at}.type`, type)] : []), ...validateCondition(condition, type, at)];
  });
}

function validateCondition(condition: Partial<Condition>, type: string, at: string): FieldError[] {
  const { status = '', observedGeneration, lastTransitionTime, reason, message = '' } = condition;
  const errors = validateNameRule(type, qualifiedNameErrors, `${at}.type`);
  if (!STATUSES.includes(status)) errors.push(fieldError.notSupported(`${at}.status`, status, STATUSES));
  if ((observedGeneration ?? 0) < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(fieldError.invalid(`${at}.observedGeneration`, observedGeneration, detail));
  }
  if (!isSet(lastTransitionTime)) errors.push(fieldError.required(`${at}.lastTransitionTime`));
  if (!isSet(reason)) errors.push(fieldError.required(`${at}.reason`));
  else {
    if (!REASON.test(reason)) errors.push(fieldError.invalid(`${at}.reason`, reason, REASON_RULE));
    if (utf8Length(reason) > MAX_REASON) errors.push(fieldError.tooLong(`${at}.reason`, MAX_REASON));
  }
  if (utf8Length(message) > MAX_MESSAGE) errors.push(fieldError.tooLong(`${at}.message`, MAX_MESSAGE));
  return errors;
}
