import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from '../../../../api/generated/rbac/v1.ts';

/** Annotation of objects that the API server updates at start. An administrator sets it to "false" to prevent this. */
export const AUTOUPDATE_ANNOTATION = 'rbac.authorization.kubernetes.io/autoupdate';
const LABELS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };

const API_VERSION = 'rbac.authorization.k8s.io/v1';
const GROUP = 'rbac.authorization.k8s.io';

export const READ = 'get list watch';
export const WRITE = 'create delete deletecollection patch update';
/** Name of the core group in the lists of groups below. */
export const CORE = 'core';

/** `rule('get list', 'core apps', 'pods deployments')`: words separated by blanks, sorted as upstream serves them. */
export function rule(verbs: string, groups: string, resources: string, names = ''): PolicyRule {
  return {
    verbs: words(verbs),
    apiGroups: words(groups)
      .map((group) => (group === CORE ? '' : group))
      .sort(),
    resources: words(resources),
    ...(names === '' ? {} : { resourceNames: words(names) }),
  };
}

export function urlRule(verbs: string, urls: string): PolicyRule {
  return { verbs: words(verbs), nonResourceURLs: words(urls) };
}

export const eventsRule = rule('create patch update', 'core events.k8s.io', 'events');

export function clusterRole(
  name: string,
  rules: readonly PolicyRule[],
  labels: Readonly<Record<string, string>> = {},
): ClusterRole {
  return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: metadata(name, labels), rules: [...rules] };
}

/** A role that aggregates all roles with the label `rbac.authorization.k8s.io/aggregate-to-<name>: "true"`. */
export function aggregatedRole(name: string, labels: Readonly<Record<string, string>> = {}): ClusterRole {
  return {
    ...clusterRole(name, [], labels),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: aggregateTo(name) }] },
  };
}

export function aggregateTo(name: string): Record<string, string> {
  return { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' };
}

export function clusterRoleBinding(role: string, subjects: readonly Subject[], name = role): ClusterRoleBinding {
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterRoleBinding',
    metadata: metadata(name),
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: role },
    ...(subjects.length === 0 ? {} : { subjects: [...subjects] }),
  };
}

export function role(namespace: string, name: string, rules: readonly PolicyRule[]): Role {
  return { apiVersion: API_VERSION, kind: 'Role', metadata: { ...metadata(name), namespace }, rules: [...rules] };
}

export function roleBinding(
  namespace: string,
  roleName: string,
  subjects: readonly Subject[],
  name = roleName,
): RoleBinding {
  return {
    apiVersion: API_VERSION,
    kind: 'RoleBinding',
    metadata: { ...metadata(name), namespace },
    roleRef: { apiGroup: GROUP, kind: 'Role', name: roleName },
    ...(subjects.length === 0 ? {} : { subjects: [...subjects] }),
  };
}

export const user = (name: string): Subject => ({ apiGroup: GROUP, kind: 'User', name });
export const group = (name: string): Subject => ({ apiGroup: GROUP, kind: 'Group', name });
export const serviceAccount = (name: string, namespace = 'kube-system'): Subject => ({
  kind: 'ServiceAccount',
  name,
  namespace,
});

function metadata(name: string, labels: Readonly<Record<string, string>> = {}) {
  return { name, labels: { ...LABELS, ...labels }, annotations: { [AUTOUPDATE_ANNOTATION]: 'true' } };
}

function words(text: string): string[] {
  return text.split(' ').sort();
}
