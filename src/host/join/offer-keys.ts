/** The identity of a host that offers itself. Its keys are kept when the host joins a cluster and when it is reset. */

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJson, map, object, text as string } from '../../base/decode.ts';
import { CodedError } from '../../base/errors.ts';
import { readIfPresent, writeWhole } from '../../pki/index.ts';
import { sha256Base64 } from '../../wire/digest.ts';
import { publicText } from './sealed-join.ts';

/** Directory of the keys. It is not among the directories that a reset removes. */
const DIRECTORY = 'var/lib/hyperedge-offer';

export interface OfferKeys {
  readonly signingKey: string;
  readonly sealingKey: string;
  readonly sealing: KeyObject;
  /** Shown on the console and in the description of the BareMetalHost. */
  readonly fingerprint: string;
  /** Ed25519 signature in base64url. */
  sign(text: string): string;
}

const KEYS = object({ signing: map(string), sealing: map(string) });

const directoryOf = (root: string): string => join(root, DIRECTORY);

/** Reads the keys and creates them if they are missing. Throws CodedError 'bad-config' with the file. */
export async function offerKeys(root: string): Promise<OfferKeys> {
  const file = join(directoryOf(root), 'keys.json');
  let content = await readIfPresent(file);
  if (content === undefined) {
    const signing = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
    const sealing = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' });
    content = JSON.stringify({ signing, sealing });
    await mkdir(directoryOf(root), { recursive: true, mode: 0o700 });
    await writeWhole(file, content, { durable: true });
  }
  try {
    const stored = decodeJson(KEYS, content, file);
    const signing = createPrivateKey({ key: stored.signing, format: 'jwk' });
    const sealing = createPrivateKey({ key: stored.sealing, format: 'jwk' });
    const signingKey = publicText(signing);
    const digest = sha256Base64(Buffer.from(signingKey, 'base64url'));
    return {
      signingKey,
      sealingKey: publicText(sealing),
      sealing,
      fingerprint: `SHA256:${digest.replace(/=+$/, '')}`,
      sign: (offer) => sign(undefined, Buffer.from(offer), signing).toString('base64url'),
    };
  } catch (error) {
    throw new CodedError(
      'bad-config',
      `${file}: contains no keys; delete the file, and the host creates new keys and offers itself as a new host`,
      {
        cause: error,
      },
    );
  }
}

export async function removeOfferKeys(root: string): Promise<void> {
  await rm(directoryOf(root), { recursive: true, force: true });
}
