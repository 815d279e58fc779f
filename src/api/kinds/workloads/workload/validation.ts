/** Validation rules that workload kinds share. Source: k8s.io/kubernetes/pkg/apis/apps/validation. */

import { labelSelectorOf, matchesLabels } from '../../../../base/selector.ts';
import type { PodTemplateSpec } from '../../../generated/core/v1.ts';
import type { LabelSelector } from '../../../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validatePodTemplate } from '../../../podspec/validate.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';
import { isEmptySelector, validateLabelSelector } from '../../../validation/selectors.ts';

/**
 * Validates the selector of a workload. `noun` names its kind in the error "empty selector is invalid for deployment".
 */
export function validateWorkloadSelector(selector: LabelSelector | undefined, noun: string): FieldError[] {
  if (selector === undefined) return [fieldError.required('spec.selector')];
  const errors = validateLabelSelector(selector, 'spec.selector');
  if (errors.length > 0) errors.push(fieldError.invalid('spec.selector', selector, 'invalid label selector'));
  if (isEmptySelector(selector)) {
    errors.push(fieldError.invalid('spec.selector', selector, `empty selector is invalid for ${noun}`));
  }
  return errors;
}

/**
 * Requires that the selector matches the template's labels and that the pods restart always. `noun` is used in the
 * error, for example "ReplicaSet".
 */
export function validateWorkloadTemplate(
  template: PodTemplateSpec | undefined,
  selector: LabelSelector | undefined,
  noun: string,
): FieldError[] {
  const path = 'spec.template';
  const errors: FieldError[] = [];
  if (selector !== undefined && !isEmptySelector(selector) && !selects(selector, template)) {
    errors.push(
      fieldError.invalid(
        `${path}.metadata.labels`,
        template?.metadata?.labels ?? null,
        '`selector` does not match template `labels`',
      ),
    );
  }
  errors.push(...validatePodTemplate(template, path));
  errors.push(...validateLongRunning(template, noun));
  return errors;
}

/** The collision count must not decrease. */
export function validateCollisions(count: number | undefined, before: number | undefined): FieldError[] {
  const path = 'status.collisionCount';
  const errors = validateNonNegative(count, path);
  if (before !== undefined && (count ?? 0) < before) {
    errors.push(fieldError.invalid(path, count ?? 0, 'cannot be decremented'));
  }
  return errors;
}

export function validateLongRunning(template: PodTemplateSpec | undefined, noun: string): FieldError[] {
  const errors: FieldError[] = [];
  const policy = template?.spec?.restartPolicy;
  if (policy !== undefined && policy !== 'Always') {
    errors.push(fieldError.notSupported('spec.template.spec.restartPolicy', policy, ['Always']));
  }
  if (template?.spec?.activeDeadlineSeconds !== undefined) {
    errors.push(
      fieldError.forbidden(
        'spec.template.spec.activeDeadlineSeconds',
        `activeDeadlineSeconds in ${noun} is not Supported`,
      ),
    );
  }
  return errors;
}

function selects(selector: LabelSelector, template: PodTemplateSpec | undefined): boolean {
  try {
    return matchesLabels(labelSelectorOf(selector), template?.metadata?.labels);
  } catch {
    // Another check reports an invalid selector.
    return true;
  }
}
