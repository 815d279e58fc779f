/**
 * Join settings of a claimed host, encrypted for its X25519 key: an ephemeral key agreement, HKDF-SHA256 (RFC 5869) and
 * AES-256-GCM. Only the host can decrypt them, wherever they are stored.
 */

import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { type Decoded, decodeJson, object, text } from '../../base/decode.ts';
import { CodedError } from '../../base/errors.ts';

const DETAILS = object({ server: text, token: text, caHash: text });
export type JoinDetails = Decoded<typeof DETAILS>;

const CONTEXT = 'hyperedge.dev/sealed-join/v1';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The 32 bytes of a public key in base64url. */
export const publicText = (key: KeyObject): string => key.export({ format: 'jwk' }).x ?? '';

export const x25519Key = (x: string): KeyObject =>
  createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' });

function keyOf(privateKey: KeyObject, publicKey: KeyObject, ephemeral: string, recipient: string): Uint8Array {
  const shared = diffieHellman({ privateKey, publicKey });
  return new Uint8Array(hkdfSync('sha256', shared, `${ephemeral}.${recipient}`, CONTEXT, KEY_BYTES));
}

/**
 * Encrypts the join settings. Returns base64 of the ephemeral key, initialization vector, ciphertext and tag. Throws if
 * `recipient` is not a valid key.
 */
export function sealJoin(details: JoinDetails, recipient: string): string {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const ephemeral = publicText(publicKey);
  const iv = randomBytes(IV_BYTES);
  const key = keyOf(privateKey, x25519Key(recipient), ephemeral, recipient);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const body = Buffer.concat([cipher.update(JSON.stringify(details), 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.from(ephemeral, 'base64url'), iv, body, cipher.getAuthTag()]).toString('base64');
}

/** Decrypts the join settings. Throws CodedError 'bad-offer' if they were encrypted for another key. */
export function openJoin(sealed: string, privateKey: KeyObject): JoinDetails {
  const bytes = Buffer.from(sealed, 'base64');
  try {
    const ephemeral = bytes.subarray(0, KEY_BYTES).toString('base64url');
    const recipient = publicText(createPublicKey(privateKey));
    const key = keyOf(privateKey, x25519Key(ephemeral), ephemeral, recipient);
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(KEY_BYTES, KEY_BYTES + IV_BYTES));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const opened = Buffer.concat([
      decipher.update(bytes.subarray(KEY_BYTES + IV_BYTES, -TAG_BYTES)),
      decipher.final(),
    ]).toString('utf8');
    return decodeJson(DETAILS, opened, 'join settings');
  } catch (error) {
    throw new CodedError('bad-offer', 'offer: the join settings from the cluster are not sealed for this host', {
      cause: error,
    });
  }
}
