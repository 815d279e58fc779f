/**
 * The keys that a joining master receives. They are encrypted by AES-256-GCM with a key that is derived from the
 * token's whole secret (HKDF-SHA256, RFC 5869). The cluster stores only a part of the secret, so it cannot decrypt the
 * keys.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { decodeJson, map, object, optional, own, text } from '../../base/decode.ts';
import { CodedError } from '../../base/errors.ts';
import { etcdFiles, masterFiles, type PairFiles, predecessorOf, successorOf, writeWhole } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import type { Token } from './token-format.ts';

export const SEALED_TYPE = 'hyperedge.dev/sealed-keys';
export const SEALED_FIELD = 'sealed';
export const sealedName = (id: string): string => `hyperedge-keys-${id}`;

const CONTEXT = 'hyperedge.dev/master-keys/v1';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export interface MasterKeys {
  /** Contents of files, by path relative to the root. */
  readonly files: Readonly<Record<string, string>>;
  /** Peer URLs of the store's members, by name; undefined for an external store. */
  readonly members: Readonly<Record<string, string>> | undefined;
  /** `initial-cluster-token` of the store. */
  readonly storeToken: string | undefined;
}

const KEYS = own<MasterKeys>(object({ files: map(text), members: optional(map(text)), storeToken: optional(text) }));

/** Secret from which the encryption key is derived. */
export type SealingSecret = Pick<Token, 'id' | 'secret'>;

function keyOf({ id, secret }: SealingSecret): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, id, CONTEXT, KEY_BYTES));
}

/** Encrypts the keys. Returns initialization vector, ciphertext and tag. */
export function seal(keys: MasterKeys, token: SealingSecret): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyOf(token), iv);
  cipher.setAAD(Buffer.from(token.id));
  return Buffer.concat([iv, cipher.update(JSON.stringify(keys), 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts the keys. Throws CodedError 'bad-token' if they were encrypted with another token. */
export function unseal(sealed: Buffer, token: SealingSecret): MasterKeys {
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(token), sealed.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(token.id));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const opened = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    return decodeJson(KEYS, opened.toString('utf8'), 'keys');
  } catch (error) {
    throw new CodedError('bad-token', 'join.token: does not decrypt the keys of the cluster; copy the complete token', {
      cause: error,
    });
  }
}

/** Authorities that the masters share. The authority of an external store is not among them. */
export function sharedAuthorities({ root, storage }: Pick<Settings, 'root' | 'storage'>): PairFiles[] {
  const { ca, frontProxyCa } = masterFiles(root);
  return [ca, frontProxyCa, ...(storage === undefined ? [etcdFiles(root).signer] : [])];
}

/** Files that are equal on all masters. `needed`: whether the file must exist on the master that creates a token. */
function sharedFiles({ root, paths, storage }: Settings): { readonly path: string; readonly needed: boolean }[] {
  const master = masterFiles(root);
  const authorities = sharedAuthorities({ root, storage });
  const needed = [
    ...authorities.flatMap(({ cert, key }) => [cert, key]),
    ...[master.serviceAccountsPrivateKey, master.serviceAccountsPublicKey],
  ];
  const rotating = authorities.flatMap((files) =>
    [successorOf(files), predecessorOf(files)].flatMap(({ cert, key }) => [cert, key]),
  );
  const optional = [paths.encryptionConfig, paths.gossipKeyring, ...rotating, master.serviceAccountsNextKey];
  return [...needed.map((path) => ({ path, needed: true })), ...optional.map((path) => ({ path, needed: false }))];
}

/** Reads the shared files of this master. Throws CodedError 'unreadable' with the file. */
export async function readMasterKeys(
  settings: Settings,
  store: Pick<MasterKeys, 'members' | 'storeToken'>,
): Promise<MasterKeys> {
  const files: Record<string, string> = {};
  for (const { path, needed } of sharedFiles(settings)) {
    try {
      files[relative(settings.root, path)] = await readFile(path, 'utf8');
    } catch (error) {
      if (needed || (error as NodeJS.ErrnoException).code !== 'ENOENT') {
        throw new CodedError('unreadable', `${path}: cannot be read; create tokens for masters on a master, as root`, {
          cause: error,
        });
      }
    }
  }
  return { files, ...store };
}

/**
 * Writes the received files. Only shared files are written, whatever paths the keys contain. Throws CodedErrors with
 * the file.
 */
export async function writeMasterKeys(settings: Settings, keys: MasterKeys): Promise<void> {
  for (const { path, needed } of sharedFiles(settings)) {
    const name = relative(settings.root, path);
    const content = Object.hasOwn(keys.files, name) ? keys.files[name] : undefined;
    if (typeof content !== 'string') {
      if (needed) throw new CodedError('bad-token', `join.token: the sealed keys lack ${join('/', name)}`);
      continue;
    }
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeWhole(path, content, { durable: true });
  }
}
