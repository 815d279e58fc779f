/** Keys of service account tokens: the key that signs, and the public keys whose tokens are accepted. */
import { createPrivateKey } from 'node:crypto';
import { CodedError } from '../base/errors.ts';
import type { InstallContext } from './authorities.ts';
import { generateKey, keyToPem, publicKeyToPem } from './certificate.ts';
import { readIfPresent, readSecretIfPresent, writeWhole } from './files.ts';
import type { MasterFiles } from './layout.ts';

/** Creates missing keys. Throws CodedError 'bad-key'. */
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
 * Adds a public key to the file. Other keys are kept, because the file contains several keys during a rotation, as in
 * OKD.
 */
async function addPublicKey(files: MasterFiles, publicPem: string): Promise<void> {
  const present = (await readIfPresent(files.serviceAccountsPublicKey)) ?? '';
  if (present.includes(publicPem.trim())) return;
  await writeWhole(files.serviceAccountsPublicKey, publicPem + present, { mode: 0o644 });
}
