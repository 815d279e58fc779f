/**
 * RoleBindingRestrictions: the subjects that role bindings of a namespace may have. Source: openshift/kubernetes
 * openshift-kube-apiserver/admission/authorization/restrictusers.
 */
import type { Subject } from '../../../api/generated/rbac/v1.ts';
import { type Labels, labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import type { RoleBindingRestriction } from '../../../openshift/projects/kinds/rolebindingrestrictions/index.ts';

/**
 * Looks up labels and group members, for restrictions that select subjects by label or by group. Undefined: no user or
 * group of that name exists.
 */
export interface KnownSubjects {
  userLabels(name: string): Labels | undefined;
  groupLabels(name: string): Labels | undefined;
  groupsOf(user: string): readonly string[];
}

/** The first subject that no restriction permits. */
export function firstRestricted(
  subjects: readonly Subject[],
  restrictions: readonly RoleBindingRestriction[],
  namespace: string,
  known: KnownSubjects,
): Subject | undefined {
  return subjects.find((subject) => !restrictions.some((each) => permits(each, subject, namespace, known)));
}

function permits(
  { spec = {} }: RoleBindingRestriction,
  { kind, name, namespace: home }: Subject,
  namespace: string,
  known: KnownSubjects,
): boolean {
  const { userrestriction: users, grouprestriction: groups, serviceaccountrestriction: accounts } = spec;
  const selects = (
    selectors: Parameters<typeof labelSelectorOf>[0][] | undefined,
    labels: Labels | undefined,
  ): boolean => labels !== undefined && (selectors ?? []).some((each) => matchesLabels(labelSelectorOf(each), labels));
  switch (kind) {
    case 'User':
      if (users === undefined) return false;
      if (users.users?.includes(name) === true || selects(users.labels, known.userLabels(name))) return true;
      return (users.groups ?? []).length > 0 && known.groupsOf(name).some((each) => users.groups?.includes(each));
    case 'Group':
      if (groups === undefined) return false;
      return groups.groups?.includes(name) === true || selects(groups.labels, known.groupLabels(name));
    case 'ServiceAccount': {
      const at = home ?? namespace;
      if (accounts?.namespaces?.includes(at) === true) return true;
      return (accounts?.serviceaccounts ?? []).some(
        (each) => each.name === name && (each.namespace || namespace) === at,
      );
    }
    default:
      return false;
  }
}
