/** Validation of label selectors in specs. Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation. */

import { labelValueErrors, qualifiedNameErrors } from '../../base/names.ts';
import type { LabelSelector } from '../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateLabels } from '../meta/validation.ts';

const OPERATORS = ['DoesNotExist', 'Exists', 'In', 'NotIn'];

export function validateLabelSelector(selector: LabelSelector | undefined, path: string): FieldError[] {
  const errors = validateLabels(selector?.matchLabels, `${path}.matchLabels`);
  (selector?.matchExpressions ?? []).forEach((expression, index) => {
    const at = `${path}.matchExpressions[${index}]`;
    const count = expression.values?.length ?? 0;
    if (expression.operator === 'In' || expression.operator === 'NotIn') {
      if (count === 0) {
        errors.push(fieldError.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (expression.operator === 'Exists' || expression.operator === 'DoesNotExist') {
      if (count > 0) {
        errors.push(
          fieldError.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        );
      }
    } else if (!OPERATORS.includes(expression.operator)) {
      errors.push(fieldError.invalid(`${at}.operator`, expression.operator ?? '', 'not a valid selector operator'));
    }
    for (const message of qualifiedNameErrors(expression.key ?? '')) {
      errors.push(fieldError.invalid(`${at}.key`, expression.key ?? '', message));
    }
    (expression.values ?? []).forEach((value, valueIndex) => {
      for (const message of labelValueErrors(value)) {
        errors.push(fieldError.invalid(`${at}.values[${valueIndex}]`, value, message));
      }
    });
  });
  return errors;
}

export function isEmptySelector(selector: LabelSelector | undefined): boolean {
  return Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0) === 0;
}
