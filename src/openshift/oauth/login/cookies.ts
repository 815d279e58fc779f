/** Signs values in cookies and in the state of OpenID Connect. All servers of the cluster share the key. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { isValid, type Schema } from '../../../base/decode.ts';

/**
 * The prefix `__Host-` prevents other hosts of the domain, such as routes, from setting the cookie (RFC 6265bis
 * §4.1.3.2).
 */
export const SESSION = '__Host-ssn';
export const CSRF = '__Host-csrf';

const mac = (key: Uint8Array, purpose: string, body: string): Buffer =>
  createHmac('sha256', key).update(`${purpose}\0${body}`).digest();

export function signCookie(key: Uint8Array, purpose: string, value: object): string {
  const body = Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${body}.${mac(key, purpose, body).toString('base64url')}`;
}

/**
 * Decodes a signed value. Returns undefined unless `text` was signed with this key for this purpose and fits the
 * schema.
 */
export function verify<T>(
  key: Uint8Array,
  purpose: string,
  text: string | undefined,
  schema: Schema<T>,
): T | undefined {
  const [body, signature, rest] = text?.split('.') ?? [];
  if (body === undefined || signature === undefined || rest !== undefined) return undefined;
  const expected = mac(key, purpose, body);
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const value: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
  return isValid(schema, value) ? value : undefined;
}

/** Value of the first cookie with this name; undefined if there is none. */
export function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of header?.split(';') ?? []) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim();
  }
  return undefined;
}

/** Set-Cookie header. SameSite is Lax, because an OpenID provider redirects the browser back from another site. */
export const cookie = (name: string, value: string): string =>
  `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax${value === '' ? '; Max-Age=0' : ''}`;

/** Compares texts in constant time. Empty texts are never equal. */
export function sameText(a: string, b: string): boolean {
  const left = createHmac('sha256', 'compare').update(a).digest();
  return timingSafeEqual(left, createHmac('sha256', 'compare').update(b).digest()) && a !== '';
}
