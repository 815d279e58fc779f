/** Subjects whose roles allow an action, from the role bindings that the user may read. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../../api/generated/rbac/v1.ts';
import type { Api } from './api.ts';

export interface WhoCanQuestion {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Namespace of the action; '' for the whole cluster. */
  readonly namespace: string;
}

export interface WhoCan {
  readonly subject: string;
  readonly binding: string;
  readonly role: string;
}

export interface RbacObjects {
  readonly clusterRoles: readonly ClusterRole[];
  readonly roles: readonly Role[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roleBindings: readonly RoleBinding[];
}

export function whoCan(question: WhoCanQuestion, objects: RbacObjects): readonly WhoCan[] {
  const { namespace } = question;
  const clusterRoles = new Set(objects.clusterRoles.filter((role) => allows(role, question)).map(nameOf));
  const roles = new Set(
    objects.roles.filter((role) => role.metadata?.namespace === namespace && allows(role, question)).map(nameOf),
  );
  const bindings = [
    ...objects.clusterRoleBindings,
    ...objects.roleBindings.filter(({ metadata }) => namespace !== '' && metadata?.namespace === namespace),
  ];
  return bindings
    .filter(({ roleRef }) => (roleRef?.kind === 'Role' ? roles : clusterRoles).has(roleRef?.name ?? ''))
    .flatMap((binding) =>
      (binding.subjects ?? []).map((subject) => ({
        subject: `${subject.kind} ${subject.namespace === undefined ? '' : `${subject.namespace}/`}${subject.name}`,
        binding: nameOf(binding),
        role: binding.roleRef?.name ?? '',
      })),
    );
}

const nameOf = ({ metadata }: { readonly metadata?: { readonly name?: string } }): string => metadata?.name ?? '';

function allows({ rules }: Role | ClusterRole, { verb, group, resource }: WhoCanQuestion): boolean {
  const has = (values: readonly string[] | undefined, value: string): boolean =>
    values?.includes('*') === true || values?.includes(value) === true;
  return (rules ?? []).some(
    ({ verbs, apiGroups, resources, resourceNames }) =>
      has(verbs, verb) && has(apiGroups, group) && has(resources, resource) && (resourceNames ?? []).length === 0,
  );
}

export async function readRbac(api: Api): Promise<RbacObjects> {
  const list = async <T>(plural: string): Promise<readonly T[]> =>
    (await api.json<{ readonly items?: readonly T[] }>(`/apis/rbac.authorization.k8s.io/v1/${plural}`)).items ?? [];
  const [clusterRoles, roles, clusterRoleBindings, roleBindings] = await Promise.all([
    list<ClusterRole>('clusterroles'),
    list<Role>('roles'),
    list<ClusterRoleBinding>('clusterrolebindings'),
    list<RoleBinding>('rolebindings'),
  ]);
  return { clusterRoles, roles, clusterRoleBindings, roleBindings };
}
