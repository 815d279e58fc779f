/**
 * Restrictions on the subjects of role bindings. Source: openshift/api authorization/v1, and
 * pkg/authorization/apis/authorization/validation of openshift/kubernetes.
 */
import type { LabelSelector } from '../../../../api/generated/meta/v1.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import { validateLabelSelector } from '../../../../api/validation/selectors.ts';

export interface RoleBindingRestriction extends KubeObject {
  spec?: {
    userrestriction?: { users?: string[]; groups?: string[]; labels?: LabelSelector[] };
    grouprestriction?: { groups?: string[]; labels?: LabelSelector[] };
    serviceaccountrestriction?: { serviceaccounts?: { name?: string; namespace?: string }[]; namespaces?: string[] };
  };
}

function validate({ spec = {} }: RoleBindingRestriction): FieldError[] {
  const { userrestriction: users, grouprestriction: groups, serviceaccountrestriction: accounts } = spec;
  const errors: FieldError[] = [];
  if ([users, groups, accounts].filter((each) => each !== undefined).length !== 1) {
    const detail = 'must specify exactly one of userrestriction, grouprestriction, or serviceaccountrestriction';
    errors.push(fieldError.invalid('spec', spec, detail));
  }
  const isEmpty = (...lists: (readonly unknown[] | undefined)[]): boolean =>
    lists.every((list) => (list ?? []).length === 0);
  if (users !== undefined && isEmpty(users.users, users.groups, users.labels))
    errors.push(
      fieldError.required('spec.userrestriction', 'must specify at least one user, group, or label selector'),
    );
  if (groups !== undefined && isEmpty(groups.groups, groups.labels))
    errors.push(fieldError.required('spec.grouprestriction', 'must specify at least one group or label selector'));
  if (accounts !== undefined && isEmpty(accounts.serviceaccounts, accounts.namespaces)) {
    const detail = 'must specify at least one service account or namespace';
    errors.push(fieldError.required('spec.serviceaccountrestriction', detail));
  }
  for (const [index, account] of (accounts?.serviceaccounts ?? []).entries())
    if (!isSet(account.name))
      errors.push(fieldError.required(`spec.serviceaccountrestriction.serviceaccounts[${index}].name`));
  for (const [at, each] of [
    ['userrestriction', users],
    ['grouprestriction', groups],
  ] as const)
    for (const [index, selector] of (each?.labels ?? []).entries())
      errors.push(...validateLabelSelector(selector, `spec.${at}.labels[${index}]`));
  return errors;
}

function subjectType({ spec = {} }: RoleBindingRestriction): string {
  if (spec.userrestriction !== undefined) return 'User';
  if (spec.grouprestriction !== undefined) return 'Group';
  return spec.serviceaccountrestriction === undefined ? '<unknown>' : 'ServiceAccount';
}

function subjectsText({ spec = {} }: RoleBindingRestriction): string {
  const { userrestriction: users, grouprestriction: groups, serviceaccountrestriction: accounts } = spec;
  return [
    ...(users?.users ?? []),
    ...(users?.groups ?? []).map((name) => `group(${name})`),
    ...(groups?.groups ?? []),
    ...(accounts?.serviceaccounts ?? []).map(({ name, namespace }) => [namespace, name].filter(Boolean).join('/')),
    ...(accounts?.namespaces ?? []).map((name) => `${name}/*`),
  ].join(', ');
}

export const roleBindingRestrictions: KindDefinition<RoleBindingRestriction> = {
  group: 'authorization.openshift.io',
  version: 'v1',
  kind: 'RoleBindingRestriction',
  plural: 'rolebindingrestrictions',
  singular: 'rolebindingrestriction',
  listKind: 'RoleBindingRestrictionList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.authorization.v1.RoleBindingRestriction',
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/rolebindingrestrictions',
  strategy: { validate, validateUpdate: validate },
  columns: [
    nameColumn,
    column<RoleBindingRestriction>('Subject Type', 'Kind of the subjects that are permitted.', subjectType),
    column<RoleBindingRestriction>('Subjects', 'The subjects that are permitted.', subjectsText),
  ],
};
