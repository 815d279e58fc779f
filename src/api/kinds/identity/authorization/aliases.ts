/**
 * Roles and bindings of authorization.openshift.io, OpenShift's older API for the RBAC objects. Source:
 * openshift/openshift-apiserver pkg/authorization, and openshift/api authorization/v1.
 */
import type { ObjectReference } from '../../../generated/core/v1.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject } from '../../../generated/rbac/v1.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { createdAtColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindAlias, ServedNames, Verb } from '../../../registry/definition.ts';
import { bindingColumns } from '../rbac/binding-columns.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
/** Verbs without `watch`: as in OpenShift, RBAC objects are watched through rbac.authorization.k8s.io only. */
const VERBS: readonly Verb[] = ['create', 'delete', 'get', 'list', 'patch', 'update'];

interface ServedBinding extends KubeObject {
  userNames?: string[] | null;
  groupNames?: string[] | null;
  subjects?: ObjectReference[];
  roleRef?: ObjectReference;
}

type StoredBinding = RoleBinding | ClusterRoleBinding;

const namesOf = (kind: string): Omit<ServedNames, 'columns'> => ({
  kind,
  plural: `${kind.toLowerCase()}s`,
  singular: kind.toLowerCase(),
  listKind: `${kind}List`,
  verbs: VERBS,
  schemaName: `com.github.openshift.api.authorization.v1.${kind}`,
});

const place = { group: 'authorization.openshift.io', version: 'v1' };

function roleAlias<T extends Role | ClusterRole>(kind: string): KindAlias<T> {
  return {
    ...place,
    names: { ...namesOf(kind), columns: [nameColumn, createdAtColumn] },
    convertTo(object) {
      const role = object as T & { rules?: object[] };
      // OpenShift's rules have the additional field attributeRestrictions, which has no effect.
      const rules = role.rules?.map((rule) => {
        const { attributeRestrictions: _, ...rest } = rule as { attributeRestrictions?: unknown };
        return rest;
      });
      return (rules === undefined ? role : { ...role, rules }) as T;
    },
    convertFrom: (role) => role,
  };
}

function bindingAlias<T extends StoredBinding>(kind: string): KindAlias<T> {
  return {
    ...place,
    names: { ...namesOf(kind), columns: bindingColumns },
    skeleton: { roleRef: {} },
    convertTo: (object) => toBinding(object as ServedBinding) as T,
    convertFrom: (binding) => fromBinding(binding),
  };
}

function toBinding(object: ServedBinding): StoredBinding {
  const { userNames, groupNames, subjects, roleRef, ...rest } = object;
  const named = userNames ?? groupNames ?? undefined;
  const given = subjects?.map((each) => subjectOf(each));
  const listed = [...(userNames ?? []).map(userSubject), ...(groupNames ?? []).map(groupSubject)];
  // userNames and groupNames take precedence over subjects. If both list the same subjects, the order of `subjects` is
  // kept.
  const who = named === undefined || areSame(given, listed) ? given : listed;
  const { name = '', namespace = '' } = roleRef ?? {};
  const home = object.metadata?.namespace ?? namespace;
  return {
    ...rest,
    ...(who === undefined ? {} : { subjects: who }),
    roleRef: { apiGroup: RBAC_GROUP, kind: kindOfRole(namespace, home), name },
  } as StoredBinding;
}

function areSame(given: readonly Subject[] | undefined, listed: readonly Subject[]): boolean {
  const keys = (subjects: readonly Subject[]): string =>
    subjects
      .map(({ kind, namespace = '', name }) => `${kind}/${namespace}/${name}`)
      .sort()
      .join();
  return given !== undefined && keys(given) === keys(listed);
}

/**
 * Kind for the role reference. A Role of another namespace cannot be bound, so the returned text is no kind and fails
 * validation.
 */
function kindOfRole(namespace: string, home: string): string {
  if (namespace === '') return 'ClusterRole';
  return namespace === home ? 'Role' : `Role of namespace ${namespace}`;
}

const userSubject = (name: string): Subject => {
  const [, namespace, account] = SERVICE_ACCOUNT.exec(name) ?? [];
  return namespace === undefined || account === undefined
    ? { apiGroup: RBAC_GROUP, kind: 'User', name }
    : { kind: 'ServiceAccount', name: account, namespace };
};

const groupSubject = (name: string): Subject => ({ apiGroup: RBAC_GROUP, kind: 'Group', name });

function subjectOf({ kind = '', name = '', namespace }: ObjectReference): Subject {
  if (kind === 'User' || kind === 'SystemUser') return userSubject(name);
  if (kind === 'Group' || kind === 'SystemGroup') return groupSubject(name);
  return { kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

function fromBinding(binding: StoredBinding): ServedBinding {
  const { roleRef, subjects = [], ...rest } = binding;
  const home = binding.metadata?.namespace;
  const userNames = subjects.flatMap(({ kind, name, namespace = home ?? '' }) => {
    if (kind === 'User') return [name];
    return kind === 'ServiceAccount' ? [`system:serviceaccount:${namespace}:${name}`] : [];
  });
  const groupNames = subjects.flatMap(({ kind, name }) => (kind === 'Group' ? [name] : []));
  return {
    ...rest,
    userNames: userNames.length === 0 ? null : userNames,
    groupNames: groupNames.length === 0 ? null : groupNames,
    subjects: subjects.map(referenceTo),
    roleRef: {
      name: roleRef?.name ?? '',
      ...(roleRef?.kind === 'Role' && home !== undefined ? { namespace: home } : {}),
    },
  } as ServedBinding;
}

/** Users and groups with a colon in their name are system users and groups. */
function referenceTo({ kind, name, namespace }: Subject): ObjectReference {
  const isSystem = name.includes(':') && (kind === 'User' || kind === 'Group');
  return { kind: isSystem ? `System${kind}` : kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

export const openshiftRole = roleAlias<Role>('Role');
export const openshiftClusterRole = roleAlias<ClusterRole>('ClusterRole');
export const openshiftRoleBinding = bindingAlias<RoleBinding>('RoleBinding');
export const openshiftClusterRoleBinding = bindingAlias<ClusterRoleBinding>('ClusterRoleBinding');
