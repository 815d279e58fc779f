/** Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateNode, ValidateNodeUpdate. */

import { labelValueErrors, qualifiedNameErrors } from '../../../../base/names.ts';
import type { Node, NodeSpec, Taint } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { validateResourceQuantity } from '../../../podspec/containers/resources.ts';
import { validateCidr, validateNameRule, validateOneOf } from '../../../validation/scalars.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function validateNode(node: Node): FieldError[] {
  const errors = validateTaints(node.spec?.taints, 'metadata.taints');
  const ranges = node.spec?.podCIDRs ?? [];
  ranges.forEach((range, index) => {
    errors.push(...validateCidr(range, `spec.podCIDRs[${index}]`));
  });
  const families = new Set(ranges.map((range) => range.includes(':')));
  if (families.size < ranges.length) {
    errors.push(fieldError.invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family'));
  }
  for (const field of ['capacity', 'allocatable'] as const) {
    for (const [name, text] of Object.entries(node.status?.[field] ?? {})) {
      errors.push(...validateResourceQuantity(name, text, `status.${field}.${name}`));
    }
  }
  return errors;
}

function validateTaints(taints: readonly Taint[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  (taints ?? []).forEach((taint, index) => {
    const at = `${path}[${index}]`;
    errors.push(...validateNameRule(taint.key ?? '', qualifiedNameErrors, `${at}.key`));
    errors.push(...validateNameRule(taint.value ?? '', labelValueErrors, `${at}.value`));
    errors.push(...validateOneOf(taint.effect, EFFECTS, `${at}.effect`));
    const identity = `${taint.effect}/${taint.key}`;
    if (seen.has(identity)) {
      errors.push({
        ...fieldError.duplicate(at, taint),
        message: `Duplicate value: ${JSON.stringify(taint)}: taints must be unique by key and effect pair`,
      });
    }
    seen.add(identity);
  });
  return errors;
}

export function validateNodeUpdate(node: Node, old: Node): FieldError[] {
  const errors: FieldError[] = [];
  const now: NodeSpec = node.spec ?? {};
  const before: NodeSpec = old.spec ?? {};
  const seen = new Set<string>();
  (node.status?.addresses ?? []).forEach((address, index) => {
    const identity = `${address.type} ${address.address}`;
    if (seen.has(identity)) errors.push(fieldError.duplicate(`status.addresses[${index}]`, address));
    seen.add(identity);
  });
  const ranges = before.podCIDRs ?? [];
  if (
    ranges.length > 0 &&
    (ranges.length !== (now.podCIDRs ?? []).length || ranges.some((range, index) => range !== now.podCIDRs?.[index]))
  ) {
    errors.push(fieldError.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if ((before.externalID ?? '') !== (now.externalID ?? '')) {
    errors.push(fieldError.forbidden('spec.externalID', 'may not be updated'));
  }
  if (isSet(before.providerID) && before.providerID !== now.providerID) {
    errors.push(
      fieldError.forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'),
    );
  }
  return errors;
}
