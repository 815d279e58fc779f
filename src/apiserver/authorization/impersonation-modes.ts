/**
 * The impersonation modes and the permissions that each requires. Source:
 * k8s.io/apiserver/pkg/endpoints/filters/impersonation/mode.go.
 */
import type { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import { type Action, PRIVILEGED_GROUP, type ResourceAction } from '../core/authorization/types.ts';
import type { RequestInfo } from '../http/request-info.ts';
import { actionOf, forbiddenError } from './authorization.ts';

/** The requested identity from the impersonation headers. */
export interface ImpersonationRequest {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface Mode {
  /** Verb that the requesting user needs on the impersonated user, groups and so on. */
  readonly verb: string;
  applies(target: ImpersonationRequest, by: UserInfo): boolean;
  become(target: ImpersonationRequest): UserInfo;
}

const AUTHENTICATION = 'authentication.k8s.io';
const NODE_NAME = 'authentication.kubernetes.io/node-name';
/**
 * Extra key of an associated-node identity. It lists the keys that the node agent's own token has for its pod and node.
 */
const NODE_KEYS = 'authentication.kubernetes.io/associated-node-keys';
const NODE_PREFIX = 'system:node:';
const ACCOUNT_PREFIX = 'system:serviceaccount:';
const HTTP_PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;

const nameOnly = ({ uid, groups, extra }: ImpersonationRequest): boolean =>
  uid === '' && groups.length === 0 && Object.keys(extra).length === 0;

const asNode: Mode['become'] = ({ name }) => ({ name, groups: ['system:nodes', 'system:authenticated'], extra: {} });

/** Allows a pod's service account to impersonate the node on which the pod runs. */
const ASSOCIATED_NODE: Mode = {
  verb: 'impersonate:associated-node',
  applies: (target, by) =>
    nameOnly(target) &&
    nodeOf(target.name) !== undefined &&
    accountOf(by.name) !== undefined &&
    by.extra?.[NODE_NAME]?.length === 1 &&
    by.extra[NODE_NAME][0] === nodeOf(target.name),
  become: asNode,
};

const ARBITRARY_NODE: Mode = {
  verb: 'impersonate:arbitrary-node',
  applies: (target) => nameOnly(target) && nodeOf(target.name) !== undefined,
  become: asNode,
};

const SERVICE_ACCOUNT: Mode = {
  verb: 'impersonate:serviceaccount',
  applies: (target) => nameOnly(target) && accountOf(target.name) !== undefined,
  become: asAnybody,
};

const USER_INFO: Mode = {
  verb: 'impersonate:user-info',
  applies: ({ name }) => nodeOf(name) === undefined && accountOf(name) === undefined,
  become: asAnybody,
};

/** Plain impersonation, which is permitted for all requests or for none. */
export const LEGACY: Mode = { verb: 'impersonate', applies: () => true, become: asAnybody };

export const MODES: readonly Mode[] = [ASSOCIATED_NODE, ARBITRARY_NODE, SERVICE_ACCOUNT, USER_INFO, LEGACY];

function asAnybody({ name, uid, groups: given, extra }: ImpersonationRequest): UserInfo {
  const groups = [...given];
  const account = accountOf(name);
  if (account !== undefined && groups.length === 0) {
    groups.push('system:serviceaccounts', `system:serviceaccounts:${account.namespace}`);
  }
  const marker = name === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated';
  if (!groups.includes('system:unauthenticated') && !groups.includes(marker)) groups.push(marker);
  const copied = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
  return { name, groups, extra: copied, ...(uid === '' ? {} : { uid }) };
}

function nodeOf(user: string): string | undefined {
  if (!user.startsWith(NODE_PREFIX)) return undefined;
  const name = user.slice(NODE_PREFIX.length);
  return dns1123SubdomainErrors(name).length === 0 ? name : undefined;
}

function accountOf(user: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(ACCOUNT_PREFIX)) return undefined;
  const [namespace = '', name = '', ...rest] = user.slice(ACCOUNT_PREFIX.length).split(':');
  const bad = rest.length > 0 || dns1123LabelErrors(namespace).length > 0 || dns1123SubdomainErrors(name).length > 0;
  return bad ? undefined : { namespace, name };
}

interface Checks {
  readonly by: UserInfo;
  /** Permissions that the requesting user needs. All of them are required. */
  readonly actions: readonly Action[];
  /** Error for identities that the mode never allows; checked after the permissions. */
  readonly never: ApiError | undefined;
}

/** Permissions required to impersonate in a mode. */
export function checksOf(mode: Mode, target: ImpersonationRequest, user: UserInfo, info: RequestInfo): Checks {
  const constrained = mode !== LEGACY;
  const own = constrained ? AUTHENTICATION : '';
  const by =
    mode === ASSOCIATED_NODE ? { ...user, extra: { [NODE_KEYS]: Object.keys(user.extra ?? {}).sort() } } : user;
  const need = (group: string, resource: string, name: string, more: Partial<ResourceAction> = {}): ResourceAction => ({
    verb: mode.verb,
    group,
    resource,
    subresource: '',
    namespace: '',
    name,
    version: 'v1',
    ...more,
  });
  const actions: Action[] = [];
  const request = actionOf(info);
  if (constrained) actions.push({ ...request, verb: `${mode.verb.replace(':', '-on:')}:${request.verb}` });
  actions.push(userCheck(mode, target.name, own, need));
  if (target.uid !== '') actions.push(need(AUTHENTICATION, 'uids', target.uid));
  for (const group of constrained ? ['', PRIVILEGED_GROUP] : []) {
    if (!target.groups.includes(group)) continue;
    const what = group === '' ? 'empty string' : group;
    const never = forbiddenError(by, need(own, 'groups', group), `impersonating the ${what} group is not allowed`);
    return { by, actions, never };
  }
  actions.push(...target.groups.map((group) => need(own, 'groups', group)));
  const wrong = constrained ? extraError(target.extra) : undefined;
  if (wrong !== undefined)
    return { by, actions, never: forbiddenError(by, need(AUTHENTICATION, 'userextras', ''), wrong) };
  for (const [key, values] of Object.entries(target.extra)) {
    actions.push(...values.map((value) => need(AUTHENTICATION, 'userextras', value, { subresource: key })));
  }
  return { by, actions, never: undefined };
}

function userCheck(
  mode: Mode,
  user: string,
  group: string,
  need: (group: string, resource: string, name: string, more?: Partial<ResourceAction>) => ResourceAction,
): ResourceAction {
  const node = mode === LEGACY ? undefined : nodeOf(user);
  // In mode associated-node, a grant applies to every node.
  if (node !== undefined) return need(group, 'nodes', mode === ASSOCIATED_NODE ? '*' : node);
  const account = accountOf(user);
  if (account === undefined) return need(group, 'users', user);
  return need(group, 'serviceaccounts', account.name, { namespace: account.namespace });
}

/** Error of invalid extra keys. Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation validateExtra. */
function extraError(extra: ImpersonationRequest['extra']): string | undefined {
  for (const [key, values] of Object.entries(extra)) {
    if (key === '') return 'impersonating the empty string key in extra is not allowed';
    const wrong = domainPathError(key);
    if (wrong !== undefined)
      return `impersonating an invalid key in extra is not allowed: extra.key: Invalid value: ${wrong}`;
    if (values.includes('')) return 'impersonating the empty string value in extra is not allowed';
  }
  return undefined;
}

function domainPathError(key: string): string | undefined {
  const slash = key.indexOf('/');
  const [host, path] = [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)];
  if (host === '' || path === '')
    return `${JSON.stringify(key)}: must be a domain-prefixed path (such as "acme.io/foo")`;
  const [wrong] = dns1123SubdomainErrors(host);
  if (wrong !== undefined) return `${JSON.stringify(host)}: ${wrong}`;
  if (HTTP_PATH.test(path)) return undefined;
  return `${JSON.stringify(path)}: Invalid path (regex used for validation is '${HTTP_PATH.source.slice(1, -1)}')`;
}
