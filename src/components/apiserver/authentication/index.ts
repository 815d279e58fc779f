/** Who asks. The order is upstream's: front proxy, client certificate, bearer token. */

import { ApiError } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { ApiServerConfig } from '../config.ts';
import type { ConnectionInfo, HttpRequest } from '../port.ts';
import { createCertificateAuthenticator } from './certificates.ts';
import { createFrontProxyAuthenticator } from './front-proxy.ts';
import type { ServiceAccountTokens, TokenIdentity } from './service-accounts.ts';
import { createTokenFileAuthenticator } from './token-file.ts';

export interface Authenticator {
  /** The user; undefined without credentials. Throws 'Unauthorized' for credentials that are not good. */
  authenticate(request: HttpRequest, connection: ConnectionInfo): UserInfo | undefined;
  /** For TokenReview. */
  authenticateToken(token: string, audiences: readonly string[] | undefined): TokenIdentity | undefined;
}

export const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

export const unauthorized = (): ApiError => new ApiError('Unauthorized', 'Unauthorized');

const WEBSOCKET_TOKEN = 'base64url.bearer.authorization.k8s.io.';

export function createAuthenticator(
  config: ApiServerConfig,
  tokens: ServiceAccountTokens,
  nowMs: () => number,
): Authenticator {
  const certificates = config.clientCa === undefined ? undefined : createCertificateAuthenticator(config.clientCa);
  const frontProxy =
    config.requestHeader === undefined ? undefined : createFrontProxyAuthenticator(config.requestHeader);
  const file = config.staticTokens === undefined ? undefined : createTokenFileAuthenticator(config.staticTokens);
  const authenticateToken = (token: string, audiences: readonly string[] | undefined): TokenIdentity | undefined => {
    const user = file?.authenticate(token);
    if (user !== undefined) return { user, audiences: audiences ?? tokens.defaultAudiences };
    return tokens.authenticate(token, audiences);
  };
  return {
    authenticateToken,
    authenticate(request, connection) {
      const proxied = frontProxy?.authenticate(request, connection);
      if (proxied !== undefined) return proxied;
      const certified = certificates?.authenticate(connection, nowMs());
      if (certified !== undefined) return certified;
      const token = bearerToken(request);
      if (token === undefined) return undefined;
      const identity = authenticateToken(token, undefined);
      if (identity === undefined) throw unauthorized();
      return identity.user;
    },
  };
}

function bearerToken(request: HttpRequest): string | undefined {
  const header = request.headers.authorization;
  if (header !== undefined) {
    const space = header.indexOf(' ');
    if (space < 0 || header.slice(0, space).toLowerCase() !== 'bearer') return undefined;
    const token = header.slice(space + 1).trim();
    return token === '' ? undefined : token;
  }
  // Browsers cannot set headers on a WebSocket; upstream lets the token travel as a sub-protocol.
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
