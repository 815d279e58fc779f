/**
 * Files that are encrypted with a key of this host. A file consists of a line with the format, a nonce of 12 bytes, a
 * tag of 16 bytes, and the content. The content is compressed with gzip and encrypted with AES-256-GCM (NIST SP
 * 800-38D). The format, the node name and the file name are authenticated, so a file of another host or with another
 * name is rejected.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { NodeName } from '../../../base/brand.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { SealedFiles } from '../../../client/informers/sealed-files-port.ts';
import { sha256Base64 } from '../../../wire/digest.ts';

export interface SealedFilesOptions {
  /** Directory of the files. It is created with mode 0700, and the files have mode 0600. */
  readonly directory: string;
  /**
   * File with the key: 32 bytes in base64. It must be outside of `directory`, so that a copy of the directory cannot be
   * decrypted.
   */
  readonly keyFile: string;
  readonly nodeName: NodeName;
}

const FORM = 'hyperedge-sealed-file/1\n';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = FORM.length + NONCE_BYTES + TAG_BYTES;
const MAX_FILE_BYTES = 48 * 1024 * 1024;
const MAX_CONTENT_BYTES = 64 * 1024 * 1024;

const pack = promisify(gzip);
const unpack = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

export function createSealedFiles(options: SealedFilesOptions): SealedFiles {
  const { directory, keyFile, nodeName } = options;
  /** Digest of the content in each file, by name. */
  const present = new Map<string, string>();
  const pathOf = (name: string): string => {
    if (!/^[a-z][a-z-]{0,63}$/.test(name))
      throw new CodedError('sealed-file', `"${name}" is not a name of a sealed file`);
    return join(directory, name);
  };
  /** The key that is being read or created. Concurrent writes share it, so that only one key is created. */
  let choosing: Promise<Buffer> | undefined;
  const keyOrNew = (): Promise<Buffer> => {
    choosing ??= readKey(keyFile)
      .then((key) => key ?? makeKey(keyFile))
      .finally(() => {
        choosing = undefined;
      });
    return choosing;
  };
  const boundTo = (name: string): Buffer => Buffer.from(`${FORM}${nodeName}\n${name}`);

  return {
    async read(name) {
      const path = pathOf(name);
      const refused = (why: string): CodedError => new CodedError('sealed-file', `${path}: ${why}`);
      const found = await stat(path).catch(ifMissing);
      if (found === undefined) return undefined;
      if (found.size > MAX_FILE_BYTES) throw refused(`larger than ${MAX_FILE_BYTES} bytes`);
      const file = await readFile(path);
      if (file.length < HEAD_BYTES || file.toString('latin1', 0, FORM.length) !== FORM)
        throw refused('not a sealed file of this version');
      const key = await readKey(keyFile);
      if (key === undefined) throw refused(`the key ${keyFile} is missing`);
      const decipher = createDecipheriv(CIPHER, key, file.subarray(FORM.length, FORM.length + NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(boundTo(name));
      decipher.setAuthTag(file.subarray(FORM.length + NONCE_BYTES, HEAD_BYTES));
      let packed: Buffer;
      try {
        packed = Buffer.concat([decipher.update(file.subarray(HEAD_BYTES)), decipher.final()]);
      } catch {
        throw refused('the file is damaged or was sealed on another host');
      }
      const content = await unpack(packed, { maxOutputLength: MAX_CONTENT_BYTES });
      present.set(name, sha256Base64(content));
      return content;
    },

    async write(name, content) {
      const path = pathOf(name);
      const digest = sha256Base64(content);
      if (present.get(name) === digest) return false;
      const key = await keyOrNew();
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(boundTo(name));
      const sealed = [cipher.update(await pack(content, { level: 1 })), cipher.final()];
      await replace(path, Buffer.concat([Buffer.from(FORM), nonce, cipher.getAuthTag(), ...sealed]));
      present.set(name, digest);
      return true;
    },

    async remove(name) {
      present.delete(name);
      await rm(pathOf(name), { force: true });
    },
  };
}

/** The key in the file; undefined if the file is missing or contains no valid key. */
async function readKey(path: string): Promise<Buffer | undefined> {
  const text = await readFile(path, 'latin1').catch(ifMissing);
  const key = Buffer.from(text ?? '', 'base64');
  return key.length === KEY_BYTES ? key : undefined;
}

async function makeKey(path: string): Promise<Buffer> {
  const key = randomBytes(KEY_BYTES);
  await replace(path, Buffer.from(`${key.toString('base64')}\n`));
  return key;
}

/** Replaces a file. After a power failure, the file contains either its old or its new content. */
async function replace(path: string, content: Uint8Array): Promise<void> {
  const temporary = `${path}.new`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rm(temporary, { force: true });
    const file = await open(temporary, 'wx', 0o600);
    await file
      .writeFile(content)
      .then(() => file.sync())
      .finally(() => file.close());
    await rename(temporary, path);
    const directory = await open(dirname(path), 'r');
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    throw new CodedError('sealed-file', `${path}: not written: ${messageOf(error)}`, { cause: error });
  }
}

function ifMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
