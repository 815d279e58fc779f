/**
 * Assets in the executable that must be files: the SQLite add-on and the scripts of worker threads. They are unpacked
 * into a private directory, once per content hash. Each start verifies their digests.
 */

import { existsSync, readFileSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { getAsset, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ConsoleFiles } from '../../apiserver/console/console.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { sha256Hex } from '../../wire/digest.ts';

interface Manifest {
  readonly hash: string;
  /** SHA-256 of each file, by name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface Assets {
  /** Directory of the unpacked assets; undefined when Node runs the sources. */
  readonly directory: string | undefined;
  /** Absolute path of SQLite's native add-on. */
  readonly sqliteAddon: string;
}

declare global {
  /**
   * `file:` URL of the directory with the unpacked assets, with a trailing slash. It must be set before a worker thread
   * is started.
   */
  var hyperedgeAssets: string | undefined;
}

/** Whether this process is the single executable. False when Node runs the sources. */
export const packaged: boolean = isSea();

/** The command that starts this program again: the executable, or Node with the main source. */
export function selfCommand(): readonly string[] {
  return packaged ? [process.execPath] : [process.execPath, process.argv[1] ?? ''];
}

/** Unpacks missing and damaged assets. Throws CodedError 'assets' with the directory. */
export async function openAssets(base: string = cacheDirectory()): Promise<Assets> {
  if (!packaged) return { directory: undefined, sqliteAddon: sourceAddon() };
  const manifest: Manifest = JSON.parse(getAsset('assets.json', 'utf8'));
  const directory = join(base, manifest.hash);
  try {
    if (!(await isIntact(directory, manifest))) await unpack(base, directory, manifest);
  } catch (error) {
    throw new CodedError('assets', `cannot unpack into ${directory}: ${messageOf(error)}`, { cause: error });
  }
  globalThis.hyperedgeAssets = `${pathToFileURL(directory).href}/`;
  return { directory, sqliteAddon: join(directory, 'better_sqlite3.node') };
}

/** Content of a systemd unit file, such as `hyperedge.service`. */
export async function unitFile(name: string): Promise<string> {
  if (packaged) return getAsset(`systemd/${name}`, 'utf8');
  return readFile(fileURLToPath(new URL(`../../../systemd/${name}`, import.meta.url)), 'utf8');
}

/** Contents of the completion scripts and man pages, by path relative to the root; empty when Node runs the sources. */
export function shellFiles(): ReadonlyMap<string, string> {
  const texts: Readonly<Record<string, string>> = packaged ? JSON.parse(getAsset('shell-files.json', 'utf8')) : {};
  return new Map(Object.entries(texts));
}

/**
 * Parses a JSON document in the executable. Only some requests need it, so it is loaded on demand. Undefined if this
 * build does not contain it.
 */
export async function loadJsonAsset(name: 'descriptions.json'): Promise<unknown> {
  if (packaged) return JSON.parse(getAsset(name, 'utf8'));
  const file = fileURLToPath(new URL(`../../api/schema/generated/${name}`, import.meta.url));
  return existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : undefined;
}

/** Files of the web console; undefined if this build does not contain them. */
export function consoleFiles(): ConsoleFiles | undefined {
  if (packaged)
    return {
      manifest: JSON.parse(getAsset('console.json', 'utf8')),
      // The bytes are not copied. They are mapped with the executable.
      contents: new Uint8Array(getRawAsset('console.bin')),
    };
  const file = (name: string): string => fileURLToPath(new URL(`../../../dist/console/${name}`, import.meta.url));
  if (!existsSync(file('console.json'))) return undefined;
  return {
    manifest: JSON.parse(readFileSync(file('console.json'), 'utf8')),
    contents: readFileSync(file('console.bin')),
  };
}

/**
 * Notices of third-party packages in the executable. Throws CodedError 'not-found' when Node runs the sources, because
 * these contain no packages.
 */
export function thirdPartyNotices(): string {
  if (packaged) return getAsset('licenses.txt', 'utf8');
  throw new CodedError(
    'not-found',
    'licenses: only the packaged executable has third-party notices; run npm run build',
  );
}

/** Directory for unpacked assets: a cache of the machine for root, or a cache of the user. */
export function cacheDirectory(): string {
  const configured = process.env['HYPEREDGE_CACHE'];
  if (configured !== undefined && configured !== '') return configured;
  return process.geteuid?.() === 0
    ? '/var/cache/hyperedge'
    : join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperedge');
}

async function isIntact(directory: string, manifest: Manifest): Promise<boolean> {
  const stat = await lstat(directory).catch(() => undefined);
  if (stat === undefined) return false;
  if (!stat.isDirectory() || stat.uid !== process.geteuid?.() || (stat.mode & 0o077) !== 0) {
    throw new Error('it is not a directory with mode 0700 of this user; remove it');
  }
  const intact = await Promise.all(
    Object.entries(manifest.files).map(async ([name, digest]) => {
      const content = await readFile(join(directory, name)).catch(() => undefined);
      return content !== undefined && sha256Hex(content) === digest;
    }),
  );
  return intact.every(Boolean);
}

async function unpack(base: string, directory: string, manifest: Manifest): Promise<void> {
  await mkdir(base, { recursive: true, mode: 0o700 });
  const temporary = await mkdtemp(join(base, '.unpack-'));
  try {
    await chmod(temporary, 0o700);
    for (const name of Object.keys(manifest.files)) {
      await writeFile(join(temporary, name), new Uint8Array(getRawAsset(name)), { mode: 0o600 });
    }
    await rm(directory, { recursive: true, force: true });
    await rename(temporary, directory);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // The directory may exist because another process with the same assets has just unpacked them.
    if (await isIntact(directory, manifest)) return;
    throw error;
  }
}

/** Finds the add-on in `node_modules` of a parent directory of the sources. */
function sourceAddon(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const file = join(directory, `node_modules/better-sqlite3/prebuilds/linux-${process.arch}.node`);
    if (existsSync(file)) return file;
    const parent = dirname(directory);
    if (parent === directory) throw new CodedError('assets', 'better-sqlite3 is not installed: run npm ci');
    directory = parent;
  }
}
