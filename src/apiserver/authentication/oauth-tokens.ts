/**
 * Tokens of the OAuth server: `sha256~` and 43 characters. The store contains only their hashes. Source:
 * openshift/oauth-apiserver pkg/tokenvalidation; openshift/library-go pkg/oauth/oauthserviceaccountclient and
 * pkg/crypto.
 */

import type { Secret } from '../../api/generated/core/v1.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { Clock } from '../../base/time/clock.ts';
import { INACTIVITY_SECONDS, type OAuthAccessToken } from '../../openshift/oauth/kinds/oauth/types.ts';
import type { Group, User } from '../../openshift/oauth/kinds/users/types.ts';
import { sha256Base64url } from '../../wire/digest.ts';
import { SCOPES } from '../authorization/scopes.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';

const PREFIX = 'sha256~';
const TOKEN = /^sha256~[A-Za-z0-9_-]{43}$/;
const MAX_REMEMBERED = 4096;
const GROUPS = ['system:authenticated', 'system:authenticated:oauth'];
/** The user whose password hash is in the secret kube-system/kubeadmin. */
export const BOOTSTRAP_USER = 'kube:admin';
const BOOTSTRAP_GROUP = 'system:cluster-admins';
/**
 * A use extends the inactivity limit only by at least this fraction (1/10) of its length, so that few uses cause a
 * write.
 */
const RECORDED_SHARE = 10;

/** Name of the object that stores a code or token. */
export const tokenName = (token: string): string =>
  PREFIX + sha256Base64url(token.startsWith(PREFIX) ? token.slice(PREFIX.length) : token);

/** The user kube:admin; undefined if its secret has no hash. Its UID changes with the hash. */
export function bootstrapUser(cache: WatchCache): { readonly uid: string; readonly hash: string } | undefined {
  const secret = cache.kind('secrets').get('kube-system', 'kubeadmin')?.parse<Secret>();
  if (secret === undefined || secret.metadata?.deletionTimestamp !== undefined) return undefined;
  const hash = Buffer.from(secret.data?.['kubeadmin'] ?? '', 'base64').toString('utf8');
  if (hash === '') return undefined;
  return { hash, uid: sha256Base64url(hash) };
}

interface Remembered {
  readonly object: CachedObject;
  readonly token: OAuthAccessToken;
  /** Object from which the identity was built: the User, or the secret of kube:admin. */
  readonly from: CachedObject | undefined;
  readonly groupsChange: number;
  readonly user: UserInfo;
}

export class OAuthTokens {
  readonly #cache: WatchCache;
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #noteUse: (name: string, seconds: number) => void;
  readonly #remembered = new BoundedMap<string, Remembered>(MAX_REMEMBERED);

  /** `noteUse` extends an inactivity limit to the given number of seconds after creation. */
  constructor(cache: WatchCache, clock: Pick<Clock, 'nowMs'>, noteUse: (name: string, seconds: number) => void) {
    this.#cache = cache;
    this.#clock = clock;
    this.#noteUse = noteUse;
  }

  /** The user of a token. Undefined if the token is unknown or expired, or its user has been deleted. */
  authenticate(token: string): UserInfo | undefined {
    if (!TOKEN.test(token)) return undefined;
    const before = this.#remembered.get(token);
    const object = this.#cache.kind('openshift.io/oauthaccesstokens').get('', before?.object.name ?? tokenName(token));
    if (object === undefined) {
      this.#remembered.delete(token);
      return undefined;
    }
    const stored = before?.object === object ? before.token : object.parse<OAuthAccessToken>();
    if (stored.metadata?.deletionTimestamp !== undefined || !this.#isAlive(object.name, stored)) return undefined;
    const { userName = '' } = stored;
    const from =
      userName === BOOTSTRAP_USER
        ? this.#cache.kind('secrets').get('kube-system', 'kubeadmin')
        : this.#cache.kind('openshift.io/users').get('', userName);
    const groupsChange = this.#cache.kind('openshift.io/groups').lastChange;
    if (before?.object === object && before.from === from && before.groupsChange === groupsChange) return before.user;
    const user = this.#userOf(stored);
    if (user === undefined) {
      this.#remembered.delete(token);
      return undefined;
    }
    this.#remembered.set(token, { object, token: stored, from, groupsChange, user });
    return user;
  }

  #isAlive(name: string, token: OAuthAccessToken): boolean {
    const created = Date.parse(token.metadata?.creationTimestamp ?? '');
    const { expiresIn = 0, inactivityTimeoutSeconds: limit = 0 } = token;
    const ageSeconds = (this.#clock.nowMs() - created) / 1000;
    if (Number.isNaN(created) || (expiresIn > 0 && ageSeconds >= expiresIn)) return false;
    if (limit <= 0) return true;
    if (ageSeconds >= limit) return false;
    const allowed = Number(token.metadata?.annotations?.[INACTIVITY_SECONDS] ?? 0);
    const next = Math.ceil(ageSeconds + allowed);
    if (allowed > 0 && next - limit >= allowed / RECORDED_SHARE) this.#noteUse(name, next);
    return true;
  }

  #userOf(token: OAuthAccessToken): UserInfo | undefined {
    const { userName = '', userUID = '', scopes = [] } = token;
    const extra = { [SCOPES]: scopes };
    if (userName === BOOTSTRAP_USER) {
      if (bootstrapUser(this.#cache)?.uid !== userUID) return undefined;
      return { name: BOOTSTRAP_USER, uid: userUID, groups: [BOOTSTRAP_GROUP, ...GROUPS], extra };
    }
    const user = this.#cache.kind('openshift.io/users').get('', userName)?.parse<User>();
    if (user === undefined || user.metadata?.uid !== userUID || user.metadata.deletionTimestamp !== undefined)
      return undefined;
    const groups = new Set(user.groups ?? []);
    for (const object of this.#cache.kind('openshift.io/groups').list(undefined)) {
      const group = object.parse<Group>();
      if (group.users?.includes(userName) === true) groups.add(object.name);
    }
    // Groups with the prefix `system:` are dropped, because only authenticators may assign them.
    const own = [...groups].filter((each) => !each.startsWith('system:')).sort();
    return { name: userName, uid: userUID, groups: [...own, ...GROUPS], extra };
  }
}
