/** JSON Web Tokens for service accounts, with ES256 and RS256 only (RFC 7515, 7518, 7519). */

import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { sha256Base64url } from '../../wire/digest.ts';

export type Algorithm = 'ES256' | 'RS256';

export interface VerificationKey {
  readonly id: string;
  readonly algorithm: Algorithm;
  readonly key: KeyObject;
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject;
}

export interface JsonWebKey {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly use: 'sig';
  readonly [member: string]: string;
}

const MAX_TOKEN = 16 * 1024;
const PART = /^[A-Za-z0-9_-]+$/;

function algorithmOf(key: KeyObject): Algorithm {
  if (key.asymmetricKeyType === 'rsa') return 'RS256';
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256';
  throw new Error('service account keys must be RSA or EC P-256');
}

/** Key ID as upstream derives it: SHA-256 of the public key in DER. */
function keyId(key: KeyObject): string {
  return sha256Base64url(key.export({ type: 'spki', format: 'der' }));
}

export function loadVerificationKey(pem: string): VerificationKey {
  const key = createPublicKey(pem);
  return { id: keyId(key), algorithm: algorithmOf(key), key };
}

export function loadSigningKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem);
  return { ...loadVerificationKey(pem), privateKey };
}

export function toJwk(key: VerificationKey): JsonWebKey {
  return {
    ...(key.key.export({ format: 'jwk' }) as Record<string, string>),
    use: 'sig',
    kid: key.id,
    alg: key.algorithm,
  };
}

export function signToken(key: SigningKey, claims: object): string {
  const header = Buffer.from(JSON.stringify({ alg: key.algorithm, kid: key.id })).toString('base64url');
  const input = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  const signature = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/**
 * Returns the claims of a token that one of `keys` signed. Undefined for any other token. The key determines the
 * algorithm; `alg` of the token must match it.
 */
export function verifyToken(
  { header, claims, input, signature }: ParsedToken,
  keys: readonly VerificationKey[],
): Record<string, unknown> | undefined {
  if (header['crit'] !== undefined) return undefined;
  for (const key of keys) {
    if (key.algorithm !== header['alg']) continue;
    if (header['kid'] !== undefined && header['kid'] !== key.id) continue;
    if (verify('sha256', input, { key: key.key, dsaEncoding: 'ieee-p1363' }, signature)) return claims;
  }
  return undefined;
}

/** A parsed token. Its signature has not been verified. */
export interface ParsedToken {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
  /** Signed bytes: header and payload as sent. */
  readonly input: Buffer;
  readonly signature: Buffer;
}

/** Parses a token. Undefined if the text is not a signed token in compact form. */
export function parseToken(token: string): ParsedToken | undefined {
  if (token.length > MAX_TOKEN) return undefined;
  const parts = token.split('.');
  const [header, payload, signature] = parts;
  if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined) return undefined;
  if (!PART.test(header) || !PART.test(payload) || !PART.test(signature)) return undefined;
  const parsed = parseObject(header);
  const claims = parsed === undefined ? undefined : parseObject(payload);
  if (parsed === undefined || claims === undefined) return undefined;
  return {
    header: parsed,
    claims,
    input: Buffer.from(`${header}.${payload}`),
    signature: Buffer.from(signature, 'base64url'),
  };
}

function parseObject(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
