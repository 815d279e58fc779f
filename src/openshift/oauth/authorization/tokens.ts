/** Issues codes and access tokens. Each is generated from 32 random bytes and stored under its hash. */

import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { RandomSource } from '../../../base/time/clock.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import {
  INACTIVITY_SECONDS,
  type OAuthAccessToken,
  type OAuthAuthorizeToken,
  type OAuthClient,
} from '../kinds/oauth/types.ts';
import type { LoginUser } from '../providers/mapping.ts';
import type { OAuthConfiguration } from '../types.ts';

export const ACCESS_TOKENS = 'oauthaccesstokens.oauth.openshift.io';
export const AUTHORIZE_TOKENS = 'oauthauthorizetokens.oauth.openshift.io';
const DAY_SECONDS = 86_400;
const CODE_SECONDS = 300;
const MAX_REPLAYED = 1024;
/**
 * Maximum number of objects per user. A limit is required because a session can request any number of codes and tokens.
 */
const MOST_OF_USER = { [AUTHORIZE_TOKENS]: 32, [ACCESS_TOKENS]: 1_000 } as const;

export interface Grant {
  readonly client: OAuthClient;
  readonly user: LoginUser;
  readonly scopes: readonly string[];
  readonly redirect: string;
}

export interface IssuedToken {
  readonly token: string;
  readonly expiresIn: number;
}

export class TokenIssuer {
  readonly #objects: LoginObjects;
  readonly #random: RandomSource;
  readonly #configuration: () => OAuthConfiguration;
  /** Codes that were used again while their token was being created. The token is then revoked after its creation. */
  readonly #replayed = new Set<string>();

  constructor(objects: LoginObjects, random: RandomSource, configuration: () => OAuthConfiguration) {
    this.#objects = objects;
    this.#random = random;
    this.#configuration = configuration;
  }

  newSecret(): string {
    return `sha256~${Buffer.from(this.#random.bytes(32)).toString('base64url')}`;
  }

  async issueCode(grant: Grant, state: string, challenge: string): Promise<string> {
    const code = this.newSecret();
    await this.#makeRoom(AUTHORIZE_TOKENS, grant.user.name);
    await this.#objects.create<OAuthAuthorizeToken>(AUTHORIZE_TOKENS, {
      ...this.#common(grant, code),
      expiresIn: CODE_SECONDS,
      ...(state === '' ? {} : { state }),
      ...(challenge === '' ? {} : { codeChallenge: challenge, codeChallengeMethod: 'S256' }),
    });
    return code;
  }

  /** Creates an access token. `code`: name of the authorize token for which it is exchanged, if any. */
  async issueToken(grant: Grant, code?: string): Promise<IssuedToken> {
    const { client } = grant;
    const { tokenConfig = {} } = this.#configuration();
    const { accessTokenMaxAgeSeconds: configured = 0 } = tokenConfig;
    const expiresIn = client.accessTokenMaxAgeSeconds ?? (configured === 0 ? DAY_SECONDS : Math.max(0, configured));
    const idle = client.accessTokenInactivityTimeoutSeconds ?? inactivitySeconds(tokenConfig);
    const token = this.newSecret();
    const common = this.#common(grant, token);
    await this.#makeRoom(ACCESS_TOKENS, grant.user.name);
    const annotations = idle > 0 ? { [INACTIVITY_SECONDS]: String(idle) } : {};
    await this.#objects.create<OAuthAccessToken>(ACCESS_TOKENS, {
      ...common,
      metadata: { ...common.metadata, annotations },
      expiresIn,
      ...(idle > 0 ? { inactivityTimeoutSeconds: idle } : {}),
      ...(code === undefined ? {} : { authorizeToken: code }),
    });
    if (code !== undefined && this.#replayed.has(code)) await this.revokeTokensOf(code);
    return { token, expiresIn };
  }

  /** Deletes the tokens that were issued for a code, because the code was used again (RFC 6749, section 4.1.2). */
  async revokeTokensOf(code: string): Promise<number> {
    if (this.#replayed.size >= MAX_REPLAYED) this.#replayed.clear();
    this.#replayed.add(code);
    const issued = this.#objects
      .list<OAuthAccessToken>(ACCESS_TOKENS)
      .filter(({ authorizeToken }) => authorizeToken === code);
    await Promise.all(issued.map(({ metadata }) => this.#objects.remove(ACCESS_TOKENS, metadata?.name ?? '')));
    return issued.length;
  }

  /**
   * Deletes the oldest objects of the user if the user has reached the maximum number, so that one more can be created.
   */
  async #makeRoom(resource: keyof typeof MOST_OF_USER, user: string): Promise<void> {
    const own = this.#objects.list<OAuthAccessToken>(resource).filter(({ userName }) => userName === user);
    if (own.length < MOST_OF_USER[resource]) return;
    const created = ({ metadata }: OAuthAccessToken): string => String(metadata?.creationTimestamp ?? '');
    own.sort((left, right) => (created(left) < created(right) ? -1 : 1));
    for (const { metadata } of own.slice(0, own.length - MOST_OF_USER[resource] + 1))
      await this.#objects.remove(resource, metadata?.name ?? '');
  }

  /** Deletes expired tokens and codes. */
  async sweep(nowMs: number): Promise<void> {
    for (const resource of [ACCESS_TOKENS, AUTHORIZE_TOKENS] as const)
      for (const { metadata, expiresIn = 0 } of this.#objects.list<OAuthAccessToken>(resource)) {
        const endMs = Date.parse(metadata?.creationTimestamp ?? '') + expiresIn * 1000;
        if (expiresIn > 0 && endMs < nowMs) await this.#objects.remove(resource, metadata?.name ?? '');
      }
  }

  #common({ client, user, scopes, redirect }: Grant, secret: string) {
    return {
      metadata: { name: this.#objects.tokenName(secret) },
      clientName: client.metadata?.name ?? '',
      userName: user.name,
      userUID: user.uid,
      scopes: [...scopes],
      redirectURI: redirect,
    };
  }
}

function inactivitySeconds({
  accessTokenInactivityTimeout: text,
  accessTokenInactivityTimeoutSeconds = 0,
}: NonNullable<OAuthConfiguration['tokenConfig']>): number {
  if (text === undefined) return Math.max(0, accessTokenInactivityTimeoutSeconds);
  const milliseconds = parseDuration(text);
  return milliseconds === undefined ? 0 : Math.floor(milliseconds / 1000);
}
