/** authorization.openshift.io/v1. Source: openshift/api authorization/v1 of release 4.10. */
import { type DeclaredField, declarePackage } from './declare.ts';

/** Action of an access review. The fields are at the top level of the review. */
const ACTION: Readonly<Record<string, DeclaredField>> = {
  namespace: ['string', 'Namespace of the action; empty: all namespaces, or cluster-scoped resources.'],
  verb: ['string', 'One of get, list, watch, create, update, patch, delete, use, impersonate …'],
  resourceAPIGroup: ['string', 'Group of the resource.'],
  resourceAPIVersion: ['string', 'Version of the resource.'],
  resource: ['string', 'One of the existing resource types.'],
  resourceName: ['string', 'Name of the resource being requested for a get, or deleted for a delete.'],
  path: ['string', 'Path of a URL that is no resource.'],
  isNonResourceURL: ['boolean', 'Whether the review is for a path instead of a resource.'],
  content: ['any', 'The content of create and update requests; not used.'],
};

const SUBJECT: Readonly<Record<string, DeclaredField>> = {
  user: ['string', 'User whose access is reviewed; the caller if neither user nor groups are set.'],
  groups: ['[]string', 'Groups of the user.'],
  scopes: ['[]string', 'Scopes of the token that the access is limited by; absent: those of the caller.'],
};

const BINDING: Readonly<Record<string, DeclaredField>> = {
  userNames: ['[]string', 'Names of users that the role is given to; deprecated in favour of subjects.'],
  groupNames: ['[]string', 'Names of groups that the role is given to; deprecated in favour of subjects.'],
  subjects: ['[]#core.ObjectReference', 'Users, groups and service accounts that the role is given to.'],
  roleRef: ['#core.ObjectReference', 'The role; with a namespace a Role of it, without one a ClusterRole.'],
};

export const authorizationPackage = declarePackage('authorization.v1', {
  Role: {
    isKind: true,
    about: 'Role is a set of rules within a namespace; the same object as that of rbac.authorization.k8s.io.',
    fields: { rules: ['[]#PolicyRule', 'Rules of the role.'] },
  },
  ClusterRole: {
    isKind: true,
    about: 'ClusterRole is a set of rules; the same object as that of rbac.authorization.k8s.io.',
    fields: {
      rules: ['[]#PolicyRule', 'Rules of the role.'],
      aggregationRule: ['#AggregationRule', 'Roles whose rules the role is made of.'],
    },
  },
  AggregationRule: {
    about: 'AggregationRule selects the roles that a role is made of.',
    fields: { clusterRoleSelectors: ['[]#meta.LabelSelector', 'Selectors of cluster roles.'] },
  },
  RoleBinding: {
    isKind: true,
    about: 'RoleBinding gives a role to subjects within a namespace; the same object as that of RBAC.',
    fields: BINDING,
  },
  ClusterRoleBinding: {
    isKind: true,
    about: 'ClusterRoleBinding gives a cluster role to subjects; the same object as that of RBAC.',
    fields: BINDING,
  },
  PolicyRule: {
    about: 'PolicyRule permits verbs on resources, or on URLs that are no resources.',
    fields: {
      verbs: ['[]string', 'Verbs; * is all of them.'],
      attributeRestrictions: ['any', 'Not used.'],
      apiGroups: ['[]string', 'Groups of the resources; the core group is the empty string.'],
      resources: ['[]string', 'Resources; * is all of them.'],
      resourceNames: ['[]string', 'Names that the rule is limited to.'],
      nonResourceURLs: ['[]string', 'Paths, with * at their end.'],
    },
  },
  SubjectAccessReview: {
    isRequest: true,
    about: 'SubjectAccessReview checks whether a user or group may do something.',
    fields: { ...ACTION, ...SUBJECT },
  },
  LocalSubjectAccessReview: {
    isRequest: true,
    about: 'LocalSubjectAccessReview checks whether a user or group may do something in a namespace.',
    fields: { ...ACTION, ...SUBJECT },
  },
  SubjectAccessReviewResponse: {
    isRequest: true,
    about: 'SubjectAccessReviewResponse describes whether the action is allowed.',
    fields: {
      namespace: ['string', 'Namespace of the question.'],
      allowed: ['!boolean', 'Whether the action is allowed.'],
      reason: ['string', 'Why.'],
      evaluationError: ['string', 'Error that occurred during the evaluation.'],
    },
  },
  ResourceAccessReview: {
    isRequest: true,
    about: 'ResourceAccessReview lists the users and groups that may do something.',
    fields: ACTION,
  },
  LocalResourceAccessReview: {
    isRequest: true,
    about: 'LocalResourceAccessReview lists the users and groups that may do something in a namespace.',
    fields: ACTION,
  },
  ResourceAccessReviewResponse: {
    isRequest: true,
    about: 'ResourceAccessReviewResponse lists the users and groups that may do the action.',
    fields: {
      namespace: ['string', 'Namespace of the question.'],
      users: ['![]string', 'Users that may do it.'],
      groups: ['![]string', 'Groups whose members may do it.'],
      evalutionError: [
        'string',
        'Error that occurred during the evaluation; the field name is spelled as in OpenShift.',
      ],
    },
  },
  SelfSubjectRulesReview: {
    isRequest: true,
    about: 'SelfSubjectRulesReview lists what the caller may do in a namespace.',
    fields: {
      spec: ['#SelfSubjectRulesReviewSpec', 'The question.'],
      status: ['#SubjectRulesReviewStatus', 'The rules.'],
    },
  },
  SelfSubjectRulesReviewSpec: {
    about: 'SelfSubjectRulesReviewSpec limits the question to scopes.',
    fields: { scopes: ['[]string', 'Scopes of a token; absent: those of the caller.'] },
  },
  SubjectRulesReview: {
    isRequest: true,
    about: 'SubjectRulesReview lists what a user or group may do in a namespace.',
    fields: {
      spec: ['#SubjectRulesReviewSpec', 'The question.'],
      status: ['#SubjectRulesReviewStatus', 'The rules.'],
    },
  },
  SubjectRulesReviewSpec: { about: 'SubjectRulesReviewSpec names the subject.', fields: SUBJECT },
  SubjectRulesReviewStatus: {
    about: 'SubjectRulesReviewStatus holds the rules of a subject.',
    fields: {
      rules: ['[]#PolicyRule', 'The rules, in no particular order.'],
      evaluationError: ['string', 'Error that occurred during the evaluation; the rules may be incomplete.'],
    },
  },
  RoleBindingRestriction: {
    isKind: true,
    about: 'RoleBindingRestriction limits which subjects role bindings of a namespace may have.',
    fields: { spec: ['#RoleBindingRestrictionSpec', 'Exactly one of the kinds of subjects.'] },
  },
  RoleBindingRestrictionSpec: {
    about: 'RoleBindingRestrictionSpec permits users, groups or service accounts.',
    fields: {
      userrestriction: ['#UserRestriction', 'Users that are permitted.'],
      grouprestriction: ['#GroupRestriction', 'Groups that are permitted.'],
      serviceaccountrestriction: ['#ServiceAccountRestriction', 'Service accounts that are permitted.'],
    },
  },
  UserRestriction: {
    about: 'UserRestriction matches a user by name, by group or by labels of the User object.',
    fields: {
      users: ['[]string', 'Names of users.'],
      groups: ['[]string', 'Groups that a user may be in.'],
      labels: ['[]#meta.LabelSelector', 'Selectors of User objects.'],
    },
  },
  GroupRestriction: {
    about: 'GroupRestriction matches a group by name or by labels of the Group object.',
    fields: {
      groups: ['[]string', 'Names of groups.'],
      labels: ['[]#meta.LabelSelector', 'Selectors of Group objects.'],
    },
  },
  ServiceAccountRestriction: {
    about: 'ServiceAccountRestriction matches a service account by name or namespace.',
    fields: {
      serviceaccounts: ['[]#ServiceAccountReference', 'Service accounts by name.'],
      namespaces: ['[]string', 'Namespaces whose service accounts are permitted.'],
    },
  },
  ServiceAccountReference: {
    about: 'ServiceAccountReference names a service account.',
    fields: {
      name: ['string', 'Name of the service account.'],
      namespace: ['string', 'Namespace of the service account; empty: the namespace of the restriction.'],
    },
  },
});
