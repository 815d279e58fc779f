/** Browser sessions of users, and form tokens that prevent cross-site requests. */

import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import { number, object, own, text } from '../../../base/decode.ts';
import { type HttpCall, header } from '../http.ts';
import type { User } from '../kinds/users/types.ts';
import type { LoginUser } from '../providers/mapping.ts';
import { BOOTSTRAP_USER } from '../providers/providers.ts';
import { CSRF, cookie, cookieOf, SESSION, sameText, signCookie, verify } from './cookies.ts';

const SESSION_MS = 300_000;

interface Session extends LoginUser {
  readonly untilMs: number;
}

const SESSION_SCHEMA = own<Session>(object({ name: text, untilMs: number }));

export const sessionCookie = (key: Uint8Array, user: LoginUser, nowMs: number): string =>
  cookie(SESSION, signCookie(key, SESSION, { ...user, untilMs: nowMs + SESSION_MS } satisfies Session));

/** User of the session; undefined if there is no valid session or the user no longer exists. */
export function sessionUser(
  call: HttpCall,
  key: Uint8Array,
  objects: LoginObjects,
  nowMs: number,
): LoginUser | undefined {
  const session = verify(key, SESSION, cookieOf(header(call, 'cookie'), SESSION), SESSION_SCHEMA);
  // An end that is too far in the future means that the clock has been set back since the session was created.
  if (session === undefined || session.untilMs < nowMs || session.untilMs > nowMs + SESSION_MS) return undefined;
  const { name, uid } = session;
  return currentUser(objects, { name, uid }) ? { name, uid } : undefined;
}

/** Whether a user with this name and UID still exists. */
export function currentUser(objects: LoginObjects, { name, uid }: LoginUser): boolean {
  const current =
    name === BOOTSTRAP_USER
      ? objects.bootstrapUser()?.uid
      : objects.get<User>('users.user.openshift.io', name)?.metadata?.uid;
  return current !== undefined && current === uid;
}

/** Form token of the browser. If the browser has none, `headers` sets the cookie with a new token. */
export function formToken(
  call: HttpCall,
  random: () => string,
): { readonly csrf: string; readonly headers: Readonly<Record<string, string>> } {
  const present = cookieOf(header(call, 'cookie'), CSRF);
  if (present !== undefined && /^[A-Za-z0-9_-]{43}$/.test(present)) return { csrf: present, headers: {} };
  const csrf = random();
  return { csrf, headers: { 'set-cookie': cookie(CSRF, csrf) } };
}

/** Whether the form was served to this browser: its token equals the token in the cookie. */
export const isOwnForm = (call: HttpCall, form: URLSearchParams): boolean =>
  sameText(form.get('csrf') ?? '', cookieOf(header(call, 'cookie'), CSRF) ?? '');
