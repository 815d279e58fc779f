/**
 * RestrictSubjectBindings: in a namespace with RoleBindingRestrictions, role bindings may only have subjects that at
 * least one of the restrictions permits. Source: openshift/kubernetes
 * openshift-kube-apiserver/admission/authorization/restrictusers.
 */
import type { RoleBinding } from '../../../api/generated/rbac/v1.ts';
import type { RoleBindingRestriction } from '../../../openshift/projects/kinds/rolebindingrestrictions/index.ts';
import { firstRestricted, type KnownSubjects } from '../../core/authorization/binding-restrictions.ts';
import { PRIVILEGED_GROUP } from '../../core/authorization/types.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

export interface RestrictionSources extends KnownSubjects {
  restrictions(namespace: string): readonly CachedObject[];
}

export const SUBJECT_BINDINGS_PLUGIN = 'RestrictSubjectBindings';

export function restrictSubjectBindings(sources: RestrictionSources): AdmissionPlugin {
  return {
    name: SUBJECT_BINDINGS_PLUGIN,
    validate(request) {
      const { object, old, namespace, user } = request;
      if (object === undefined || !isFor(request, 'rbac.authorization.k8s.io', 'rolebindings')) return;
      if (user.groups.includes(PRIVILEGED_GROUP)) return;
      const restrictions = sources.restrictions(namespace);
      if (restrictions.length === 0) return;
      const same = new Set(((old as RoleBinding | undefined)?.subjects ?? []).map((each) => JSON.stringify(each)));
      const added = ((object as RoleBinding).subjects ?? []).filter((each) => !same.has(JSON.stringify(each)));
      const rules = restrictions.map((each) => each.shared<RoleBindingRestriction>() as RoleBindingRestriction);
      const refused = firstRestricted(added, rules, namespace, sources);
      if (refused === undefined) return;
      const what = `rolebindings to ${refused.kind} ${JSON.stringify(refused.name)} are not allowed in project ${JSON.stringify(namespace)}`;
      throw forbid(request, what);
    },
  };
}
