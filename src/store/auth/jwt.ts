/**
 * JSON web tokens (RFC 7519) of etcd's auth, with the claims `username`, `revision` and `exp`. The signing method is
 * configured and never taken from the token. Source: etcd server/auth/jwt.go and options.go; algorithms of RFC 7518 §3.
 */

import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { BoundedMap } from '../../base/bounded-map.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { AuthError } from '../core/auth/errors.ts';
import type { Caller } from '../core/auth/types.ts';
import type { Tokens } from './tokens.ts';

interface Method {
  readonly name: string;
  readonly family: 'RS' | 'PS' | 'ES' | 'HS';
  readonly hash: 'sha256' | 'sha384' | 'sha512';
}

/** Curve of each ECDSA method, with OpenSSL's names. */
const CURVES: Readonly<Record<Method['hash'], string>> = {
  sha256: 'prime256v1',
  sha384: 'secp384r1',
  sha512: 'secp521r1',
};

interface JwtOptions {
  readonly method: Method;
  /** Undefined when tokens are only verified here. */
  readonly signKey: KeyObject | Buffer | undefined;
  readonly verifyKey: KeyObject | Buffer;
  readonly ttlMs: number;
}

/** Reads a key. Other users must not be able to read a private key file. */
export type ReadKeyFile = (path: string, kind: 'public' | 'private') => Promise<string>;

const DEFAULT_TTL_MS = 300_000;
const MAX_TOKEN = 16 << 10;
const MAX_REMEMBERED = 1000;

/** Reads `key=value` pairs of etcd's `--auth-token=jwt,...`. Throws CodedError 'bad-config'. */
export async function parseJwtOptions(pairs: readonly string[], readFile: ReadKeyFile): Promise<JwtOptions> {
  const options = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(at, 0));
    if (!['pub-key', 'priv-key', 'sign-method', 'ttl'].includes(name) || options.has(name)) {
      throw bad(`${pair} is not one of pub-key=FILE, priv-key=FILE, sign-method=NAME and ttl=DURATION, each once`);
    }
    options.set(name, pair.slice(at + 1));
  }
  const method = methodOf(options.get('sign-method') ?? '');
  const ttl = options.get('ttl');
  const ttlMs = ttl === undefined ? DEFAULT_TTL_MS : parseDuration(ttl);
  const [publicFile, privateFile] = [options.get('pub-key'), options.get('priv-key')];
  const publicText = publicFile === undefined ? undefined : await readFile(publicFile, 'public');
  const privateText = privateFile === undefined ? undefined : await readFile(privateFile, 'private');
  if (method.family === 'HS') {
    if (privateText === undefined || privateText === '') throw bad(`${method.name} needs priv-key, the shared secret`);
    const secret = Buffer.from(privateText);
    return { method, signKey: secret, verifyKey: secret, ttlMs };
  }
  const signKey =
    privateText === undefined ? undefined : keyOf(() => createPrivateKey(privateText), 'priv-key', method);
  const given = publicText === undefined ? undefined : keyOf(() => createPublicKey(publicText), 'pub-key', method);
  const derived = signKey === undefined ? undefined : createPublicKey(signKey);
  const verifyKey = derived ?? given;
  if (verifyKey === undefined) throw bad('give priv-key, or pub-key to only verify tokens');
  if (derived !== undefined && given !== undefined && !derived.equals(given)) {
    throw bad('pub-key does not belong to priv-key');
  }
  return { method, signKey, verifyKey, ttlMs };
}

export function jwtTokens(options: JwtOptions, clock: Clock): Tokens {
  const { method, signKey, verifyKey, ttlMs } = options;
  const header = encode({ alg: method.name, typ: 'JWT' });
  // Claims of verified tokens, because a client sends the same token with each request.
  const checked = new BoundedMap<string, Claims>(MAX_REMEMBERED);
  const claimsOf = (token: string): Claims | undefined => {
    const known = checked.get(token);
    if (known !== undefined) return known;
    const claims = verified(token, method, verifyKey);
    if (claims === undefined) return undefined;
    checked.set(token, claims);
    return claims;
  };
  return {
    issue: async (username, revision) => {
      if (signKey === undefined) throw new AuthError('verify-only');
      const exp = Math.floor((clock.nowMs() + ttlMs) / 1000);
      const body = `${header}.${encode({ exp, revision, username })}`;
      return `${body}.${(await signed(body, method, signKey)).toString('base64url')}`;
    },
    caller: (token): Caller | undefined => {
      const claims = claimsOf(token);
      const now = clock.nowMs() / 1000;
      if (claims === undefined || now >= claims.expires || now < claims.notBefore) return undefined;
      return claims.caller;
    },
    // Tokens contain the auth revision. A change of the user increases it, so older tokens are rejected.
    forget: () => {},
    clear: () => checked.clear(),
  };
}

interface Claims {
  readonly caller: Caller;
  /** Seconds since the epoch. */
  readonly expires: number;
  readonly notBefore: number;
}

function verified(token: string, method: Method, key: KeyObject | Buffer): Claims | undefined {
  const [head = '', payload = '', signature = '', ...rest] = token.length > MAX_TOKEN ? [] : token.split('.');
  if (rest.length > 0 || signature === '') return undefined;
  const header = decode(head);
  // Only the configured method is accepted; a token with 'none' or another method is a forgery. Critical extensions are
  // not supported.
  if (header?.['alg'] !== method.name || header['crit'] !== undefined) return undefined;
  if (!isSignature(`${head}.${payload}`, Buffer.from(signature, 'base64url'), method, key)) return undefined;
  const claims = decode(payload);
  const { username, revision, exp = Number.POSITIVE_INFINITY, nbf = 0 } = claims ?? {};
  if (typeof username !== 'string' || typeof revision !== 'number') return undefined;
  if (typeof exp !== 'number' || typeof nbf !== 'number') return undefined;
  return { caller: { user: username, revision }, expires: exp, notBefore: nbf };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function methodOf(name: string): Method {
  const parts = /^(RS|PS|ES|HS)(256|384|512)$/.exec(name);
  if (parts === null) {
    throw bad(`sign-method=${name} is not one of RS256, RS384, RS512, and the same with PS, ES or HS`);
  }
  return { name, family: parts[1] as Method['family'], hash: `sha${parts[2]}` as Method['hash'] };
}

function keyOf(parse: () => KeyObject, option: string, method: Method): KeyObject {
  let key: KeyObject;
  try {
    key = parse();
  } catch (error) {
    throw bad(`${option}: ${messageOf(error)}; give a key in PEM form`);
  }
  const curve = CURVES[method.hash];
  const fits =
    method.family === 'ES'
      ? key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === curve
      : key.asymmetricKeyType === 'rsa';
  if (!fits)
    throw bad(`${option}: ${method.name} needs ${method.family === 'ES' ? `a key on ${curve}` : 'an RSA key'}`);
  return key;
}

function parametersOf(method: Method): { dsaEncoding?: 'ieee-p1363'; padding?: number; saltLength?: number } {
  if (method.family === 'ES') return { dsaEncoding: 'ieee-p1363' };
  if (method.family === 'RS') return {};
  return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
}

/** Signs on the thread pool, because a signature with a long RSA key takes milliseconds. */
function signed(body: string, method: Method, key: KeyObject | Buffer): Promise<Buffer> {
  if (Buffer.isBuffer(key)) return Promise.resolve(createHmac(method.hash, key).update(body).digest());
  return new Promise((resolve, reject) => {
    sign(method.hash, Buffer.from(body), { key, ...parametersOf(method) }, (error, signature) => {
      if (error === null) resolve(signature);
      else reject(error);
    });
  });
}

function isSignature(body: string, signature: Buffer, method: Method, key: KeyObject | Buffer): boolean {
  if (Buffer.isBuffer(key)) {
    const expected = createHmac(method.hash, key).update(body).digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  }
  return verify(method.hash, Buffer.from(body), { key, ...parametersOf(method) }, signature);
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** Parses a duration in Go's format, such as 10m or 1h30m. */
function parseDuration(text: string): number {
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(text)) throw bad(`ttl=${text} is not a duration such as 10m or 1h30m`);
  let total = 0;
  for (const [, amount, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)) {
    total += Number(amount) * (UNIT_MS[unit] as number);
  }
  return total;
}

function bad(message: string): CodedError {
  return new CodedError('bad-config', `auth-token: ${message}`);
}
