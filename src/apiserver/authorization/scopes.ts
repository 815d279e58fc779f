/**
 * Scopes of OAuth tokens, which restrict the permissions of a user. Source: openshift/apiserver-library-go
 * pkg/authorization/scope.
 */
import type { PolicyRule } from '../../api/generated/rbac/v1.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { RbacAuthorizer } from '../core/authorization/index.ts';
import { CompiledRules } from '../core/authorization/rules.ts';
import type { Action, Decision } from '../core/authorization/types.ts';

/** Extra field of a user with the scopes of the token. */
export const SCOPES = 'scopes.authorization.openshift.io';
const FULL = 'user:full';

const rule = (verbs: readonly string[], groups: string[], resources: string[], names?: string[]): PolicyRule => ({
  verbs: [...verbs],
  apiGroups: groups,
  resources,
  ...(names === undefined ? {} : { resourceNames: names }),
});
const AUTHORIZATION = ['authorization.k8s.io', 'authorization.openshift.io'];
const PROJECTS = rule(['list', 'watch'], ['project.openshift.io'], ['projects']);

const USER_SCOPES: ReadonlyMap<string, CompiledRules> = new Map(
  Object.entries({
    'user:info': [rule(['get'], ['user.openshift.io'], ['users'], ['~'])],
    'user:check-access': [
      rule(['create'], AUTHORIZATION, ['selfsubjectaccessreviews', 'selfsubjectrulesreviews']),
      rule(['create'], ['authorization.openshift.io'], ['subjectaccessreviews', 'localsubjectaccessreviews']),
    ],
    'user:list-projects': [PROJECTS],
    'user:list-scoped-projects': [PROJECTS],
  }).map(([scope, rules]) => [scope, new CompiledRules(rules)]),
);

/** Every token may discover the API. Source: `authorizationapi.DiscoveryRule`. */
const DISCOVERY = new CompiledRules([
  {
    verbs: ['get'],
    nonResourceURLs: ['/version', '/version/*', '/api', '/api/*', '/apis', '/apis/*', '/openapi/*', '/healthz'],
  },
]);

/** Resources that a role scope without `!` does not cover, because they give access to credentials or permissions. */
const ESCALATING: readonly (readonly [group: string, resource: string])[] = [
  ['', 'secrets'],
  ['', 'serviceaccounts/token'],
  ['image.openshift.io', 'imagestreams/secrets'],
  ['oauth.openshift.io', 'oauthauthorizetokens'],
  ['oauth.openshift.io', 'oauthaccesstokens'],
  ['authorization.openshift.io', 'roles'],
  ['authorization.openshift.io', 'rolebindings'],
  ['authorization.openshift.io', 'clusterroles'],
  ['authorization.openshift.io', 'clusterrolebindings'],
  ['rbac.authorization.k8s.io', 'roles'],
  ['rbac.authorization.k8s.io', 'rolebindings'],
  ['rbac.authorization.k8s.io', 'clusterroles'],
  ['rbac.authorization.k8s.io', 'clusterrolebindings'],
];

export function isScoped(user: UserInfo): boolean {
  const scopes = user.extra?.[SCOPES];
  return scopes !== undefined && !scopes.includes(FULL);
}

/** The denial of an action that no scope covers; undefined if the action is covered or the user has no scopes. */
export function scopeDenial(
  user: UserInfo,
  action: Action,
  rbac: Pick<RbacAuthorizer, 'rulesOf'>,
): Decision | undefined {
  if (!isScoped(user)) return undefined;
  const scopes = user.extra?.[SCOPES] ?? [];
  if ('path' in action) {
    if (DISCOVERY.allowsPath(action)) return undefined;
  } else if (scopes.some((scope) => covers(scope, action, rbac))) return undefined;
  return { allowed: false, denied: true, reason: `scopes [${scopes.join(' ')}] prevent this action` };
}

function covers(
  scope: string,
  action: Exclude<Action, { readonly path: string }>,
  rbac: Pick<RbacAuthorizer, 'rulesOf'>,
): boolean {
  const fixed = USER_SCOPES.get(scope);
  if (fixed !== undefined) return fixed.allowsResource(action);
  // Format: role:NAME:NAMESPACE or role:NAME:NAMESPACE:!. The name may contain colons.
  const parts = /^role:(.+?):([^:!]+)(:!)?$/.exec(scope);
  if (parts === null) return false;
  const [, name = '', namespace = '', escalates] = parts;
  if (namespace !== '*' && action.namespace !== namespace) return false;
  const resource = action.subresource === '' ? action.resource : `${action.resource}/${action.subresource}`;
  if (
    escalates === undefined &&
    ESCALATING.some(([group, each]) => group === action.group && (each === resource || each === action.resource))
  )
    return false;
  const rules = rbac.rulesOf({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }, '');
  return rules !== undefined && new CompiledRules(rules).allowsResource(action);
}
