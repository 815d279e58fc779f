/**
 * Login of the web console: redeems one-time links, extends the session while a tab is open, and logs out. Pages of
 * other sites cannot send these requests, because each requires a token or a header that triggers a CORS preflight.
 */
import { decodeJson, object, text } from '../../../base/decode.ts';
import { CONSOLE_CLIENT } from '../authorization/clients.ts';
import { ACCESS_TOKENS } from '../authorization/tokens.ts';
import { type HttpCall, header, readBody, sendError, sendHttpResponse } from '../http.ts';
import type { OAuthAccessToken } from '../kinds/oauth/types.ts';
import type { OAuthContext } from '../server.ts';
import { cookie, SESSION } from './cookies.ts';
import { currentUser, sessionCookie } from './session.ts';

/** User name for which failed redemptions are counted, in addition to the source. No user has this name. */
const LIMITED_AS = 'console:link';
const FULL = 'user:full';
const LINK = object({ secret: text });

/** Handlers of the console's login, by path. */
export const consolePaths = (context: OAuthContext): readonly [string, (call: HttpCall) => Promise<void>][] => [
  ['/oauth/console/redeem', (call) => redeem(context, call)],
  ['/oauth/console/renew', (call) => renew(context, call)],
  ['/oauth/console/revoke', (call) => revoke(context, call, { ends: false })],
  ['/oauth/console/logout', (call) => revoke(context, call, { ends: true })],
];

async function redeem(context: OAuthContext, call: HttpCall): Promise<void> {
  if (!isOwnPost(call)) return;
  const source = call.connection.remoteAddress;
  const { limits, links, log } = context;
  const waitSeconds = limits.waitSeconds(source, LIMITED_AS);
  if (waitSeconds > 0)
    return sendError(call, 429, 'access_denied', 'too many failed logins', { 'retry-after': String(waitSeconds) });
  limits.failed(source, LIMITED_AS);
  const user = links.redeem(await secretOf(call));
  const alive = user !== undefined && currentUser(context.objects, user);
  if (!alive) {
    log.info('one-time link refused', { source });
    return sendError(call, 401, 'access_denied', 'the link is unknown, used, or expired; run hyperedge console');
  }
  limits.succeeded(source, LIMITED_AS);
  log.info('login succeeded', { user: user.name, by: 'one-time link', source });
  sendHttpResponse(call, 204, noStore(sessionCookie(context.key(), user, context.clock.nowMs())), '');
}

async function secretOf(call: HttpCall): Promise<string> {
  const body = await readBody(call, 'application/json');
  try {
    return decodeJson(LINK, body ?? '', 'link').secret;
  } catch {
    return '';
  }
}

/** Extends the session of a user. The console must send a token with the scope `user:full`. */
async function renew(context: OAuthContext, call: HttpCall): Promise<void> {
  if (!isOwnPost(call)) return;
  const { objects, clock, key } = context;
  const { clientName, scopes = [], userName: name = '', userUID: uid = '' } = tokenOf(context, call) ?? {};
  const user = { name, uid };
  // A session has all rights of the user, so a token with fewer rights must not extend it.
  if (clientName !== CONSOLE_CLIENT || !scopes.includes(FULL) || !currentUser(objects, user))
    return sendError(call, 401, 'access_denied', 'the token is no valid token of the console');
  sendHttpResponse(call, 204, noStore(sessionCookie(key(), user, clock.nowMs())), '');
}

/** Deletes the token of the request and, if `ends` is true, also the session of the browser. */
async function revoke(context: OAuthContext, call: HttpCall, { ends }: { readonly ends: boolean }): Promise<void> {
  if (!isOwnPost(call)) return;
  const token = tokenOf(context, call);
  if (token === undefined) return sendError(call, 401, 'access_denied', 'the token is unknown or expired');
  await context.objects.remove(ACCESS_TOKENS, token.metadata?.name ?? '');
  if (ends) context.log.info('logged out', { user: token.userName ?? '' });
  sendHttpResponse(call, 204, ends ? noStore(cookie(SESSION, '')) : noStore(), '');
}

const noStore = (setCookie?: string) => ({
  'cache-control': 'no-store',
  ...(setCookie === undefined ? {} : { 'set-cookie': setCookie }),
});

/** Access token of the Authorization header; undefined if it is unknown or has expired. */
function tokenOf({ objects, clock }: OAuthContext, call: HttpCall): OAuthAccessToken | undefined {
  const [, secret] = /^bearer (sha256~[A-Za-z0-9_-]{43})$/i.exec(header(call, 'authorization') ?? '') ?? [];
  if (secret === undefined) return undefined;
  const token = objects.get<OAuthAccessToken>(ACCESS_TOKENS, objects.tokenName(secret));
  const { expiresIn = 0, inactivityTimeoutSeconds = 0, metadata } = token ?? {};
  const ageSeconds = (clock.nowMs() - Date.parse(metadata?.creationTimestamp ?? '')) / 1000;
  const limits = [expiresIn, inactivityTimeoutSeconds].filter((each) => each > 0);
  return limits.every((each) => ageSeconds < each) ? token : undefined;
}

/**
 * Whether the request is a POST of the console of this server; otherwise sends an error. Browsers send the origin of
 * the page, and send neither the Authorization header nor `x-csrf-token` to another site without the consent of that
 * site.
 */
function isOwnPost(call: HttpCall): boolean {
  const origin = header(call, 'origin');
  const site = header(call, 'sec-fetch-site');
  const marked = header(call, 'x-csrf-token') !== undefined || header(call, 'authorization') !== undefined;
  if (call.request.method !== 'POST') sendError(call, 405, 'invalid_request', 'use POST', { allow: 'POST' });
  else if (!marked || (origin !== undefined && origin !== call.origin) || (site ?? 'same-origin') !== 'same-origin')
    sendError(call, 403, 'access_denied', 'the request is not from the console of this server');
  else return true;
  return false;
}
