/**
 * ID tokens of OpenID Connect issuers: discovers the keys and maps claims to users. Source: OpenID Connect Core and
 * Discovery 1.0; k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.
 */
import { compactVerify, createLocalJWKSet, errors, type JWK } from 'jose';
import type { JsonObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { callRemote, type RemoteDeps } from '../webhooks/remote.ts';
import { type ClaimRules, userOfClaims } from './claims.ts';
import type { ParsedToken } from './jwt.ts';

export interface TokenIssuer extends ClaimRules {
  /** `iss` claim of its tokens, an https URL. */
  readonly url: string;
  /** URL of the discovery document if it is not below `url`. */
  readonly discoveryUrl?: string;
  /** PEM bundle of the CAs of the issuer. Undefined: the public authorities. */
  readonly ca?: string;
  /** The `aud` claim must contain at least one of these values. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
}

const TIMEOUT_MS = 10_000;
/** Minimum interval between key set requests, so that tokens with unknown key IDs do not cause one request each. */
const DISCOVERY_PAUSE_MS = 10_000;
/** Age at which the key set is fetched again, so that keys that the issuer has removed are no longer accepted. */
const KEYS_MS = 60 * 60_000;
const LEEWAY_MS = 10_000;
const MAX_KEYS = 200;

/** Supported algorithms. "none" and shared secrets are not among them. */
export const SIGNING_ALGORITHMS: readonly string[] = ['RS', 'ES', 'PS'].flatMap((family) =>
  ['256', '384', '512'].map((bits) => `${family}${bits}`),
);

/** Finds the key for a token's `kid` and `alg` (RFC 7517). */
type KeySet = ReturnType<typeof createLocalJWKSet>;

export class IssuerTokens {
  readonly #issuer: TokenIssuer;
  readonly #deps: RemoteDeps & { readonly log: Log };
  #keys: KeySet = createLocalJWKSet({ keys: [] });
  #discoveredMs = Number.NEGATIVE_INFINITY;
  #gotMs = Number.NEGATIVE_INFINITY;
  #discovering: Promise<void> | undefined;
  /** The last fetch of the key set failed. */
  #isUnreachable = false;

  constructor(issuer: TokenIssuer, deps: RemoteDeps & { readonly log: Log }) {
    this.#issuer = issuer;
    this.#deps = deps;
  }

  /** Reports whether the `iss` claim names this issuer. The claim is not verified yet. */
  claims(token: ParsedToken): boolean {
    return token.claims['iss'] === this.#issuer.url;
  }

  /**
   * Returns the user and expiry of `token`; undefined if the token is not valid. `parsed` is the parsed form of
   * `token`. Rejects when none of the known keys verifies the token and the issuer's keys cannot be fetched.
   */
  async authenticate(
    parsed: ParsedToken,
    token: string,
  ): Promise<{ readonly user: UserInfo; readonly expiresMs: number } | undefined> {
    const { alg, crit } = parsed.header;
    if (typeof alg !== 'string' || !this.#issuer.algorithms.includes(alg) || crit !== undefined) return undefined;
    const nowMs = this.#deps.clock.nowMs();
    let isSigned = await isSignedBy(token, this.#keys);
    if (!isSigned || nowMs - this.#gotMs >= KEYS_MS) {
      await (isSigned ? this.#refresh(nowMs) : this.#renew(nowMs));
      isSigned = await isSignedBy(token, this.#keys);
    }
    return isSigned ? this.#user(parsed.claims, nowMs) : undefined;
  }

  /**
   * Renews the key set for a token that the known keys verify. Never rejects, so an outage of the issuer does not lock
   * out its users: the known keys remain valid until the next successful fetch. Does not wait for an issuer whose last
   * fetch failed.
   */
  async #refresh(nowMs: number): Promise<void> {
    const mustWait = !this.#isUnreachable;
    const renewal = this.#renew(nowMs).catch(ignore('logged by #renew; the known keys remain valid'));
    if (mustWait) await renewal;
  }

  #renew(nowMs: number): Promise<void> {
    if (this.#discovering === undefined && nowMs - this.#discoveredMs < DISCOVERY_PAUSE_MS) return Promise.resolve();
    this.#discoveredMs = nowMs;
    this.#discovering ??= this.#discover()
      .catch((error: unknown) => {
        this.#isUnreachable = true;
        this.#deps.log.warn('cannot fetch the keys of a token issuer', {
          issuer: this.#issuer.url,
          error: messageOf(error),
        });
        throw error;
      })
      .finally(() => {
        this.#discovering = undefined;
      });
    return this.#discovering;
  }

  async #discover(): Promise<void> {
    const { url, discoveryUrl, ca } = this.#issuer;
    const get = async (address: string): Promise<JsonObject> => {
      const answer = await callRemote(this.#deps, { url: address, ...(ca === undefined ? {} : { ca }) }, TIMEOUT_MS);
      if (typeof answer !== 'object' || answer === null || Array.isArray(answer))
        throw new Error(`the response of ${address} is not a JSON object`);
      return answer;
    };
    const document = await get(discoveryUrl ?? `${url.replace(/\/$/, '')}/.well-known/openid-configuration`);
    if (document['issuer'] !== url)
      throw new Error(
        `issuer in the discovery document is ${JSON.stringify(document['issuer'])}, not ${JSON.stringify(url)}`,
      );
    const address = document['jwks_uri'];
    if (typeof address !== 'string' || !address.startsWith('https://'))
      throw new Error('jwks_uri is not an https address');
    const { keys } = await get(address);
    if (!Array.isArray(keys)) throw new Error(`${address}: no keys`);
    this.#keys = createLocalJWKSet({ keys: keys.slice(0, MAX_KEYS).filter(isJwk) });
    this.#gotMs = this.#deps.clock.nowMs();
    this.#isUnreachable = false;
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

/**
 * Reports whether the value has the shape of a JSON Web Key. jose skips encryption keys and keys that do not fit the
 * token's algorithm.
 */
function isJwk(value: unknown): value is JWK {
  return typeof value === 'object' && value !== null && 'kty' in value && typeof value.kty === 'string';
}

/**
 * Verifies a signature on the thread pool. The key must fit the algorithm, so a token cannot choose how it is verified.
 */
async function isSignedBy(token: string, keys: KeySet): Promise<boolean> {
  try {
    await compactVerify(token, keys);
    return true;
  } catch (error) {
    // Without `kid`, any key of the issuer may have signed the token.
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return false;
    for await (const key of error) {
      const signed = await compactVerify(token, key).then(
        () => true,
        () => false,
      );
      if (signed) return true;
    }
    return false;
  }
}
