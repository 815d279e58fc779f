/** Offline bundles: one signed file with everything that a host without a network needs. */
import { createHash, type KeyObject } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { ARCHITECTURES, type Architecture, OFFLINE_KIND, releaseFileName } from '../../api/releases/manifest.ts';
import {
  type JoinParameters,
  MAX_OFFLINE_BYTES,
  MAX_OFFLINE_MANIFEST_BYTES,
  type OfflineFile,
  type OfflineManifest,
  type OfflineRole,
  offlineText,
  parseOfflineManifest,
} from '../../api/releases/offline.ts';
import { counted } from '../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import {
  type BundleKind,
  digestOf,
  type ReadBundle,
  readSigned,
  verifySigned,
  writeSigned,
} from '../../openshift/updates/io/index.ts';
import { checkMachine } from '../openshift/executable-machine.ts';

export interface OfflineOptions {
  readonly bundle: string;
  readonly version: string;
  readonly key: KeyObject;
  readonly executables: ReadonlyMap<string, string>;
  readonly packages: readonly string[];
  readonly images: readonly string[];
  readonly manifests: readonly string[];
  readonly join: JoinParameters | undefined;
  /** Called with the number of bytes that were read since the last call. */
  readonly onBytes?: (bytes: number) => void;
}

const PACKAGE_ARCHITECTURES: Readonly<Record<string, Architecture>> = { amd64: 'x64', arm64: 'arm64' };

/**
 * Writes a bundle. A bundle with join parameters is readable only by its owner, because they contain a token. Throws
 * CodedErrors that name the flag or the file.
 */
export async function createOffline(options: OfflineOptions): Promise<OfflineManifest> {
  const files: OfflineFile[] = [];
  const sources = new Map<string, string>();
  const add = async (role: OfflineRole, path: string, name: string, architecture?: Architecture): Promise<void> => {
    const found = await stat(path).catch((error: unknown) => {
      throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
    });
    if (sources.has(name))
      throw new CodedError('bad-flag', `${path}: the bundle has a file ${name} already; rename it`);
    sources.set(name, path);
    const each = { name, role, size: found.size, sha256: await digestOf(path, options.onBytes) };
    files.push(architecture === undefined ? each : { ...each, architecture });
  };
  for (const architecture of ARCHITECTURES) {
    const path = options.executables.get(architecture);
    if (path === undefined) continue;
    await checkMachine(path, architecture);
    await add('executable', path, releaseFileName(architecture), architecture);
  }
  for (const path of options.packages) {
    const architecture = PACKAGE_ARCHITECTURES[/_([a-z0-9]+)\.deb$/.exec(path)?.[1] ?? ''];
    if (architecture === undefined)
      throw new CodedError('bad-flag', `${path}: the file name must end in _amd64.deb or _arm64.deb`);
    await add('package', path, basename(path), architecture);
  }
  for (const path of options.images) await add('image', path, basename(path));
  for (const path of options.manifests) await add('manifest', path, basename(path));
  const manifest = {
    version: options.version,
    files,
    ...(options.join === undefined ? {} : { join: options.join }),
  };
  const text = offlineText(manifest);
  const checked = parseOfflineManifest(text);
  if (typeof checked === 'string') throw new CodedError('bad-flag', `${options.bundle}: ${checked}`);
  const mode = options.join === undefined ? 0o644 : 0o600;
  await writeSigned(options.bundle, { text, files, sources, key: options.key, mode, onBytes: options.onBytes });
  return manifest;
}

/** Format of an offline bundle whose signature `keys` verify. */
function offlineKind(keys: readonly KeyObject[]): BundleKind<OfflineManifest> {
  const none = 'no key is trusted; give --key FILE with the public key, or set updates.keys in the bootstrap file';
  return {
    name: 'an offline bundle',
    verify: (text, signature) =>
      keys.length === 0 ? { problem: none } : verifySigned(text, signature, keys, parseOfflineManifest),
    maxBytes: MAX_OFFLINE_BYTES,
    maxManifestBytes: MAX_OFFLINE_MANIFEST_BYTES,
  };
}

const TAR_HEADER_BYTES = 512;

/**
 * Whether the manifest at the start of the file claims to be one of an offline bundle. The signature is not verified.
 */
export async function isOfflineBundle(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2 * TAR_HEADER_BYTES));
    return buffer.toString('latin1', TAR_HEADER_BYTES, bytesRead).includes(`"kind": "${OFFLINE_KIND}"`);
  } catch (error) {
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    await file.close();
  }
}

/** Destination of the files in a bundle, for example a DigestStore. */
export interface FilePlace {
  wants(file: OfflineFile): boolean;
  /** Called once, after the verification of the signature and before the first file. */
  prepare(manifest: OfflineManifest): Promise<void>;
  add(file: OfflineFile, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Called with the number of bytes read since the last call, including files that are not wanted. */
  onBytes?(bytes: number): void;
}

/**
 * Verifies the signature and every file of a bundle. Passes the files that `place` wants to it. Throws CodedErrors of
 * one line.
 */
export function readOffline(
  path: string,
  keys: readonly KeyObject[],
  place: FilePlace | undefined,
): Promise<ReadBundle<OfflineManifest>> {
  return readSigned(
    path,
    offlineKind(keys),
    async ({ manifest }) => place?.prepare(manifest),
    async (file, content) => {
      const read = counted(content, (bytes) => place?.onBytes?.(bytes));
      return place?.wants(file) === true ? place.add(file, read) : checkContent(file, read);
    },
  );
}

async function checkContent({ size, sha256 }: OfflineFile, content: AsyncIterable<Uint8Array>): Promise<void> {
  const hash = createHash('sha256');
  let length = 0;
  for await (const chunk of content) {
    hash.update(chunk);
    length += chunk.length;
  }
  if (length !== size) throw new CodedError('bad-file', `ends after ${length} of ${size} bytes`);
  if (hash.digest('hex') !== sha256) throw new CodedError('bad-file', 'the file does not have its announced SHA-256');
}
