/**
 * `users/~`: the requesting user as a User object, for `oc whoami`. For a user without a stored User, for example with
 * a client certificate, the User is computed. Source: openshift/oauth-apiserver pkg/user/apiserver/registry/user/etcd.
 */

import { errors } from '../../api/meta/status.ts';
import type { User } from '../../openshift/oauth/kinds/users/types.ts';
import type { Exchange } from '../http/exchange.ts';
import { negotiate } from '../http/negotiate.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import { CachedObject } from '../watch-cache/cached-object.ts';
import type { ServerContext } from './context.ts';
import { sendObject } from './reads/get.ts';
import { supportsProtobuf } from './reads/messages.ts';

export const isOwnUserRequest = (kind: ServedKind, { name }: ResourceRequestInfo): boolean =>
  name === '~' && kind.plural === 'users' && kind.group === 'user.openshift.io';

export async function ownUser(
  context: Pick<ServerContext, 'cache' | 'clock'>,
  exchange: Exchange,
  kind: ServedKind,
  { verb }: ResourceRequestInfo,
): Promise<void> {
  if (verb !== 'get') throw methodNotAllowed();
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  await context.cache.freshen();
  const { name, uid, groups } = exchange.user;
  const stored = kind.cache?.get('', name);
  if (stored !== undefined && uid !== undefined && stored.parse<User>().metadata?.uid !== uid)
    throw errors.notFound(kind, name);
  const user: User = {
    kind: 'User',
    apiVersion: kind.apiVersion,
    ...(stored === undefined
      ? { metadata: { name, ...(uid === undefined ? {} : { uid }) }, identities: null }
      : stored.parse<User>()),
    groups: [...new Set(groups)].sort(),
  };
  const bytes = Buffer.from(JSON.stringify(user));
  const shown = new CachedObject('', name, bytes, stored?.revision ?? 0, stored?.createRevision ?? 0);
  sendObject(context, exchange, { kind, object: shown, form });
}
