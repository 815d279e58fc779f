/**
 * Handles `/oauth/authorize`: validates a request, identifies its user and responds with a code or a token. Source: RFC
 * 6749, sections 4.1 and 4.2; RFC 7636; openshift/oauth-server pkg/osinserver and pkg/oauth/handlers.
 */

import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import { type HttpCall, redirect, sendError } from '../http.ts';
import type { OAuthClient, OAuthClientAuthorization } from '../kinds/oauth/types.ts';
import { isScope } from '../kinds/oauth/validation.ts';
import type { LoginUser } from '../providers/mapping.ts';
import { CHALLENGING_CLIENT, clientOf, ownRedirects } from './clients.ts';
import { acceptedRedirect } from './redirects.ts';
import { acceptedServiceAccountRedirect, isServiceAccountClient } from './service-account-clients.ts';
import type { Grant, TokenIssuer } from './tokens.ts';

export const AUTHORIZATIONS = 'oauthclientauthorizations.oauth.openshift.io';
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
const NO_REDIRECT =
  'the service account does not exist or has no redirect URI; ' +
  'set an annotation serviceaccounts.openshift.io/oauth-redirecturi.NAME or oauth-redirectreference.NAME';
const DEFAULT_SCOPE = 'user:full';
const SINGLE = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
];

export interface AuthorizeRequest {
  readonly client: OAuthClient;
  readonly redirect: string;
  readonly type: 'code' | 'token';
  readonly scopes: readonly string[];
  readonly state: string;
  readonly challenge: string;
}

/** Parses the request. If it is invalid, sends an error response and returns undefined. */
export function readRequest(call: HttpCall, objects: LoginObjects, query = call.query): AuthorizeRequest | undefined {
  const value = (name: string): string => query.get(name) ?? '';
  const repeated = SINGLE.find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) {
    sendError(call, 400, 'invalid_request', `${repeated}: is given more than once`);
    return undefined;
  }
  const id = value('client_id');
  const client = clientOf(objects, id);
  if (client === undefined) {
    const problem = isServiceAccountClient(id) ? NO_REDIRECT : 'the client does not exist; create the OAuthClient';
    sendError(call, 401, 'unauthorized_client', `client_id: ${problem}`);
    return undefined;
  }
  const target = isServiceAccountClient(id)
    ? acceptedServiceAccountRedirect(client, query.get('redirect_uri'))
    : acceptedRedirect(client, query.get('redirect_uri'), ownRedirects(client, call.origin));
  if (target === undefined) {
    // Respond directly instead of redirecting, because the address in the request does not belong to the client.
    sendError(call, 400, 'invalid_request', 'redirect_uri: is not registered for the client');
    return undefined;
  }
  const type = value('response_type');
  const state = value('state');
  const challenge = value('code_challenge');
  const scopes = [
    ...new Set(
      value('scope')
        .split(' ')
        .filter((each) => each !== ''),
    ),
  ];
  const request = {
    client,
    redirect: target,
    state,
    challenge,
    scopes: scopes.length === 0 ? [DEFAULT_SCOPE] : scopes,
  };
  const fail = (error: string, description: string): undefined =>
    refuseAuthorization(call, { ...request, type: type === 'token' ? 'token' : 'code' }, error, description);
  if (type !== 'code' && type !== 'token')
    return fail('unsupported_response_type', 'response_type: is neither code nor token');
  // A token in the fragment of the URL reaches every page of the redirect's host. Neither the client's secret nor PKCE
  // protects it.
  if (type === 'token' && client.metadata?.name !== CHALLENGING_CLIENT)
    return fail('unauthorized_client', `response_type: token is for ${CHALLENGING_CLIENT}; use code`);
  if (!request.scopes.every((each) => isScope(each) && mayRequest(client, each)))
    return fail('invalid_scope', 'scope: is unknown, or not for this client');
  if (type === 'code') {
    const problem = challengeProblem(client, challenge, value('code_challenge_method'));
    if (problem !== undefined) return fail('invalid_request', problem);
  }
  return { ...request, type };
}

/**
 * Problem with the PKCE challenge; undefined if there is none. A client without a secret must use PKCE to prove later
 * that it sent this request. The method `plain` is rejected, because it proves nothing.
 */
function challengeProblem(client: OAuthClient, challenge: string, method: string): string | undefined {
  if (challenge === '' && method === '')
    return (client.secret ?? '') === '' && !isServiceAccountClient(client.metadata?.name ?? '')
      ? 'code_challenge: is required of clients without a secret'
      : undefined;
  if (method !== 'S256') return 'code_challenge_method: only S256 is supported';
  return CHALLENGE.test(challenge) ? undefined : 'code_challenge: is not a SHA-256 in base64url';
}

function mayRequest({ scopeRestrictions = [] }: OAuthClient, scope: string): boolean {
  if (scopeRestrictions.length === 0) return true;
  const [, role = '', namespace = '', escalates] = /^role:(.+?):([^:!]+)(:!)?$/.exec(scope) ?? [];
  return scopeRestrictions.some(({ literals, clusterRole }) => {
    if (literals?.includes(scope) === true) return true;
    if (clusterRole === undefined || role === '') return false;
    const has = (list: readonly string[] | undefined, wanted: string): boolean =>
      list?.includes('*') === true || list?.includes(wanted) === true;
    return (
      has(clusterRole.roleNames, role) &&
      has(clusterRole.namespaces, namespace) &&
      (escalates === undefined || clusterRole.allowEscalation === true)
    );
  });
}

/** Redirects to the client with an error. */
export function refuseAuthorization(
  call: HttpCall,
  request: AuthorizeRequest,
  error: string,
  description: string,
): undefined {
  answer(call, request, { error, error_description: description });
  return undefined;
}

function answer(call: HttpCall, request: AuthorizeRequest, fields: Readonly<Record<string, string>>): void {
  const url = new URL(request.redirect);
  const all = new URLSearchParams({ ...fields, ...(request.state === '' ? {} : { state: request.state }) });
  if (request.type === 'token') url.hash = all.toString();
  else for (const [name, value] of all) url.searchParams.set(name, value);
  redirect(call, url.href);
}

/** Whether the user must approve before the client gets these scopes. */
export function needsConsent(objects: LoginObjects, request: AuthorizeRequest, user: LoginUser): boolean {
  const { client, scopes } = request;
  if (client.grantMethod === 'auto') return false;
  const name = `${user.name}:${client.metadata?.name ?? ''}`;
  const granted = objects.get<OAuthClientAuthorization>(AUTHORIZATIONS, name);
  return granted?.userUID !== user.uid || !scopes.every((each) => granted.scopes?.includes(each) === true);
}

export async function recordConsent(objects: LoginObjects, request: AuthorizeRequest, user: LoginUser): Promise<void> {
  const clientName = request.client.metadata?.name ?? '';
  const name = `${user.name}:${clientName}`;
  const present = objects.get<OAuthClientAuthorization>(AUTHORIZATIONS, name);
  const common = { clientName, userName: user.name, userUID: user.uid };
  if (present === undefined) {
    await objects.create<OAuthClientAuthorization>(AUTHORIZATIONS, {
      metadata: { name },
      ...common,
      scopes: [...request.scopes],
    });
    return;
  }
  await objects.update<OAuthClientAuthorization>(AUTHORIZATIONS, name, (current) => ({
    ...current,
    ...common,
    // The stored grant may belong to an earlier user with the same name, so its scopes are kept only if the UID
    // matches.
    scopes: [...new Set([...(current.userUID === user.uid ? (current.scopes ?? []) : []), ...request.scopes])],
  }));
}

/** Redirects to the client with the code or token that it requested. */
export async function grantAuthorization(
  call: HttpCall,
  request: AuthorizeRequest,
  user: LoginUser,
  issuer: TokenIssuer,
): Promise<void> {
  const granted: Grant = { client: request.client, user, scopes: request.scopes, redirect: request.redirect };
  if (request.type === 'code') {
    const code = await issuer.issueCode(granted, request.state, request.challenge);
    return answer(call, request, { code });
  }
  const { token, expiresIn } = await issuer.issueToken(granted);
  answer(call, request, {
    access_token: token,
    expires_in: String(expiresIn),
    scope: request.scopes.join(' '),
    token_type: 'Bearer',
  });
}
