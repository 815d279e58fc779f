/**
 * Validation of label and field selectors in access reviews. Source:
 * k8s.io/kubernetes/pkg/apis/authorization/validation, k8s.io/apimachinery/pkg/apis/meta/v1/validation.
 */

import { labelValueErrors, qualifiedNameErrors } from '../../../../base/names.ts';
import type { ResourceAttributes } from '../../../generated/authorization/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';

export interface WrittenSelector {
  readonly rawSelector?: string;
  readonly requirements?: ReadonlyArray<{
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }>;
}

const SELECTORS = ['fieldSelector', 'labelSelector'] as const;
type SelectorName = (typeof SELECTORS)[number];

export type SelectingAttributes = ResourceAttributes & { readonly [name in SelectorName]?: WrittenSelector };

export function selectorErrors(attributes: SelectingAttributes, path: string): FieldError[] {
  return SELECTORS.flatMap((name) => {
    const written = attributes[name];
    return written === undefined ? [] : errorsOf(name, written, `${path}.${name}`);
  });
}

function errorsOf(
  name: SelectorName,
  { rawSelector = '', requirements = [] }: WrittenSelector,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (rawSelector !== '' && requirements.length > 0)
    errors.push(
      fieldError.invalid(`${path}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'),
    );
  if (rawSelector === '' && requirements.length === 0)
    errors.push(
      fieldError.required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    );
  for (const [index, { key = '', operator, values = [] }] of requirements.entries()) {
    const at = `${path}.requirements[${index}]`;
    if (name === 'fieldSelector' && key === '') errors.push(fieldError.required(`${at}.key`, 'must be specified'));
    if ((operator === 'In' || operator === 'NotIn') && values.length === 0)
      errors.push(fieldError.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0)
      errors.push(
        fieldError.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
    if (name === 'fieldSelector') continue;
    for (const what of qualifiedNameErrors(key)) errors.push(fieldError.invalid(`${at}.key`, key, what));
    for (const [place, value] of values.entries())
      for (const what of labelValueErrors(value))
        errors.push(fieldError.invalid(`${at}.values[${place}]`, value, what));
  }
  return errors;
}
