/**
 * UserIdentityMapping: writes the named Identity and User. Source: openshift/oauth-apiserver
 * pkg/user/apiserver/registry/useridentitymapping.
 */

import type { KubeObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Identity, User, UserIdentityMapping } from '../../openshift/oauth/kinds/users/types.ts';
import type { LoginObjects } from '../server/login-port.ts';

const USERS = 'users.user.openshift.io';
const IDENTITIES = 'identities.user.openshift.io';

/** Creates the mapping between an identity and a user. Throws or rejects with 'NotFound' and 'AlreadyExists'. */
export async function mapIdentity(objects: LoginObjects, object: KubeObject): Promise<KubeObject> {
  const mapping = object as UserIdentityMapping;
  const { name: identityName = '' } = mapping.identity ?? {};
  const { name: userName = '' } = mapping.user ?? {};
  await objects.freshen();
  const identity = objects.get<Identity>(IDENTITIES, identityName);
  const user = objects.get<User>(USERS, userName);
  if (identity === undefined)
    throw new ApiError('NotFound', `identities.user.openshift.io ${JSON.stringify(identityName)} not found`);
  if (user === undefined)
    throw new ApiError('NotFound', `users.user.openshift.io ${JSON.stringify(userName)} not found`);
  const before = identity.user?.name ?? '';
  if (before !== '' && objects.get<User>(USERS, before)?.metadata?.uid === identity.user?.uid)
    throw new ApiError(
      'AlreadyExists',
      `useridentitymappings.user.openshift.io ${JSON.stringify(identityName)} already exists`,
    );
  const uid = user.metadata?.uid ?? '';
  await objects.update<User>(USERS, userName, (current) => ({
    ...current,
    identities: [...new Set([...(current.identities ?? []), identityName])],
  }));
  await objects.update<Identity>(IDENTITIES, identityName, (current) => ({
    ...current,
    user: { name: userName, uid },
  }));
  return {
    ...mapping,
    metadata: { ...mapping.metadata, name: identityName },
    identity: { name: identityName, uid: identity.metadata?.uid ?? '' },
    user: { name: userName, uid },
  } as KubeObject;
}
