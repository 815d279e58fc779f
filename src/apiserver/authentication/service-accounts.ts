/**
 * Service account tokens: issued for TokenRequest, and verified on every request against the objects in the watch
 * cache. Source: k8s.io/kubernetes/pkg/serviceaccount (claims.go, legacy.go, jwt.go), KEP-1205, KEP-4193.
 */

import type { Secret } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { dateText } from '../../base/time/timestamps.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import {
  loadSigningKey,
  loadVerificationKey,
  parseToken,
  signToken,
  toJwk,
  type VerificationKey,
  verifyToken,
} from './jwt.ts';

interface Reference {
  readonly name: string;
  /** UID of the object. Empty for a node that did not exist when the token of its pod was issued. */
  readonly uid: string;
}

interface KubernetesClaims {
  readonly namespace: string;
  readonly serviceaccount: Reference;
  readonly pod?: Reference;
  readonly node?: Reference;
  readonly secret?: Reference;
  readonly warnafter?: number;
}

export interface TokenOrder {
  readonly namespace: string;
  readonly serviceAccount: Reference;
  readonly audiences: readonly string[];
  readonly lifetimeSeconds: number;
  /** Seconds after which the client should have requested a new token, although the current token is still valid. */
  readonly warnAfterSeconds?: number;
  readonly pod?: Reference;
  readonly node?: Reference;
  readonly secret?: Reference;
  readonly id: string;
}

interface Verified {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
  readonly expiresMs: number;
  readonly notBeforeMs: number;
  readonly bound: readonly Bound[];
  /** Cached identity for the default audiences, with which most requests are authenticated. */
  here?: TokenIdentity | undefined;
  /** Data of a legacy token, which does not expire and is valid as long as its secret contains it. */
  readonly legacy?: {
    readonly namespace: string;
    readonly secret: string;
    readonly token: string;
    seen: CachedObject | undefined;
    /** Day of the last use as recorded in the secret. */
    lastUsed: string | undefined;
    /** True if the secret is marked as invalid. */
    invalid: boolean;
  };
}

interface Bound extends Reference {
  /** Storage prefix of the kind. */
  readonly prefix: string;
  readonly namespace: string;
  /** The object at the last check. An unchanged object is not checked again. */
  seen: CachedObject | undefined;
}

export interface TokenIdentity {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
const LEGACY_ISSUER = 'kubernetes/serviceaccount';
const MAX_CACHED_TOKENS = 4096;
/** Upstream's tolerance for clock differences between nodes and masters. */
const LEEWAY_MS = 10_000;
/** Tokens of a deleted account stay valid for this long, so that its terminating pods can finish. Upstream's value. */
const DELETION_LEEWAY_MS = 60_000;

export interface ServiceAccountTokensOptions {
  readonly signingKey: string;
  readonly publicKeys: readonly string[];
  /** The first issuer is used for new tokens. Tokens of all issuers are accepted. */
  readonly issuers: readonly string[];
  readonly audiences: readonly string[];
  readonly cache: WatchCache;
  nowMs(): number;
  /** Called when a legacy token is used on a day that its secret does not record yet. */
  noteUse?(namespace: string, secret: string, day: string): void;
}

export class ServiceAccountTokens {
  readonly #options: ServiceAccountTokensOptions;
  #signing: ReturnType<typeof loadSigningKey>;
  #keys: readonly VerificationKey[] = [];
  readonly #verified = new BoundedMap<string, Verified>(MAX_CACHED_TOKENS);

  constructor(options: ServiceAccountTokensOptions) {
    this.#options = options;
    this.#signing = loadSigningKey(options.signingKey);
    this.replaceKeys(options);
  }

  /**
   * Replaces the signing key. Afterwards only tokens signed by it or by `publicKeys` are accepted. Throws CodedErrors.
   */
  replaceKeys({ signingKey, publicKeys }: Pick<ServiceAccountTokensOptions, 'signingKey' | 'publicKeys'>): void {
    const signing = loadSigningKey(signingKey);
    const keys = new Map<string, VerificationKey>([[signing.id, signing]]);
    for (const pem of publicKeys) {
      const key = loadVerificationKey(pem);
      keys.set(key.id, key);
    }
    this.#signing = signing;
    this.#keys = [...keys.values()];
    this.#verified.clear();
  }

  /** Audiences of tokens requested without audiences. */
  get defaultAudiences(): readonly string[] {
    return this.#options.audiences;
  }

  get issuer(): string {
    return this.#options.issuers[0] ?? '';
  }

  jwks(): { readonly keys: readonly object[] } {
    return { keys: this.#keys.map(toJwk) };
  }

  algorithms(): string[] {
    return [...new Set(this.#keys.map((key) => key.algorithm))];
  }

  mint(order: TokenOrder): { readonly token: string; readonly expirationMs: number } {
    const issued = Math.floor(this.#options.nowMs() / 1000);
    const expires = issued + order.lifetimeSeconds;
    const token = signToken(this.#signing, {
      aud: order.audiences,
      exp: expires,
      iat: issued,
      iss: this.issuer,
      jti: order.id,
      'kubernetes.io': {
        namespace: order.namespace,
        ...(order.node === undefined ? {} : { node: order.node.uid === '' ? { name: order.node.name } : order.node }),
        ...(order.pod === undefined ? {} : { pod: order.pod }),
        ...(order.secret === undefined ? {} : { secret: order.secret }),
        serviceaccount: order.serviceAccount,
        ...(order.warnAfterSeconds === undefined ? {} : { warnafter: issued + order.warnAfterSeconds }),
      },
      nbf: issued,
      sub: `system:serviceaccount:${order.namespace}:${order.serviceAccount.name}`,
    });
    return { token, expirationMs: expires * 1000 };
  }

  /** Verifies a token. Undefined if it is not a valid service account token for the audiences. */
  authenticate(token: string, audiences: readonly string[] | undefined): TokenIdentity | undefined {
    let verified = this.#verified.get(token);
    if (verified === undefined) {
      verified = this.#verify(token);
      if (verified === undefined) return undefined;
      this.#verified.set(token, verified);
    }
    const nowMs = this.#options.nowMs();
    if (verified.expiresMs < nowMs || verified.notBeforeMs > nowMs + LEEWAY_MS) {
      if (verified.expiresMs < nowMs) this.#verified.delete(token);
      return undefined;
    }
    if (!this.#alive(verified, nowMs)) return undefined;
    if (audiences !== undefined) return identityFor(verified, audiences);
    verified.here ??= identityFor(verified, this.#options.audiences);
    return verified.here;
  }

  #verify(token: string): Verified | undefined {
    const parsed = parseToken(token);
    const issuer = parsed?.claims['iss'];
    const legacy = issuer === LEGACY_ISSUER;
    // The issuer is checked first, because verifying the signature is expensive.
    if (parsed === undefined || !(legacy || this.#options.issuers.some((each) => each === issuer))) return undefined;
    const claims = verifyToken(parsed, this.#keys);
    if (claims === undefined) return undefined;
    if (legacy) return legacyToken(token, claims, this.#options.audiences);
    const own = kubernetesClaims(claims['kubernetes.io']);
    const expires = claims['exp'];
    if (own === undefined || typeof expires !== 'number') return undefined;
    const account = own.serviceaccount;
    const name = `system:serviceaccount:${own.namespace}:${account.name}`;
    if (claims['sub'] !== name) return undefined;
    const audience = claims['aud'];
    const extra: Record<string, string[]> = {};
    if (typeof claims['jti'] === 'string') {
      extra['authentication.kubernetes.io/credential-id'] = [`JTI=${claims['jti']}`];
    }
    for (const kind of ['node', 'pod'] as const) {
      const reference = own[kind];
      if (reference === undefined) continue;
      extra[`authentication.kubernetes.io/${kind}-name`] = [reference.name];
      if (reference.uid !== '') extra[`authentication.kubernetes.io/${kind}-uid`] = [reference.uid];
    }
    return {
      user: {
        name,
        uid: account.uid,
        groups: ['system:serviceaccounts', `system:serviceaccounts:${own.namespace}`, 'system:authenticated'],
        extra,
      },
      audiences: Array.isArray(audience) ? audience.filter((each) => typeof each === 'string') : [String(audience)],
      expiresMs: expires * 1000,
      notBeforeMs: typeof claims['nbf'] === 'number' ? claims['nbf'] * 1000 : 0,
      bound: boundTo(own),
    };
  }

  #alive(verified: Verified, nowMs: number): boolean {
    const { cache } = this.#options;
    const { legacy } = verified;
    if (legacy !== undefined) {
      const secret = cache.kind('secrets').get(legacy.namespace, legacy.secret);
      if (secret === undefined) return false;
      if (secret !== legacy.seen) {
        const { data, metadata } = secret.parse<Secret>();
        const kept = Buffer.from(data?.['token'] ?? '', 'base64').toString('utf8');
        if (metadata?.deletionTimestamp !== undefined || kept !== legacy.token) return false;
        legacy.seen = secret;
        legacy.lastUsed = metadata?.labels?.[LAST_USED];
        legacy.invalid = (metadata?.labels?.[INVALID_SINCE] ?? '') !== '';
      }
    }
    for (const bound of verified.bound) {
      const live = cache.kind(bound.prefix).get(bound.namespace, bound.name);
      if (live === undefined) return false;
      if (live === bound.seen) continue;
      const metadata = live.parse<KubeObject>().metadata;
      if (metadata?.uid !== bound.uid) return false;
      const deleted = metadata.deletionTimestamp;
      // A terminating object is not cached as seen, because the deletion leeway must be checked again later.
      if (deleted !== undefined) {
        if (Date.parse(deleted) + DELETION_LEEWAY_MS < nowMs) return false;
      } else bound.seen = live;
    }
    if (legacy === undefined) return true;
    const day = dateText(nowMs);
    // The recorded day may be the next day, if the clock of the server that recorded it is ahead.
    if (legacy.lastUsed !== day && legacy.lastUsed !== dateText(nowMs + DAY_MS))
      this.#options.noteUse?.(legacy.namespace, legacy.secret, day);
    return !legacy.invalid;
  }
}

const DAY_MS = 24 * 3600 * 1000;

/** Identity restricted to the wanted audiences that the token has. Undefined if the token has none of them. */
function identityFor({ user, audiences }: Verified, wanted: readonly string[]): TokenIdentity | undefined {
  const common = audiences.filter((audience) => wanted.includes(audience));
  return common.length === 0 ? undefined : { user, audiences: common };
}

/** Parses the claims of a legacy token. Source: k8s.io/kubernetes/pkg/serviceaccount/legacy.go. */
function legacyToken(
  token: string,
  claims: Record<string, unknown>,
  audiences: readonly string[],
): Verified | undefined {
  const claim = (name: string): string => {
    const value = claims[`kubernetes.io/serviceaccount/${name}`];
    return typeof value === 'string' ? value : '';
  };
  const namespace = claim('namespace');
  const secret = claim('secret.name');
  const name = claim('service-account.name');
  const uid = claim('service-account.uid');
  if ([namespace, secret, name, uid].includes('')) return undefined;
  if (claims['sub'] !== `system:serviceaccount:${namespace}:${name}`) return undefined;
  return {
    user: {
      name: `system:serviceaccount:${namespace}:${name}`,
      uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    },
    audiences,
    expiresMs: Number.POSITIVE_INFINITY,
    notBeforeMs: 0,
    bound: [{ prefix: 'serviceaccounts', namespace, name, uid, seen: undefined }],
    legacy: { namespace, secret, token, seen: undefined, lastUsed: undefined, invalid: false },
  };
}

/** Objects that must exist for the token to be valid. */
function boundTo({ namespace, serviceaccount, pod, node, secret }: KubernetesClaims): Bound[] {
  const bound: Bound[] = [];
  const add = (prefix: string, within: string, reference: Reference | undefined): void => {
    if (reference !== undefined) bound.push({ prefix, namespace: within, ...reference, seen: undefined });
  };
  add('serviceaccounts', namespace, serviceaccount);
  add('pods', namespace, pod);
  add('minions', '', pod === undefined ? node : undefined);
  add('secrets', namespace, secret);
  return bound;
}

function kubernetesClaims(value: unknown): KubernetesClaims | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const claims = value as Record<string, unknown>;
  const account = referenceOf(claims['serviceaccount']);
  if (typeof claims['namespace'] !== 'string' || account === undefined) return undefined;
  const pod = referenceOf(claims['pod']);
  const node = referenceOf(claims['node'], pod !== undefined);
  const secret = referenceOf(claims['secret']);
  return {
    namespace: claims['namespace'],
    serviceaccount: account,
    ...(pod === undefined ? {} : { pod }),
    ...(node === undefined ? {} : { node }),
    ...(secret === undefined ? {} : { secret }),
  };
}

/** Parses a reference to an object in the claims. With `nameAlone`, the UID is optional. */
function referenceOf(value: unknown, nameAlone = false): Reference | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { name, uid = nameAlone ? '' : undefined } = value as Record<string, unknown>;
  return typeof name === 'string' && typeof uid === 'string' ? { name, uid } : undefined;
}
