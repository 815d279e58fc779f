/** Keys of service account tokens: the signing key, and the public keys of all accepted tokens. */
import { createPrivateKey } from 'node:crypto';
import { CodedError } from '../base/errors.ts';
import type { InstallContext } from './authorities.ts';
import { generateKey, keyToPem, publicKeyToPem } from './certificate.ts';
import { readIfPresent, readSecretIfPresent, writeWhole } from './files.ts';
import type { MasterFiles } from './layout.ts';

/** Throws CodedError 'bad-key'. */
export async function ensureServiceAccountKeys(files: MasterFiles, context: InstallContext): Promise<void> {
  let keyPem = await readSecretIfPresent(files.serviceAccountsPrivateKey);
  if (keyPem === undefined) {
    keyPem = keyToPem(await generateKey());
    await writeWhole(files.serviceAccountsPrivateKey, keyPem, { durable: true });
    context.onIssued?.(files.serviceAccountsPrivateKey, 'new');
  }
  const publicPem = publicPartOf(files.serviceAccountsPrivateKey, keyPem);
  const nextPem = await readSecretIfPresent(files.serviceAccountsNextKey);
  await addPublicKey(files, publicPem);
  if (nextPem !== undefined) await addPublicKey(files, publicPartOf(files.serviceAccountsNextKey, nextPem));
}

export function publicPartOf(path: string, keyPem: string): string {
  try {
    return publicKeyToPem(createPrivateKey(keyPem));
  } catch (error) {
    throw new CodedError('bad-key', `${path} holds no readable private key; restore it`, { cause: error });
  }
}

/**
 * Adds a public key. During a rotation of the signing key this file contains several keys, as in OKD, so none is
 * removed.
 */
async function addPublicKey(files: MasterFiles, publicPem: string): Promise<void> {
  const present = (await readIfPresent(files.serviceAccountsPublicKey)) ?? '';
  if (present.includes(publicPem.trim())) return;
  await writeWhole(files.serviceAccountsPublicKey, publicPem + present, { mode: 0o644 });
}
