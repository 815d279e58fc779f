/**
 * Key rotation in the text of an EncryptionConfiguration file. Source: Kubernetes, Encrypting Confidential Data at
 * Rest.
 */
import { isMap, isSeq, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml';
import { CodedError } from '../../../base/errors.ts';

/** Names of generated keys, see `newKeyName`; they sort by time. */
const GENERATED_NAME = /^key-\d{17}$/;
const WITH_KEYS = ['aesgcm', 'aescbc', 'secretbox'] as const;

interface KeyedProvider {
  readonly type: string;
  readonly keys: YAMLSeq;
  /** The provider that writes. */
  readonly first: boolean;
}

/** Providers with keys in the file. Throws CodedError 'bad-config'. */
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

/**
 * Adds `newKey` to the file's writing providers and keeps its comments: first, so that it writes, or second with
 * `prepare`, so that it only reads. Without `prepare`, a key that was prepared moves to the first place instead. Throws
 * CodedError 'bad-config'.
 */
export function withNewKey(
  text: string,
  file: string,
  prepare: boolean,
  newKey: { readonly name: string; readonly secret: string },
): { readonly text: string; readonly key: string } {
  const document = parseDocument(text);
  const writing = keyedProviders(document, file).filter(({ first }) => first);
  if (writing.length === 0)
    throw new CodedError(
      'bad-config',
      `${file}: the first provider has no keys in this file; rotate them in the external provider`,
    );
  const nameAt = (keys: YAMLSeq, index: number): string => {
    const key = keys.items[index];
    return isMap(key) ? String(key.get('name')) : '';
  };
  const prepared = writing.map(({ keys }) => nameAt(keys, 1));
  const ready = writing.every(({ keys }, index) => {
    const name = prepared[index] ?? '';
    return GENERATED_NAME.test(name) && (!GENERATED_NAME.test(nameAt(keys, 0)) || name > nameAt(keys, 0));
  });
  if (ready && !prepare) {
    for (const { keys } of writing) keys.items.unshift(...keys.items.splice(1, 1));
    return { text: document.toString({ lineWidth: 0 }), key: prepared[0] ?? '' };
  }
  for (const { keys } of writing) {
    const node = document.createNode(newKey);
    keys.items.splice(prepare ? 1 : 0, 0, node);
  }
  return { text: document.toString({ lineWidth: 0 }), key: newKey.name };
}

/**
 * Removes all keys but the first of each provider. Only valid when no stored value uses the others. Throws CodedError
 * 'bad-config'.
 */
export function withoutOldKeys(text: string, file: string): string {
  const document = parseDocument(text);
  for (const { keys } of keyedProviders(document, file)) while (keys.items.length > 1) keys.delete(1);
  return document.toString({ lineWidth: 0 });
}
