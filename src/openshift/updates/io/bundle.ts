/**
 * Release bundles: a plain tar with `manifest.json`, its signature, and the executables in the manifest's order. No
 * content of a bundle is stored before the signature is verified, and no name in it is ever used as a path.
 */
import type { KeyObject } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { extract, type Header, pack } from 'tar-stream';
import {
  ARCHITECTURES,
  MANIFEST_NAME,
  MAX_FILE_BYTES,
  MAX_MANIFEST_BYTES,
  manifestText,
  type ReleaseFile,
  type ReleaseManifest,
  SIGNATURE_NAME,
} from '../../../api/releases/manifest.ts';
import { counted } from '../../../base/command-line/progress.ts';
import { CodedError, ignore, messageOf } from '../../../base/errors.ts';
import { flushDirectory } from './files.ts';
import { signatureOf, verifyManifest } from './keys.ts';

/** A file that a manifest names. */
export interface SignedFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

export interface SignedManifest {
  readonly files: readonly SignedFile[];
}

export interface ReadBundle<M extends SignedManifest = ReleaseManifest> {
  readonly manifest: M;
  readonly text: string;
  readonly signature: string;
  /** SHA-256 of the manifest's text. */
  readonly digest: string;
}

/** Reads the content of a file to its end. Rejects if it does not match the manifest. */
export type TakeFile<F extends SignedFile = ReleaseFile> = (
  file: F,
  content: AsyncIterable<Uint8Array>,
) => Promise<void>;

/** A kind of bundle: its parser and limits. */
export interface BundleKind<M extends SignedManifest> {
  /** For example `a release bundle`. */
  readonly name: string;
  readonly verify: (
    text: string,
    signature: string,
  ) => { readonly manifest: M; readonly digest: string } | { readonly problem: string };
  readonly maxBytes: number;
  readonly maxManifestBytes: number;
}

const MAX_BUNDLE_BYTES = ARCHITECTURES.length * MAX_FILE_BYTES + (1 << 20);
const MAX_SIGNATURE_BYTES = 1024;
const EPOCH = new Date(0);

/** Reads a release bundle; see `readSigned`. */
export const readBundle = (
  path: string,
  keys: readonly KeyObject[],
  accept: (bundle: ReadBundle) => Promise<void>,
  take: TakeFile,
): Promise<ReadBundle> => {
  const verify = (text: string, signature: string) => verifyManifest(text, signature, keys);
  const limits = { maxBytes: MAX_BUNDLE_BYTES, maxManifestBytes: MAX_MANIFEST_BYTES };
  return readSigned(path, { name: 'a release bundle', verify, ...limits }, accept, take);
};

/**
 * Reads a bundle and passes its files on. `accept` is called after the signature has been verified and before the first
 * file is passed on. Throws CodedError 'bad-bundle' with one line that names the bundle.
 */
export async function readSigned<M extends SignedManifest>(
  path: string,
  kind: BundleKind<M>,
  accept: (bundle: ReadBundle<M>) => Promise<void>,
  take: TakeFile<M['files'][number]>,
): Promise<ReadBundle<M>> {
  const bad = (what: string, cause?: unknown): CodedError =>
    new CodedError('bad-bundle', `${path}: ${what}`, cause === undefined ? {} : { cause });
  const size = await stat(path).then(
    (found) => (found.isFile() ? found.size : -1),
    (error: unknown) => {
      throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
    },
  );
  if (size < 0) throw bad('the path is not a file');
  if (size > kind.maxBytes) throw bad(`the file is larger than ${kind.maxBytes} bytes`);
  const tar = extract();
  const source = createReadStream(path, { highWaterMark: 1 << 20 });
  // An error while reading the source ends the extraction, which reports the error.
  const fed = pipeline(source, tar).catch(ignore('the extraction reports the error'));
  let text: string | undefined;
  let read: ReadBundle<M> | undefined;
  const left: M['files'][number][] = [];
  try {
    for await (const member of tar) {
      const entry = member as AsyncIterable<Uint8Array> & { readonly header: Header };
      const { header } = entry;
      if (header.type !== 'file')
        throw bad(`member "${shown(header.name)}" is a ${header.type}; only files may be there`);
      // An entry with an invalid size would never end.
      if (!Number.isSafeInteger(header.size)) throw bad(`member "${shown(header.name)}" has no valid size`);
      if (text === undefined) {
        text = await textMember(entry, header, MANIFEST_NAME, kind.maxManifestBytes);
      } else if (read === undefined) {
        const signature = (await textMember(entry, header, SIGNATURE_NAME, MAX_SIGNATURE_BYTES)).trim();
        const verified = kind.verify(text, signature);
        if ('problem' in verified) throw new Error(verified.problem);
        read = { ...verified, text, signature };
        await accept(read);
        left.push(...read.manifest.files);
      } else {
        const file = left.shift();
        if (file === undefined || header.name !== file.name)
          throw new Error(`member "${shown(header.name)}" is not the next one that the manifest names`);
        if (header.size !== file.size)
          throw new Error(`${file.name}: has ${header.size} bytes instead of ${file.size}`);
        await take(file, entry).catch((error: unknown) => {
          if (error instanceof CodedError && error.code === 'full') throw error;
          throw new Error(`${file.name}: ${reasonOf(error)}`, { cause: error });
        });
      }
    }
    if (read === undefined) throw new Error(`the file ends before ${SIGNATURE_NAME}`);
    if (left.length > 0) throw new Error(`the file ends before ${left[0]?.name}`);
    return read;
  } catch (error) {
    if (error instanceof CodedError) throw error;
    // The tar library's own message gives advice about compressed archives, which does not apply.
    if (messageOf(error).startsWith('Invalid tar header')) throw bad(`the file is not ${kind.name}`, error);
    throw bad(reasonOf(error), error);
  } finally {
    tar.destroy();
    source.destroy();
    await fed;
  }
}

async function textMember(
  entry: AsyncIterable<Uint8Array>,
  { name, size = 0 }: Header,
  expected: string,
  limit: number,
): Promise<string> {
  if (name !== expected) throw new Error(`member "${shown(name)}" is where ${expected} must be`);
  if (size > limit) throw new Error(`${expected} is larger than ${limit} bytes`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Error text with a fix for truncated archives, for which the tar library's message has none. */
const reasonOf = (error: unknown): string =>
  messageOf(error) === 'Unexpected end of data' ? 'the file is truncated; copy it again' : messageOf(error);

/** An untrusted name, escaped for a terminal. */
const shown = (name: string): string => JSON.stringify(name.slice(0, 80)).slice(1, -1);

/** Writes a release bundle; see `writeSigned`. */
export const writeBundle = (
  path: string,
  manifest: ReleaseManifest,
  sources: ReadonlyMap<string, string>,
  key: KeyObject,
  onBytes?: (bytes: number) => void,
): Promise<void> => writeSigned(path, { text: manifestText(manifest), files: manifest.files, sources, key, onBytes });

export interface BundleToWrite {
  /** Text of the manifest. */
  readonly text: string;
  readonly files: readonly SignedFile[];
  /** Paths of the files by their name in the bundle. */
  readonly sources: ReadonlyMap<string, string>;
  readonly key: KeyObject;
  /** Mode of the bundle, by default readable by all. */
  readonly mode?: number;
  /** Called with the number of bytes that were read from the files. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** Writes a bundle to a temporary file and then renames the file. Throws CodedError 'unwritable'. */
export async function writeSigned(path: string, bundle: BundleToWrite): Promise<void> {
  const { text, files, sources, key, mode = 0o644, onBytes = () => undefined } = bundle;
  const temporary = `${path}.new`;
  const tar = pack();
  const add = (name: string, content: string): void => {
    tar.entry({ name, type: 'file', mode: 0o644, mtime: EPOCH, uid: 0, gid: 0 }, content);
  };
  const fill = async (): Promise<void> => {
    add(MANIFEST_NAME, text);
    add(SIGNATURE_NAME, `${signatureOf(text, key)}\n`);
    for (const { name, size } of files) {
      const header = { name, size, type: 'file', mode: 0o755, mtime: EPOCH, uid: 0, gid: 0 } as const;
      await pipeline(counted(createReadStream(sources.get(name) ?? ''), onBytes), tar.entry(header));
    }
    tar.finalize();
  };
  try {
    await Promise.all([fill(), pipeline(tar, createWriteStream(temporary, { mode }))]);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
    await rename(temporary, path);
    await flushDirectory(dirname(path));
  } catch (error) {
    tar.destroy();
    await rm(temporary, { force: true });
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}
