/**
 * Logs users in through an OpenID provider with the authorization code flow. Source: OpenID Connect Core 1.0, section
 * 3.1; RFC 7636.
 */

import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import {
  type Decoded,
  decodeJson,
  fields,
  list,
  number,
  object,
  optional,
  own,
  text as string,
} from '../../../base/decode.ts';
import { sha256Base64url } from '../../../wire/digest.ts';
import { type HttpCall, header, redirect } from '../http.ts';
import { cookie, cookieOf, sameText, signCookie, verify } from '../login/cookies.ts';
import type { WebPort } from '../port.ts';
import type { IdentityProvider, LoginIdentity } from '../types.ts';
import type { Discoveries } from './discovery.ts';
import { firstValue } from './htpasswd.ts';

const COOKIE = '__Host-openid';
const MAX_WAIT_MS = 600_000;
/** Tolerance for token times, because the clock of a host without a real-time clock may be off by minutes. */
const CLOCK_TOLERANCE_SECONDS = 300;

const PENDING = object({
  provider: string,
  next: string,
  state: string,
  nonce: string,
  verifier: string,
  untilMs: number,
});
type Pending = Decoded<typeof PENDING>;

const TOKENS = object({ id_token: optional(string) });
const KEY_SET = own<JSONWebKeySet>(object({ keys: list(fields) }));

export interface OpenIdDeps {
  readonly web: WebPort;
  readonly discoveries: Discoveries;
  readonly key: Uint8Array;
  readonly nowMs: number;
  /** Returns 32 random bytes in base64url. */
  random(): string;
  text(provider: IdentityProvider, what: 'ca' | 'secret'): Promise<string | undefined>;
}

const callback = (call: HttpCall, name: string): string =>
  `${call.origin ?? ''}/oauth2callback/${encodeURIComponent(name)}`;

/** Starts a login: redirects the browser to the provider. */
export async function beginOpenId(
  call: HttpCall,
  provider: IdentityProvider,
  next: string,
  deps: OpenIdDeps,
): Promise<void> {
  const { openID = {}, name } = provider;
  const ca = await deps.text(provider, 'ca');
  const { authorization_endpoint: endpoint } = await deps.discoveries.get(openID.issuer ?? '', ca);
  const [state, nonce, verifier] = [deps.random(), deps.random(), deps.random()];
  const pending: Pending = { provider: name, next, state, nonce, verifier, untilMs: deps.nowMs + MAX_WAIT_MS };
  const url = new URL(endpoint);
  const parameters = {
    ...openID.extraAuthorizeParameters,
    response_type: 'code',
    client_id: openID.clientID ?? '',
    redirect_uri: callback(call, name),
    scope: ['openid', ...(openID.extraScopes ?? [])].join(' '),
    state,
    nonce,
    code_challenge: sha256Base64url(verifier),
    code_challenge_method: 'S256',
  };
  for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
  redirect(call, url.href, { 'set-cookie': cookie(COOKIE, signCookie(deps.key, COOKIE, pending)) });
}

/**
 * Finishes a login: returns the identity from the provider's callback. Rejects with an Error that describes the fault.
 */
export async function finishOpenId(
  call: HttpCall,
  provider: IdentityProvider,
  deps: OpenIdDeps,
): Promise<{ readonly identity: LoginIdentity; readonly next: string; readonly cookies: string[] }> {
  const { openID = {}, name } = provider;
  const pending = verify(deps.key, COOKIE, cookieOf(header(call, 'cookie'), COOKIE), PENDING);
  const state = call.query.get('state') ?? '';
  if (pending === undefined || pending.provider !== name || !sameText(pending.state, state))
    throw new Error('state: is not that of this browser; log in again');
  if (pending.untilMs < deps.nowMs) throw new Error('state: has expired; log in again');
  const code = call.query.get('code') ?? '';
  if (code === '')
    throw new Error(`the provider answered ${JSON.stringify(call.query.get('error') ?? 'without a code')}`);
  const ca = await deps.text(provider, 'ca');
  const found = await deps.discoveries.get(openID.issuer ?? '', ca);
  const { token_endpoint: endpoint, jwks_uri: keysUrl, issuer } = found;
  const secret = (await deps.text(provider, 'secret')) ?? '';
  const credentials = [openID.clientID ?? '', secret].map(encodeURIComponent).join(':');
  const answer = await deps.web.request(endpoint, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: callback(call, name),
      code_verifier: pending.verifier,
    }).toString(),
    ca,
  });
  if (answer.status !== 200) throw new Error(`${endpoint}: status ${answer.status}`);
  const { id_token: idToken = '' } = decodeJson(TOKENS, answer.text, endpoint);
  const keys = await deps.web.request(keysUrl, { method: 'GET', headers: {}, ca });
  const { payload } = await jwtVerify(idToken, createLocalJWKSet(decodeJson(KEY_SET, keys.text, keysUrl)), {
    issuer,
    audience: openID.clientID ?? '',
    currentDate: new Date(deps.nowMs),
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ['sub', 'exp'],
  });
  // A token for several clients, or with another authorized party, must be rejected (section 3.1.3.7).
  const { azp, aud } = payload;
  if ((azp !== undefined || (Array.isArray(aud) && aud.length > 1)) && azp !== openID.clientID)
    throw new Error('id_token: azp is another client');
  if (typeof payload.sub !== 'string' || payload.sub === '') throw new Error('id_token: has no sub');
  if (payload['nonce'] !== pending.nonce) throw new Error('id_token: has another nonce; log in again');
  return { identity: identityOf(provider, payload), next: pending.next, cookies: [cookie(COOKIE, '')] };
}

function identityOf({ name, openID = {} }: IdentityProvider, claims: Readonly<Record<string, unknown>>): LoginIdentity {
  const {
    preferredUsername = ['preferred_username'],
    name: names = ['name'],
    email = ['email'],
    groups,
  } = openID.claims ?? {};
  const read = (candidates: readonly string[]): string =>
    firstValue(candidates, (claim) => (typeof claims[claim] === 'string' ? (claims[claim] as string) : undefined));
  const id = String(claims['sub']);
  const preferred = read(preferredUsername);
  const mail = read(email);
  const reported = groups
    ?.map((claim) => claims[claim])
    .find((value) => Array.isArray(value) || typeof value === 'string');
  return {
    provider: name,
    id,
    preferredUserName: preferred === '' ? id : preferred,
    fullName: read(names),
    extra: { ...(mail === '' ? {} : { email: mail }), ...(preferred === '' ? {} : { preferred_username: preferred }) },
    ...(groups === undefined ? {} : { groups: [reported ?? []].flat().map(String) }),
  };
}
