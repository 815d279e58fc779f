/** Maps identities to users. Source: openshift/oauth-server pkg/userregistry/identitymapper. */

import { isApiError } from '../../../api/meta/status.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { Identity, User } from '../kinds/users/types.ts';
import type { LoginIdentity, MappingMethod } from '../types.ts';

const USERS = 'users.user.openshift.io';
const IDENTITIES = 'identities.user.openshift.io';
const MAX_GENERATED = 100;

/** Thrown if a login is valid but must not be mapped to a user. The message is for the log only. */
export class MappingError extends Error {}

export interface LoginUser {
  readonly name: string;
  readonly uid: string;
}

const ENCODED = 'b64.';
const DIGEST = 'sha256.';
const MAX_PART = 200;

/**
 * Returns the provider's ID of a user in the form for names of identities. IDs that are unsuitable for the path of a
 * URL are encoded, and longer IDs are replaced by a digest. Different IDs have different forms, because no plain ID
 * begins with the prefix of the encoded form or of the digest.
 */
function objectPart(id: string): string {
  const isReserved = id === '.' || id === '..' || id.startsWith(ENCODED) || id.startsWith(DIGEST);
  if (!isReserved && /^[^/%:\p{Cc}\p{Cs}]{1,200}$/u.test(id)) return id;
  const encoded = `${ENCODED}${Buffer.from(id).toString('base64url')}`;
  // UTF-8 cannot encode lone surrogates, which JSON.stringify escapes.
  return encoded.length <= MAX_PART && id.isWellFormed() ? encoded : `${DIGEST}${sha256Hex(JSON.stringify(id))}`;
}

/** Finds or creates the user of a login. Rejects with MappingError if the mapping method does not allow the login. */
export async function mapToUser(
  objects: LoginObjects,
  login: LoginIdentity,
  method: MappingMethod,
): Promise<LoginUser> {
  await objects.freshen();
  const providerUserName = objectPart(login.id);
  const name = `${login.provider}:${providerUserName}`;
  const identity = objects.get<Identity>(IDENTITIES, name);
  if (identity !== undefined) return known(objects, identity);
  if (method === 'lookup') throw new MappingError(`identity ${name}: is not mapped to a user; create the mapping`);
  const user = await provision(objects, login, name, method);
  try {
    await objects.create<Identity>(IDENTITIES, {
      metadata: { name },
      providerName: login.provider,
      providerUserName,
      user: { name: user.name, uid: user.uid },
      extra: { ...login.extra },
    });
  } catch (error) {
    // The same identity logs in at another server at the same time, and that server has created the object.
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  return user;
}

function known(objects: LoginObjects, identity: Identity): LoginUser {
  const { name = '', uid = '' } = identity.user ?? {};
  const user = objects.get<User>(USERS, name);
  const label = identity.metadata?.name ?? '';
  if (user === undefined || user.metadata?.uid !== uid)
    throw new MappingError(`identity ${label}: its user ${JSON.stringify(name)} was deleted; delete the identity`);
  if (user.identities?.includes(label) !== true)
    throw new MappingError(`identity ${label}: user ${JSON.stringify(name)} does not list it; create the mapping`);
  return { name, uid };
}

const reference = (user: User): LoginUser => ({ name: user.metadata?.name ?? '', uid: user.metadata?.uid ?? '' });

async function provision(
  objects: LoginObjects,
  login: LoginIdentity,
  identity: string,
  method: Exclude<MappingMethod, 'lookup'>,
): Promise<LoginUser> {
  const preferred = login.preferredUserName;
  if (!/^[^/%:~\p{Cc}\p{Cs}]{1,200}$/u.test(preferred) || preferred === '.' || preferred === '..')
    throw new MappingError(`identity ${identity}: the preferred user name cannot be the name of a user`);
  for (let attempt = 1; attempt <= MAX_GENERATED; attempt++) {
    const name = attempt === 1 ? preferred : `${preferred}${attempt}`;
    const present = objects.get<User>(USERS, name);
    if (present === undefined) {
      try {
        const made: User = { metadata: { name }, identities: [identity], groups: null };
        return reference(
          await objects.create<User>(USERS, login.fullName === '' ? made : { ...made, fullName: login.fullName }),
        );
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
        await objects.freshen();
        attempt -= 1;
        continue;
      }
    }
    const own = present.identities ?? [];
    if (own.includes(identity)) return reference(present);
    if (method === 'add' || own.length === 0)
      return reference(
        await objects.update<User>(USERS, name, (current) => ({
          ...current,
          identities: [...new Set([...(current.identities ?? []), identity])],
        })),
      );
    if (method === 'claim')
      throw new MappingError(`identity ${identity}: user ${JSON.stringify(name)} is claimed by ${own[0] ?? ''}`);
  }
  throw new MappingError(`identity ${identity}: no user name is left for ${JSON.stringify(preferred)}`);
}
