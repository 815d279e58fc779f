/** Password check with limits, and the pages `/login`, `/login/PROVIDER`, `/oauth2callback/PROVIDER` and `/logout`. */
import { messageOf } from '../../../base/errors.ts';
import { safePath } from '../authorization/redirects.ts';
import { readForm, redirect, sendPage, type Visit } from '../http.ts';
import { loginPage, messagePage } from '../pages.ts';
import { type LoginUser, MappingError } from '../providers/mapping.ts';
import { beginOpenId, finishOpenId, type OpenIdDeps } from '../providers/openid.ts';
import type { OAuthRoom } from '../server.ts';
import type { IdentityProvider } from '../types.ts';
import { cookie, SESSION } from './cookies.ts';
import type { FailureLimits } from './limits.ts';
import { formToken, isOwnForm, sessionCookie } from './session.ts';

type Outcome =
  | { readonly user: LoginUser }
  | { readonly failed: true }
  | { readonly waitSeconds: number }
  | { readonly busy: true };

const MAX_CREDENTIAL = 1024;
const MAX_OPENID_LOGINS = 32;

/** Checks a password within the limits of its source and user. */
export async function checkPassword(
  room: OAuthRoom & { readonly limits: FailureLimits },
  visit: Visit,
  username: string,
  password: string,
): Promise<Outcome> {
  const source = visit.connection.remoteAddress;
  const { limits, providers, log } = room;
  const waitSeconds = limits.waitSeconds(source, username);
  if (waitSeconds > 0) return { waitSeconds };
  if (username.length > MAX_CREDENTIAL || password.length > MAX_CREDENTIAL) return { failed: true };
  // Count the failure first, so that concurrent attempts are limited too.
  limits.failed(source, username);
  try {
    const user = await providers.checkPassword(username, password);
    if (user === undefined) {
      log.info('login failed', { source });
      return { failed: true };
    }
    limits.succeeded(source, username);
    log.info('login succeeded', { user: user.name, source });
    return { user };
  } catch (error) {
    limits.unchecked(source, username);
    log.warn('login not checked', { error: messageOf(error) });
    return { busy: true };
  }
}

function showLogin(room: OAuthRoom, visit: Visit, status: number, then: string, problem?: string): void {
  const { csrf, headers } = formToken(visit, room.random);
  const openId = room.providers.all.filter(({ openID }) => openID !== undefined).map(({ name }) => name);
  const html = loginPage({ then, csrf, problem, withPasswords: room.providers.takePasswords, openId });
  sendPage(visit, status, html, headers);
}

/** Handles GET and POST of `/login`. */
export async function answerLogin(room: OAuthRoom, visit: Visit): Promise<void> {
  if (visit.request.method !== 'POST') return showLogin(room, visit, 200, safePath(visit.query.get('then')));
  const form = await readForm(visit);
  const then = safePath(form?.get('then'));
  if (form === undefined || !isOwnForm(visit, form))
    return showLogin(room, visit, 403, then, 'The form has expired. Log in again.');
  const outcome = await checkPassword(room, visit, form.get('username') ?? '', form.get('password') ?? '');
  if ('user' in outcome)
    return redirect(visit, then, { 'set-cookie': sessionCookie(room.key(), outcome.user, room.clock.nowMs()) });
  if ('waitSeconds' in outcome) {
    visit.response.setHeader('retry-after', String(outcome.waitSeconds));
    return showLogin(room, visit, 429, then, `Too many failed logins. Try again in ${outcome.waitSeconds} s.`);
  }
  if ('busy' in outcome) return showLogin(room, visit, 503, then, 'The login cannot be checked now. Try again.');
  showLogin(room, visit, 401, then, 'Invalid login or password.');
}

const openIdDeps = (room: OAuthRoom): OpenIdDeps => ({
  web: room.ports.web,
  discoveries: room.discoveries,
  key: room.key(),
  nowMs: room.clock.nowMs(),
  random: room.random,
  text: ({ openID = {} }, what) =>
    what === 'ca'
      ? room.providers.text('configmaps', openID.ca, openID.caFile, 'ca.crt')
      : room.providers.text('secrets', openID.clientSecret, openID.clientSecretFile, 'clientSecret'),
});

/** Handles `/login/PROVIDER` and `/oauth2callback/PROVIDER`. */
export async function answerOpenId(room: OAuthRoom, visit: Visit, step: 'begin' | 'finish'): Promise<void> {
  const provider = providerAt(room, visit.path);
  if (provider === undefined || visit.origin === undefined || visit.request.method !== 'GET')
    return sendPage(visit, 404, messagePage('Not found', 'There is no such identity provider.'));
  // Each request may wait for the provider, so their number is limited.
  if (room.openIdLogins.size >= MAX_OPENID_LOGINS) {
    visit.response.setHeader('retry-after', '5');
    return sendPage(visit, 503, messagePage('Log in', 'Too many logins at once. Try again.'));
  }
  room.openIdLogins.add(visit);
  try {
    if (step === 'begin')
      return await beginOpenId(visit, provider, safePath(visit.query.get('then')), openIdDeps(room));
    const { identity, next, cookies } = await finishOpenId(visit, provider, openIdDeps(room));
    const user = await room.providers.userOf(provider, identity);
    room.log.info('login succeeded', { user: user.name, provider: provider.name });
    redirect(visit, safePath(next), {
      'set-cookie': [...cookies, sessionCookie(room.key(), user, room.clock.nowMs())],
    });
  } catch (error) {
    room.log.warn('login failed', { provider: provider.name, error: messageOf(error) });
    const text = error instanceof MappingError ? 'Could not create user.' : 'The identity provider did not log you in.';
    sendPage(visit, error instanceof MappingError ? 403 : 502, messagePage('Log in', text));
  } finally {
    room.openIdLogins.delete(visit);
  }
}

function providerAt(room: OAuthRoom, path: string): IdentityProvider | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return room.providers.all.find(({ name, openID }) => openID !== undefined && encodeURIComponent(name) === last);
}

export function answerLogout(visit: Visit): void {
  redirect(visit, safePath(visit.query.get('then') ?? '/login'), { 'set-cookie': cookie(SESSION, '') });
}
