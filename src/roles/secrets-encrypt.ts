/** What an administrator does about encryption at rest: look, exchange the key, write everything anew. */
import { randomBytes } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { isMap, isSeq, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml';
import { CodedError, messageOf } from '../base/errors.ts';
import { silentLog } from '../base/log.ts';
import { type Survey, surveyEncryption } from '../components/apiserver/index.ts';
import { masterValues, openStore } from './api.ts';
import { openEncryption } from './encryption-file.ts';
import { readSecret } from './files.ts';
import { newKeyName } from './first-encryption-file.ts';
import { systemClock as clock } from './process.ts';
import { canonicalRoot, pathsBelow } from './settings.ts';

const KEY_BYTES = 32;
const MADE_HERE = /^key-\d{17}$/;
const WITH_KEYS = ['aesgcm', 'aescbc', 'secretbox'] as const;

export type EncryptionReport = Survey & { readonly file: string };

async function located(root: string | undefined) {
  const config = pathsBelow(await canonicalRoot(root)).masterConfig;
  const values = await masterValues(config);
  const file = values.file('encryption-provider-config');
  if (file === undefined) {
    throw new CodedError(
      'not-configured',
      `${config} names no encryption-provider-config; set secretsEncryption in bootstrap.yaml, or name one`,
    );
  }
  return { config, values, file };
}

/** Throws CodedErrors that name the file, StoreErrors of the store. */
export async function surveyStore(root: string | undefined, rewrite: boolean): Promise<EncryptionReport> {
  const { config, values, file } = await located(root);
  const source = await openEncryption(file, { referredToBy: config, follow: false, log: silentLog });
  const store = await openStore(values, config, silentLog);
  try {
    const deps = { store, source, log: silentLog, nowMs: () => clock.monotonicMs() };
    return { file, ...(await surveyEncryption(deps, rewrite)) };
  } finally {
    await store.close();
    source.stop();
  }
}

/**
 * Puts a new key into the file: first, so that it writes from now on, or second with `prepare`, so that it can be read everywhere
 * before it writes anywhere. A key that was prepared is made the first. Resolves with the names of the keys.
 */
export async function rotateKey(root: string | undefined, prepare: boolean): Promise<{ file: string; key: string }> {
  const { config, file } = await located(root);
  const text = await readSecret(file, config);
  const changed = withNewKey(text, file, prepare, clock.nowMs());
  await replaceFile(file, changed.text);
  return { file, key: changed.key };
}

/** Takes all keys but the first of each provider out of the file. Only when nothing is stored with them any more. */
export async function dropOldKeys(root: string | undefined): Promise<void> {
  const { config, file } = await located(root);
  const document = parseDocument(await readSecret(file, config));
  for (const { keys } of keyedProviders(document, file)) while (keys.items.length > 1) keys.delete(1);
  await replaceFile(file, document.toString({ lineWidth: 0 }));
}

async function replaceFile(file: string, text: string): Promise<void> {
  try {
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${file}: ${messageOf(error)}`, { cause: error });
  }
}

interface KeyedProvider {
  readonly type: string;
  readonly keys: YAMLSeq;
  /** It writes. */
  readonly first: boolean;
}

function keyedProviders(document: ReturnType<typeof parseDocument>, file: string): KeyedProvider[] {
  const found: KeyedProvider[] = [];
  const resources = document.get('resources');
  if (!isSeq(resources)) throw new CodedError('bad-config', `${file}: resources is missing`);
  for (const entry of resources.items) {
    const providers = isMap(entry) ? entry.get('providers') : undefined;
    if (!isSeq(providers)) continue;
    for (const [index, provider] of providers.items.entries()) {
      for (const type of WITH_KEYS) {
        const keys = isMap(provider) ? (provider as YAMLMap).getIn([type, 'keys']) : undefined;
        if (isSeq(keys)) found.push({ type, keys, first: index === 0 });
      }
    }
  }
  return found;
}

/** The file's text with the key where it belongs, comments kept. */
export function withNewKey(
  text: string,
  file: string,
  prepare: boolean,
  nowMs: number,
): { readonly text: string; readonly key: string } {
  const document = parseDocument(text);
  const writing = keyedProviders(document, file).filter(({ first }) => first);
  if (writing.length === 0)
    throw new CodedError(
      'bad-config',
      `${file}: the first provider has no keys of its own; rotate them where they are kept`,
    );
  const nameAt = (keys: YAMLSeq, index: number): string => {
    const key = keys.items[index];
    return isMap(key) ? String(key.get('name')) : '';
  };
  const prepared = writing.map(({ keys }) => nameAt(keys, 1));
  const ready = writing.every(({ keys }, index) => {
    const name = prepared[index] ?? '';
    return MADE_HERE.test(name) && (!MADE_HERE.test(nameAt(keys, 0)) || name > nameAt(keys, 0));
  });
  if (ready && !prepare) {
    for (const { keys } of writing) keys.items.unshift(...keys.items.splice(1, 1));
    return { text: document.toString({ lineWidth: 0 }), key: prepared[0] ?? '' };
  }
  const key = newKeyName(nowMs);
  for (const { keys } of writing) {
    const node = document.createNode({ name: key, secret: randomBytes(KEY_BYTES).toString('base64') });
    keys.items.splice(prepare ? 1 : 0, 0, node);
  }
  return { text: document.toString({ lineWidth: 0 }), key };
}
