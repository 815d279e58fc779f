/** Keys and signatures of releases: Ed25519. Source: RFC 8032; PEM by RFC 8410. */

import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { announcementName } from '../../../api/releases/announcement.ts';
import { parseManifest, SIGNATURE_NAME } from '../../../api/releases/manifest.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { VerifiedRelease, VerifyRelease } from '../releases-port.ts';

const SIGNATURE_BYTES = 64;
const MAX_REMEMBERED = 64;
/** Prefix of the SubjectPublicKeyInfo of an Ed25519 key, before its 32 bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_BYTES = 32;

/** Parses a public key: a PEM, or the base64 form of its 32 bytes. Throws CodedError 'bad-key' with the reason. */
export function parseTrustedKey(text: string): KeyObject {
  try {
    const trimmed = text.trim();
    const raw = Buffer.from(trimmed, 'base64');
    const isRaw = !trimmed.startsWith('-----') && raw.length === KEY_BYTES;
    const key = isRaw
      ? createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: 'der', type: 'spki' })
      : createPublicKey(trimmed);
    if (key.asymmetricKeyType !== 'ed25519') throw new Error(`the key is of type ${key.asymmetricKeyType}`);
    return key;
  } catch (error) {
    throw new CodedError('bad-key', `give an Ed25519 public key in PEM: ${messageOf(error)}`, { cause: error });
  }
}

/** Parses the PEM of a private key. Throws CodedError 'bad-key'. */
export function parseSigningKey(text: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType !== 'ed25519') throw new Error(`the key is of type ${key.asymmetricKeyType}`);
    return key;
  } catch (error) {
    throw new CodedError('bad-key', `give an Ed25519 private key in PEM: ${messageOf(error)}`, { cause: error });
  }
}

/** Signs a text and returns the signature in base64. */
export const signatureOf = (text: string, key: KeyObject): string =>
  sign(undefined, Buffer.from(text), key).toString('base64');

const NO_KEY =
  'no key is trusted; create the config map release-keys in openshift-config, or set updates.keys in the bootstrap file';

/** Parses a manifest, after verifying that one of the keys has signed its text. */
export function verifyManifest(text: string, signature: string, keys: readonly KeyObject[]): VerifiedRelease {
  if (keys.length === 0) return { problem: NO_KEY };
  return verifySigned(text, signature, keys, parseManifest);
}

/** Like `verifyManifest`, for any manifest. `parse` returns an error text `field: problem` for an invalid manifest. */
export function verifySigned<M extends object>(
  text: string,
  signature: string,
  keys: readonly KeyObject[],
  parse: (text: string) => M | string,
): { readonly manifest: M; readonly digest: string } | { readonly problem: string } {
  const bytes = Buffer.from(signature.trim(), 'base64');
  const message = Buffer.from(text);
  if (bytes.length !== SIGNATURE_BYTES || !keys.some((key) => verify(undefined, message, key, bytes)))
    return { problem: `${SIGNATURE_NAME}: no trusted key has signed the manifest` };
  const manifest = parse(text);
  return typeof manifest === 'string'
    ? { problem: `manifest.json: ${manifest}` }
    : { manifest, digest: sha256Hex(text) };
}

/** Returns a function that verifies announced releases. `keys` returns the currently trusted keys. */
export function createVerifier(keys: () => readonly KeyObject[]): VerifyRelease {
  const known = new BoundedMap<string, VerifiedRelease>(MAX_REMEMBERED);
  let knownKeys: readonly KeyObject[] = [];
  return ({ name, text, signature }) => {
    const now = keys();
    if (now !== knownKeys) known.clear();
    knownKeys = now;
    const id = `${name}\n${signature}\n${sha256Hex(text)}`;
    let result = known.get(id);
    if (result === undefined) {
      result = verifyManifest(text, signature, now);
      if ('manifest' in result && announcementName(result.manifest) !== name)
        result = { problem: `the manifest is of ${result.manifest.version}` };
      known.set(id, result);
    }
    return result;
  };
}
