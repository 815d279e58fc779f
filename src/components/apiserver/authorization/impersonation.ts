/** Acting as somebody else, by those who may. Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation.go. */

import { ApiError } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Action } from '../../../core/authz/types.ts';
import { extraOf, valuesOf } from '../authentication/front-proxy.ts';
import type { HttpRequest } from '../port.ts';
import type { Authorization } from './index.ts';

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION_GROUP = 'authentication.k8s.io';

/** The user to go on as: the impersonated one, or `user` when nothing is asked. Throws, or rejects with, 'Forbidden'. */
export function impersonate(
  request: HttpRequest,
  user: UserInfo,
  authorization: Authorization,
): UserInfo | Promise<UserInfo> {
  const { headers } = request;
  const name = headers['impersonate-user'];
  const wantsMore =
    headers['impersonate-group'] !== undefined ||
    headers['impersonate-uid'] !== undefined ||
    Object.keys(headers).some((header) => header.startsWith(EXTRA_PREFIX));
  if (name === undefined || name === '') {
    if (wantsMore) throw new ApiError('InternalError', 'requested to impersonate without impersonating a user');
    return user;
  }
  const asked = String(name);
  const account = SERVICE_ACCOUNT.exec(asked);
  const needed: Action[] = [];
  const need = (group: string, resource: string, subresource: string, namespace: string, name: string): void => {
    needed.push({ verb: 'impersonate', group, resource, subresource, namespace, name });
  };
  if (account !== null) need('', 'serviceaccounts', '', account[1] ?? '', account[2] ?? '');
  else need('', 'users', '', '', asked);
  const groups = valuesOf(request, 'impersonate-group');
  for (const group of groups) need('', 'groups', '', '', group);
  const extra = extraOf(request, EXTRA_PREFIX);
  for (const [key, values] of Object.entries(extra)) {
    for (const value of values) need(AUTHENTICATION_GROUP, 'userextras', key, '', value);
  }
  const uid = headers['impersonate-uid'];
  if (typeof uid === 'string' && uid !== '') need(AUTHENTICATION_GROUP, 'uids', '', '', uid);
  const all = [...groups];
  if (account !== null && all.length === 0) {
    all.push('system:serviceaccounts', `system:serviceaccounts:${account[1]}`);
  }
  const authenticated = asked !== 'system:anonymous';
  const marker = authenticated ? 'system:authenticated' : 'system:unauthenticated';
  if (!all.includes(marker)) all.push(marker);
  const other = { name: asked, groups: all, extra, ...(typeof uid === 'string' && uid !== '' ? { uid } : {}) };
  const allowed = authorization.requireEach(user, needed);
  return allowed === undefined ? other : allowed.then(() => other);
}
