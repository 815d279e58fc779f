/** Handles `/oauth/token`: exchanges a code for a token. Source: RFC 6749, section 4.1.3; RFC 7636, section 4.6. */

import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { Log } from '../../../base/log.ts';
import { sha256Base64url } from '../../../wire/digest.ts';
import { basicCredentials, type HttpCall, readForm, sendError, sendJson } from '../http.ts';
import type { OAuthAuthorizeToken, OAuthClient } from '../kinds/oauth/types.ts';
import { sameText } from '../login/cookies.ts';
import { clientOf, isOwnConsole } from './clients.ts';
import { isServiceAccountClient } from './service-account-clients.ts';
import { AUTHORIZE_TOKENS, type IssuedToken, type TokenIssuer } from './tokens.ts';

const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

export interface CodeUse {
  readonly client: OAuthClient;
  readonly code: string;
  readonly redirect: string;
  readonly verifier: string;
}

export interface ExchangeDeps {
  readonly objects: LoginObjects;
  readonly issuer: TokenIssuer;
  readonly log: Log;
  nowMs(): number;
}

/** Exchanges a code. Returns undefined if the code is invalid, expired, already used or issued for another client. */
export async function exchangeCode(
  { objects, issuer, log, nowMs }: ExchangeDeps,
  { client, code, redirect, verifier }: CodeUse,
): Promise<(IssuedToken & { readonly scopes: readonly string[] }) | undefined> {
  await objects.freshen();
  const name = objects.tokenName(code);
  const stored = objects.get<OAuthAuthorizeToken>(AUTHORIZE_TOKENS, name);
  const { clientName, userName = '', userUID = '', scopes = [], redirectURI = '', expiresIn = 0 } = stored ?? {};
  if (stored !== undefined && clientName !== client.metadata?.name) return undefined;
  // If two requests use the same code, only one can delete the stored code. The other request is a replay.
  if (stored === undefined || !(await objects.remove(AUTHORIZE_TOKENS, name))) {
    const revoked = await issuer.revokeTokensOf(name);
    if (revoked > 0) log.warn('authorization code replayed; tokens revoked', { tokens: revoked });
    return undefined;
  }
  const ageMs = nowMs() - Date.parse(stored.metadata?.creationTimestamp ?? '');
  if (!(ageMs < expiresIn * 1000) || redirectURI !== redirect) return undefined;
  if (!provesPossession(stored.codeChallenge ?? '', verifier)) return undefined;
  const grant = { client, user: { name: userName, uid: userUID }, scopes, redirect: redirectURI };
  return { ...(await issuer.issueToken(grant, name)), scopes };
}

/**
 * Whether the verifier matches the challenge. A verifier without a challenge is a downgrade attack (RFC 9700, section
 * 2.1.1).
 */
function provesPossession(challenge: string, verifier: string): boolean {
  if (challenge === '') return verifier === '';
  return VERIFIER.test(verifier) && sameText(sha256Base64url(verifier), challenge);
}

/** Whether the secret is one of the client's. A client without secrets has only its PKCE verifier. */
function provesIdentity(objects: LoginObjects, client: OAuthClient, secret: string): boolean {
  const id = client.metadata?.name ?? '';
  if (isServiceAccountClient(id)) return secret !== '' && objects.serviceAccountOf(secret) === id;
  const known = [client.secret ?? '', ...(client.additionalSecrets ?? [])].filter((each) => each !== '');
  return known.length === 0 || known.some((each) => sameText(each, secret));
}

/** Handles `POST /oauth/token`. */
export async function answerToken(call: HttpCall, deps: ExchangeDeps): Promise<void> {
  if (call.request.method !== 'POST') return sendError(call, 405, 'invalid_request', 'use POST', { allow: 'POST' });
  const form = await readForm(call);
  if (form === undefined) return sendError(call, 400, 'invalid_request', 'the body is not a form');
  const repeated = [...form.keys()].find((name) => form.getAll(name).length > 1);
  if (repeated !== undefined) return sendError(call, 400, 'invalid_request', 'a parameter is given more than once');
  const value = (name: string): string => form.get(name) ?? '';
  const basic = basicCredentials(call);
  // The client ID and the secret are form-encoded (RFC 6749, section 2.3.1).
  const decoded = (text: string): string => new URLSearchParams(`v=${text}`).get('v') ?? '';
  const id = basic === undefined ? value('client_id') : decoded(basic.user);
  const secret = basic === undefined ? value('client_secret') : decoded(basic.secret);
  const client = clientOf(deps.objects, id);
  const own = isOwnConsole(id, secret, value('redirect_uri'), call.origin);
  if (own && value('code_verifier') === '')
    return sendError(call, 400, 'invalid_request', 'code_verifier: is required of the console');
  if (client === undefined || !(own || provesIdentity(deps.objects, client, secret)))
    return sendError(call, 401, 'invalid_client', 'the client is unknown or its secret is wrong', {
      'www-authenticate': 'Basic realm="openshift"',
    });
  if (value('grant_type') !== 'authorization_code')
    return sendError(call, 400, 'unsupported_grant_type', 'grant_type: only authorization_code is supported');
  const issued = await exchangeCode(deps, {
    client,
    code: value('code'),
    redirect: value('redirect_uri'),
    verifier: value('code_verifier'),
  });
  if (issued === undefined)
    return sendError(call, 400, 'invalid_grant', 'code: is unknown, used, expired, or of another client or redirect');
  sendJson(call, 200, {
    access_token: issued.token,
    token_type: 'Bearer',
    expires_in: issued.expiresIn,
    scope: issued.scopes.join(' '),
  });
}
