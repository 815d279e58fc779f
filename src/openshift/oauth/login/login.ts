/**
 * Checks passwords within limits, and handles `/login`, `/login/PROVIDER`, `/oauth2callback/PROVIDER` and `/logout`.
 */
import { messageOf } from '../../../base/errors.ts';
import { safePath } from '../authorization/redirects.ts';
import { type HttpCall, readForm, redirect, sendPage } from '../http.ts';
import { loginPage, messagePage } from '../pages.ts';
import { type LoginUser, MappingError } from '../providers/mapping.ts';
import { beginOpenId, finishOpenId, type OpenIdDeps } from '../providers/openid.ts';
import type { OAuthContext } from '../server.ts';
import type { IdentityProvider } from '../types.ts';
import { cookie, SESSION } from './cookies.ts';
import type { FailureLimits } from './failure-limits.ts';
import { formToken, isOwnForm, sessionCookie } from './session.ts';

type Outcome =
  | { readonly user: LoginUser }
  | { readonly failed: true }
  | { readonly waitSeconds: number }
  | { readonly busy: true };

const MAX_CREDENTIAL = 1024;
const MAX_OPENID_LOGINS = 32;

/** Checks a password unless the source or the user has reached the limit of failures. */
export async function checkPassword(
  context: OAuthContext & { readonly limits: FailureLimits },
  call: HttpCall,
  username: string,
  password: string,
): Promise<Outcome> {
  const source = call.connection.remoteAddress;
  const { limits, providers, log } = context;
  const waitSeconds = limits.waitSeconds(source, username);
  if (waitSeconds > 0) return { waitSeconds };
  if (username.length > MAX_CREDENTIAL || password.length > MAX_CREDENTIAL) return { failed: true };
  // Count a failure before the check, so that concurrent attempts are limited too.
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
    log.warn('password not verified', { error: messageOf(error) });
    return { busy: true };
  }
}

function showLogin(context: OAuthContext, call: HttpCall, status: number, then: string, problem?: string): void {
  const { csrf, headers } = formToken(call, context.random);
  const openId = context.providers.all.filter(({ openID }) => openID !== undefined).map(({ name }) => name);
  const html = loginPage({ then, csrf, problem, withPasswords: context.providers.takePasswords, openId });
  sendPage(call, status, html, headers);
}

/** Handles GET and POST of `/login`. */
export async function handleLogin(context: OAuthContext, call: HttpCall): Promise<void> {
  if (call.request.method !== 'POST') return showLogin(context, call, 200, safePath(call.query.get('then')));
  const form = await readForm(call);
  const then = safePath(form?.get('then'));
  if (form === undefined || !isOwnForm(call, form))
    return showLogin(context, call, 403, then, 'The form has expired. Log in again.');
  const outcome = await checkPassword(context, call, form.get('username') ?? '', form.get('password') ?? '');
  if ('user' in outcome)
    return redirect(call, then, { 'set-cookie': sessionCookie(context.key(), outcome.user, context.clock.nowMs()) });
  if ('waitSeconds' in outcome) {
    call.response.setHeader('retry-after', String(outcome.waitSeconds));
    return showLogin(context, call, 429, then, `Too many failed logins. Try again in ${outcome.waitSeconds} s.`);
  }
  if ('busy' in outcome) return showLogin(context, call, 503, then, 'The login cannot be checked now. Try again.');
  showLogin(context, call, 401, then, 'Invalid login or password.');
}

const openIdDeps = (context: OAuthContext): OpenIdDeps => ({
  web: context.ports.web,
  discoveries: context.discoveries,
  key: context.key(),
  nowMs: context.clock.nowMs(),
  random: context.random,
  text: ({ openID = {} }, what) =>
    what === 'ca'
      ? context.providers.text('configmaps', openID.ca, openID.caFile, 'ca.crt')
      : context.providers.text('secrets', openID.clientSecret, openID.clientSecretFile, 'clientSecret'),
});

/** Handles `/login/PROVIDER` and `/oauth2callback/PROVIDER`. */
export async function handleOpenId(context: OAuthContext, call: HttpCall, step: 'begin' | 'finish'): Promise<void> {
  const provider = providerAt(context, call.path);
  if (provider === undefined || call.origin === undefined || call.request.method !== 'GET')
    return sendPage(call, 404, messagePage('Not found', 'There is no such identity provider.'));
  // Each request may wait for the provider, so the number of concurrent requests is limited.
  if (context.openIdLogins.size >= MAX_OPENID_LOGINS) {
    call.response.setHeader('retry-after', '5');
    return sendPage(call, 503, messagePage('Log in', 'Too many logins at once. Try again.'));
  }
  context.openIdLogins.add(call);
  try {
    if (step === 'begin')
      return await beginOpenId(call, provider, safePath(call.query.get('then')), openIdDeps(context));
    const { identity, next, cookies } = await finishOpenId(call, provider, openIdDeps(context));
    const user = await context.providers.userOf(provider, identity);
    context.log.info('login succeeded', { user: user.name, provider: provider.name });
    redirect(call, safePath(next), {
      'set-cookie': [...cookies, sessionCookie(context.key(), user, context.clock.nowMs())],
    });
  } catch (error) {
    context.log.warn('login failed', { provider: provider.name, error: messageOf(error) });
    const text = error instanceof MappingError ? 'Could not create user.' : 'The identity provider did not log you in.';
    sendPage(call, error instanceof MappingError ? 403 : 502, messagePage('Log in', text));
  } finally {
    context.openIdLogins.delete(call);
  }
}

function providerAt(context: OAuthContext, path: string): IdentityProvider | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return context.providers.all.find(({ name, openID }) => openID !== undefined && encodeURIComponent(name) === last);
}

export function answerLogout(call: HttpCall): void {
  redirect(call, safePath(call.query.get('then') ?? '/login'), { 'set-cookie': cookie(SESSION, '') });
}
