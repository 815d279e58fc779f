/** Administration of encryption at rest: status, key rotation, re-encryption. */
import { randomBytes } from 'node:crypto';
import { newKeyName } from '../../apiserver/encryption/first-configuration.ts';
import { withNewKey, withoutOldKeys } from '../../apiserver/encryption/key-rotation.ts';
import { type EncryptionScan, scanEncryption } from '../../apiserver/index.ts';
import { CodedError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { writeWhole } from '../../pki/index.ts';
import { readSecret } from '../config/files.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { systemClock as clock } from '../process/process.ts';
import { openEncryption } from './encryption-file.ts';
import { masterValues } from './server.ts';
import { openStore } from './store.ts';

const KEY_BYTES = 32;

export type EncryptionReport = EncryptionScan & { readonly file: string };

async function configured(root: string | undefined) {
  const config = pathsBelow(await canonicalRoot(root)).masterConfig;
  const values = await masterValues(config);
  return { config, values, file: values.file('encryption-provider-config') };
}

/** Whether the API server of this root encrypts stored objects. Throws a CodedError that names an unreadable file. */
export async function isEncryptionConfigured(root: string | undefined): Promise<boolean> {
  return (await configured(root)).file !== undefined;
}

async function located(root: string | undefined) {
  const { config, values, file } = await configured(root);
  if (file === undefined) {
    throw new CodedError(
      'not-configured',
      `${config}: encryption-provider-config is not set; set secretsEncryption in bootstrap.yaml, or name a file`,
    );
  }
  return { config, values, file };
}

/**
 * Reports with which keys the stored objects are encrypted. `rewrite`: re-encrypts objects whose key is outdated.
 * Throws StoreErrors and CodedErrors that name the file.
 */
export async function scanStore(
  root: string | undefined,
  { rewrite }: { readonly rewrite: boolean },
): Promise<EncryptionReport> {
  const { config, values, file } = await located(root);
  const source = await openEncryption(file, { referredToBy: config, follow: false, log: silentLog });
  const store = await openStore(values, config, silentLog);
  try {
    const deps = { store, source, log: silentLog, nowMs: () => clock.monotonicMs() };
    return { file, ...(await scanEncryption(deps, rewrite)) };
  } finally {
    await store.close();
    source.stop();
  }
}

/**
 * Adds a key to the encryption configuration or promotes a prepared key, see `withNewKey`. Resolves with the path of
 * the configuration and the name of the key.
 */
export async function rotateKey(root: string | undefined, prepare: boolean): Promise<{ file: string; key: string }> {
  const { config, file } = await located(root);
  const text = await readSecret(file, config);
  const secret = randomBytes(KEY_BYTES).toString('base64');
  const changed = withNewKey(text, file, prepare, { name: newKeyName(clock.nowMs()), secret });
  // Without the keys no encrypted object can be read, so the file is on disk before the command ends.
  await writeWhole(file, changed.text, { durable: true });
  return { file, key: changed.key };
}

/**
 * Removes all keys except the first key of each provider. The caller checks that no stored object uses the other keys.
 */
export async function dropOldKeys(root: string | undefined): Promise<void> {
  const { config, file } = await located(root);
  await writeWhole(file, withoutOldKeys(await readSecret(file, config), file), { durable: true });
}
