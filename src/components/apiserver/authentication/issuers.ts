/**
 * ID tokens of OpenID Connect issuers: keys by discovery, claims to users. Source: OpenID Connect Core and Discovery 1.0;
 * k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.
 */
import { createPublicKey, constants as cryptoConstants, type KeyObject, verify } from 'node:crypto';
import type { JsonObject } from '../../../api/meta/object.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { askRemote, type RemoteDeps } from '../webhooks/remote.ts';
import { type ClaimRules, userOfClaims } from './claims.ts';
import type { ParsedToken } from './jwt.ts';

export interface TokenIssuer extends ClaimRules {
  /** `iss` of its tokens, https. */
  readonly url: string;
  /** Where its discovery document is, when not below `url`. */
  readonly discoveryUrl?: string;
  /** PEM bundle; undefined: the authorities that everybody trusts. */
  readonly ca?: string;
  /** One of them must be in `aud`. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
}

const TIMEOUT_MS = 10_000;
/** Minimum pause between key set requests: tokens with unknown key ids must not cause one each. */
const ASK_PAUSE_MS = 10_000;
/** How old keys may be before they are looked at again. */
const KEYS_MS = 60 * 60_000;
const LEEWAY_MS = 10_000;
const MAX_KEYS = 200;

const HASHES: Readonly<Record<string, string>> = { '256': 'sha256', '384': 'sha384', '512': 'sha512' };
const CURVES: Readonly<Record<string, string>> = { '256': 'prime256v1', '384': 'secp384r1', '512': 'secp521r1' };

/** What may be asked for; "none" and shared secrets are not among them. */
export const SIGNING_ALGORITHMS: readonly string[] = ['RS', 'ES', 'PS'].flatMap((family) =>
  Object.keys(HASHES).map((bits) => `${family}${bits}`),
);

interface IssuerKey {
  readonly id: string | undefined;
  readonly algorithm: string | undefined;
  readonly key: KeyObject;
}

export class IssuerTokens {
  readonly #issuer: TokenIssuer;
  readonly #deps: RemoteDeps & { readonly log: Log };
  #keys: readonly IssuerKey[] = [];
  #askedMs = Number.NEGATIVE_INFINITY;
  #gotMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(issuer: TokenIssuer, deps: RemoteDeps & { readonly log: Log }) {
    this.#issuer = issuer;
    this.#deps = deps;
  }

  /** Whether the token says that it is this issuer's. Nothing of it has been verified. */
  claims(token: ParsedToken): boolean {
    return token.claims['iss'] === this.#issuer.url;
  }

  /** The user and when the token ends; undefined: not a good token. Rejects when the issuer cannot be asked for its keys. */
  async authenticate(token: ParsedToken): Promise<{ readonly user: UserInfo; readonly expiresMs: number } | undefined> {
    const { alg, kid, crit } = token.header;
    if (typeof alg !== 'string' || !this.#issuer.algorithms.includes(alg) || crit !== undefined) return undefined;
    const verified = (): boolean =>
      this.#keys.some(
        (key) =>
          (key.id === undefined || kid === undefined || key.id === kid) &&
          (key.algorithm === undefined || key.algorithm === alg) &&
          isSignedBy(token, alg, key.key),
      );
    const nowMs = this.#deps.clock.nowMs();
    const known = nowMs - this.#gotMs < KEYS_MS && verified();
    if (!known) {
      await this.#renew(nowMs);
      if (!verified()) return undefined;
    }
    return this.#user(token.claims, nowMs);
  }

  #renew(nowMs: number): Promise<void> {
    if (this.#asking === undefined && nowMs - this.#askedMs < ASK_PAUSE_MS) return Promise.resolve();
    this.#askedMs = nowMs;
    this.#asking ??= this.#ask()
      .catch((error: unknown) => {
        this.#deps.log.warn('cannot fetch the keys of a token issuer', {
          issuer: this.#issuer.url,
          error: messageOf(error),
        });
        throw error;
      })
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { url, discoveryUrl, ca } = this.#issuer;
    const get = async (address: string): Promise<JsonObject> => {
      const answer = await askRemote(this.#deps, { url: address, ...(ca === undefined ? {} : { ca }) }, TIMEOUT_MS);
      if (typeof answer !== 'object' || answer === null || Array.isArray(answer))
        throw new Error(`${address}: not an object`);
      return answer;
    };
    const document = await get(discoveryUrl ?? `${url.replace(/\/$/, '')}/.well-known/openid-configuration`);
    if (document['issuer'] !== url)
      throw new Error(`the discovery document is that of ${JSON.stringify(document['issuer'])}`);
    const address = document['jwks_uri'];
    if (typeof address !== 'string' || !address.startsWith('https://'))
      throw new Error('jwks_uri is not an https address');
    const { keys } = await get(address);
    if (!Array.isArray(keys)) throw new Error(`${address}: no keys`);
    this.#keys = keys.slice(0, MAX_KEYS).flatMap(keyOf);
    this.#gotMs = this.#deps.clock.nowMs();
  }

  #user(
    claims: Readonly<Record<string, unknown>>,
    nowMs: number,
  ): { readonly user: UserInfo; readonly expiresMs: number } | undefined {
    const { audiences, url } = this.#issuer;
    const { exp, nbf, aud } = claims;
    if (claims['iss'] !== url || typeof exp !== 'number' || exp * 1000 < nowMs) return undefined;
    if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1000 <= nowMs + LEEWAY_MS)) return undefined;
    const intended: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (!intended.some((each) => typeof each === 'string' && audiences.includes(each))) return undefined;
    try {
      const user = userOfClaims(this.#issuer, claims);
      return { user: { ...user, groups: [...user.groups, 'system:authenticated'] }, expiresMs: exp * 1000 };
    } catch (error) {
      this.#deps.log.v(2, 'ID token rejected', { issuer: url, error: messageOf(error) });
      return undefined;
    }
  }
}

function keyOf(jwk: unknown): IssuerKey[] {
  if (typeof jwk !== 'object' || jwk === null) return [];
  const { use, kid, alg, kty } = jwk as Record<string, unknown>;
  if (use !== undefined && use !== 'sig') return [];
  if (kty !== 'RSA' && kty !== 'EC') return [];
  try {
    return [
      {
        id: typeof kid === 'string' ? kid : undefined,
        algorithm: typeof alg === 'string' ? alg : undefined,
        key: createPublicKey({ key: jwk as Record<string, string>, format: 'jwk' }),
      },
    ];
  } catch {
    // Unsupported key type.
    return [];
  }
}

/** The algorithm must fit the key, so that a token cannot choose how it is looked at. */
function isSignedBy({ input, signature }: ParsedToken, algorithm: string, key: KeyObject): boolean {
  const family = algorithm.slice(0, 2);
  const bits = algorithm.slice(2);
  const hash = HASHES[bits];
  if (hash === undefined) return false;
  if (family === 'ES') {
    if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== CURVES[bits]) return false;
    return verify(hash, input, { key, dsaEncoding: 'ieee-p1363' }, signature);
  }
  if (key.asymmetricKeyType !== 'rsa') return false;
  if (family === 'RS') return verify(hash, input, key, signature);
  const padding = cryptoConstants.RSA_PKCS1_PSS_PADDING;
  return (
    family === 'PS' &&
    verify(hash, input, { key, padding, saltLength: cryptoConstants.RSA_PSS_SALTLEN_DIGEST }, signature)
  );
}
