/**
 * Validation of roles and bindings. Privilege escalation is checked by the API server. Source:
 * k8s.io/kubernetes/pkg/apis/rbac/validation, pkg/apis/rbac/v1 defaults.
 */

import { dns1123SubdomainErrors, pathSegmentErrors } from '../../../../base/names.ts';
import type { PolicyRule, RoleRef, Subject } from '../../../generated/rbac/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { validateNameRule } from '../../../validation/scalars.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export function validateRules(
  rules: readonly PolicyRule[] | undefined,
  { namespaced }: { readonly namespaced: boolean },
): FieldError[] {
  return (rules ?? []).flatMap((rule, index) => validateRule(rule, { namespaced }, `rules[${index}]`));
}

function validateRule(rule: PolicyRule, { namespaced }: { readonly namespaced: boolean }, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if ((rule.verbs ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.verbs`, 'verbs must contain at least one value'));
  }
  const urls = rule.nonResourceURLs ?? [];
  if (urls.length > 0) {
    if (namespaced) {
      errors.push(
        fieldError.invalid(`${path}.nonResourceURLs`, urls, 'namespaced rules cannot apply to non-resource URLs'),
      );
    }
    if ([rule.apiGroups, rule.resources, rule.resourceNames].some((each) => (each ?? []).length > 0)) {
      errors.push(
        fieldError.invalid(
          `${path}.nonResourceURLs`,
          urls,
          'rules cannot apply to both regular resources and non-resource URLs',
        ),
      );
    }
    return errors;
  }
  if ((rule.apiGroups ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if ((rule.resources ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.resources`, 'resource rules must supply at least one resource'));
  }
  return errors;
}

interface BindingLike {
  roleRef?: RoleRef;
  subjects?: Subject[];
}

export function setBindingDefaults(binding: BindingLike): void {
  if (binding.roleRef !== undefined && !isSet(binding.roleRef.apiGroup)) binding.roleRef.apiGroup = RBAC_GROUP;
  for (const subject of binding.subjects ?? []) {
    if (subject.apiGroup !== undefined && subject.apiGroup !== '') continue;
    if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup = RBAC_GROUP;
  }
}

/**
 * Validates a binding. `namespaced`: the object is a RoleBinding, whose role may be a Role and whose subjects are in
 * the binding's namespace if they have none.
 */
export function validateBinding(binding: BindingLike, { namespaced }: { readonly namespaced: boolean }): FieldError[] {
  const errors: FieldError[] = [];
  const role = binding.roleRef;
  if (role?.apiGroup !== RBAC_GROUP) {
    errors.push(fieldError.notSupported('roleRef.apiGroup', role?.apiGroup ?? '', [RBAC_GROUP]));
  }
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  if (!kinds.includes(role?.kind ?? '')) errors.push(fieldError.notSupported('roleRef.kind', role?.kind ?? '', kinds));
  if (!isSet(role?.name)) errors.push(fieldError.required('roleRef.name'));
  else errors.push(...validateNameRule(role.name, pathSegmentErrors, 'roleRef.name'));
  (binding.subjects ?? []).forEach((subject, index) => {
    errors.push(...validateSubject(subject, namespaced, `subjects[${index}]`));
  });
  return errors;
}

function validateSubject(subject: Subject, namespaced: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(subject.name)) errors.push(fieldError.required(`${path}.name`));
  switch (subject.kind) {
    case 'ServiceAccount':
      if (isSet(subject.name)) errors.push(...validateNameRule(subject.name, dns1123SubdomainErrors, `${path}.name`));
      if (isSet(subject.apiGroup)) errors.push(fieldError.notSupported(`${path}.apiGroup`, subject.apiGroup, ['']));
      if (!namespaced && !isSet(subject.namespace)) errors.push(fieldError.required(`${path}.namespace`));
      break;
    case 'User':
    case 'Group':
      if (subject.apiGroup !== RBAC_GROUP) {
        errors.push(fieldError.notSupported(`${path}.apiGroup`, subject.apiGroup ?? '', [RBAC_GROUP]));
      }
      break;
    default:
      errors.push(fieldError.notSupported(`${path}.kind`, subject.kind ?? '', ['ServiceAccount', 'User', 'Group']));
  }
  return errors;
}

export function validateBindingUpdate(
  binding: BindingLike,
  old: BindingLike,
  { namespaced }: { readonly namespaced: boolean },
): FieldError[] {
  const errors = validateBinding(binding, { namespaced });
  if (!semanticEqual(binding.roleRef, old.roleRef)) {
    errors.push(fieldError.invalid('roleRef', binding.roleRef, 'cannot change roleRef'));
  }
  return errors;
}

/** Names of the subjects of one kind, for the wide table. */
export function subjectsText(binding: BindingLike, kind: 'User' | 'Group' | 'ServiceAccount'): string {
  const names = (binding.subjects ?? [])
    .filter((subject) => subject.kind === kind)
    .map((subject) => (kind === 'ServiceAccount' ? `${subject.namespace ?? ''}/${subject.name}` : subject.name));
  return names.join(', ');
}
