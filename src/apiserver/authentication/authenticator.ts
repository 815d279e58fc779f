/**
 * Authenticates requests, in upstream's order: front proxy, client certificate, bearer token (token file, OAuth token,
 * service account, bootstrap token, OIDC issuers, webhook).
 */

import { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiServerConfig, CertificateSettings, Followed, IdentitySettings } from '../config/server-config.ts';
import type { ConnectionInfo, HttpRequest } from '../port.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import type { RemoteDeps } from '../webhooks/remote.ts';
import { authenticateBootstrapToken } from './bootstrap-tokens.ts';
import { createCertificateAuthenticator } from './certificates.ts';
import { createFrontProxyAuthenticator } from './front-proxy.ts';
import { IssuerTokens } from './issuers.ts';
import { type ParsedToken, parseToken } from './jwt.ts';
import type { OAuthTokens } from './oauth-tokens.ts';
import type { ServiceAccountTokens, TokenIdentity } from './service-accounts.ts';
import { createTokenFileAuthenticator } from './token-file.ts';
import { TokenWebhookClient } from './token-webhook.ts';

export interface Authenticator {
  /**
   * Returns the user, or undefined if the request has no credentials. Throws or rejects with 'Unauthorized' for invalid
   * credentials.
   */
  authenticate(request: HttpRequest, connection: ConnectionInfo): UserInfo | undefined | Promise<UserInfo>;
  /** Verifies a token for TokenReview. */
  authenticateToken(token: string, audiences: readonly string[] | undefined): MaybeIdentity;
}

type MaybeIdentity = TokenIdentity | undefined | Promise<TokenIdentity | undefined>;

export interface AuthenticatorDeps extends RemoteDeps {
  readonly config: ApiServerConfig;
  readonly identities: Followed<IdentitySettings>;
  readonly certificates: Followed<CertificateSettings>;
  readonly tokens: ServiceAccountTokens;
  readonly oauthTokens: OAuthTokens;
  readonly cache: WatchCache;
  readonly log: Log;
}

export const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

export const unauthorized = (): ApiError => new ApiError('Unauthorized', 'Unauthorized');

const NO_ISSUERS: NonNullable<IdentitySettings['tokenIssuers']> = [];
const WEBSOCKET_TOKEN = 'base64url.bearer.authorization.k8s.io.';

/** How long a verified token of an issuer stays in the cache. */
const REMEMBER_MS = 60_000;
const MAX_REMEMBERED = 4096;

export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const { clock } = deps;
  const byCertificate = certificateAuthenticators(deps);
  const authenticateToken = createTokenAuthenticator(deps);
  const sent = new WeakMap<ConnectionInfo, SentToken>();
  return {
    authenticateToken,
    authenticate(request, connection) {
      const { certificates, frontProxy } = byCertificate();
      const proxied = frontProxy?.authenticate(request, connection);
      if (proxied !== undefined) return proxied;
      const certified = certificates?.authenticate(connection, clock.nowMs()) ?? 'none';
      if (typeof certified === 'object') return certified;
      const token = tokenOf(sent, request, connection);
      if (token === undefined) {
        // An invalid certificate is not treated as anonymous: clients need the 401 to switch to other credentials.
        if (certified === 'refused') throw unauthorized();
        return undefined;
      }
      const identity = authenticateToken(token, undefined);
      if (identity instanceof Promise) return identity.then(userOf);
      return userOf(identity);
    },
  };
}

/**
 * Authenticators for client certificates. They are rebuilt when the trusted CAs change, so that the certificates of
 * open connections are verified again.
 */
function certificateAuthenticators({ config, certificates: followed }: AuthenticatorDeps) {
  const { requestHeader } = config;
  const made = (settings: CertificateSettings) => ({
    settings,
    certificates: settings.clientCa === undefined ? undefined : createCertificateAuthenticator(settings.clientCa),
    frontProxy:
      requestHeader === undefined
        ? undefined
        : createFrontProxyAuthenticator({ ...requestHeader, ca: settings.proxyCa ?? requestHeader.ca }),
  });
  let current = made(followed.current);
  return () => {
    if (followed.current !== current.settings) current = made(followed.current);
    return current;
  };
}

function userOf(identity: TokenIdentity | undefined): UserInfo {
  if (identity === undefined) throw unauthorized();
  return identity.user;
}

/**
 * Tries the token authenticators in upstream's order. The first authenticator that accepts the token decides. Only
 * issuers and the webhook may require requests to other servers.
 */
function createTokenAuthenticator(deps: AuthenticatorDeps): Authenticator['authenticateToken'] {
  const { config, tokens, cache, clock, log } = deps;
  const file = config.staticTokens === undefined ? undefined : createTokenFileAuthenticator(config.staticTokens);
  const webhook =
    config.tokenWebhook === undefined
      ? undefined
      : new TokenWebhookClient(config.tokenWebhook, deps, tokens.defaultAudiences);
  const remembered = new BoundedMap<string, { readonly user: UserInfo; readonly untilMs: number }>(MAX_REMEMBERED);
  let configured: IdentitySettings['tokenIssuers'];
  let known: readonly IssuerTokens[] = [];
  /** Current issuers. They are rebuilt when the configuration changes, which discards the cache of verified tokens. */
  const issuersNow = (): readonly IssuerTokens[] => {
    const { tokenIssuers = NO_ISSUERS } = deps.identities.current;
    if (tokenIssuers !== configured) {
      configured = tokenIssuers;
      known = tokenIssuers.map((issuer) => new IssuerTokens(issuer, deps));
      remembered.clear();
    }
    return known;
  };
  /** Identity for credentials without audiences, which are valid for this API server. */
  const here = (user: UserInfo, audiences: readonly string[] | undefined): TokenIdentity | undefined => {
    const wanted = audiences ?? tokens.defaultAudiences;
    const common = tokens.defaultAudiences.filter((each) => wanted.includes(each));
    return common.length === 0 ? undefined : { user, audiences: common };
  };
  const fromIssuer = async (parsed: ParsedToken, token: string): Promise<UserInfo | undefined> => {
    const issuers = issuersNow();
    for (const issuer of issuers) {
      if (!issuer.claims(parsed)) continue;
      const found = await issuer.authenticate(parsed, token).catch(() => undefined);
      if (found === undefined) continue;
      // The issuers may have been reconfigured during the await.
      if (issuersNow() !== issuers) return undefined;
      remembered.set(token, { user: found.user, untilMs: Math.min(found.expiresMs, clock.nowMs() + REMEMBER_MS) });
      return found.user;
    }
    return undefined;
  };
  const reviewToken = (token: string, audiences: readonly string[] | undefined): MaybeIdentity => {
    const answer = webhook?.authenticate(token, audiences);
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error: unknown) => {
      log.warn('token webhook failed', { error: messageOf(error) });
      return undefined;
    });
  };
  return (token, audiences) => {
    const listed = file?.authenticate(token);
    if (listed !== undefined) return here(listed, audiences);
    const user = deps.oauthTokens.authenticate(token);
    if (user !== undefined) return here(user, audiences);
    const account = tokens.authenticate(token, audiences);
    if (account !== undefined) return account;
    const newcomer =
      config.bootstrapTokens === true ? authenticateBootstrapToken(cache, token, clock.nowMs()) : undefined;
    if (newcomer !== undefined) return here(newcomer, audiences);
    const issuers = issuersNow();
    const recent = remembered.get(token);
    if (recent !== undefined && recent.untilMs > clock.nowMs()) return here(recent.user, audiences);
    const parsed = issuers.length === 0 ? undefined : parseToken(token);
    if (parsed === undefined || !issuers.some((issuer) => issuer.claims(parsed))) return reviewToken(token, audiences);
    return fromIssuer(parsed, token).then((user) =>
      user === undefined ? reviewToken(token, audiences) : here(user, audiences),
    );
  };
}

/** Authorization header of the last request on a connection. */
interface SentToken {
  readonly header: string;
  readonly token: string | undefined;
}

/**
 * Returns the bearer token of a request. Requests on one connection usually repeat the same token of about a kilobyte;
 * returning the same string object saves computing its hash again.
 */
function tokenOf(
  sent: WeakMap<ConnectionInfo, SentToken>,
  request: HttpRequest,
  connection: ConnectionInfo,
): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined) return bearerToken(request);
  const last = sent.get(connection);
  if (last?.header === header) return last.token;
  const token = bearerToken(request);
  sent.set(connection, { header, token });
  return token;
}

function bearerToken(request: HttpRequest): string | undefined {
  const header = request.headers.authorization;
  if (header !== undefined) {
    const space = header.indexOf(' ');
    if (space < 0 || header.slice(0, space).toLowerCase() !== 'bearer') return undefined;
    const token = header.slice(space + 1).trim();
    return token === '' ? undefined : token;
  }
  // Browsers cannot set headers on a WebSocket, so upstream accepts the token as a subprotocol.
  const protocols = request.headers['sec-websocket-protocol'];
  if (typeof protocols !== 'string' || !protocols.includes(WEBSOCKET_TOKEN)) return undefined;
  const carrier = protocols
    .split(',')
    .map((each) => each.trim())
    .find((each) => each.startsWith(WEBSOCKET_TOKEN));
  return carrier === undefined
    ? undefined
    : Buffer.from(carrier.slice(WEBSOCKET_TOKEN.length), 'base64url').toString('utf8');
}
