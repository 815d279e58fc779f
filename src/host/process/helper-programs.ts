/**
 * The helper programs in the executable (runc, conmon, nft, ip, socat, setfattr) with their dynamic loader and
 * libraries. They are unpacked into a private directory, once per content hash. Each start verifies them.
 */

import { chmod, lstat, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getAsset, getAssetKeys, getRawAsset } from 'node:sea';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { CodedError, messageOf } from '../../base/errors.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { cacheDirectory, packaged } from './assets.ts';
import { HELPER_PREFIX, type HelperManifest } from './helper-manifest.ts';

const decompress = promisify(zstdDecompress);
/** File with the SHA-256 of each unpacked file, by path. */
const DIGESTS = 'digests.json';

export interface HelperContents {
  readonly manifest: HelperManifest;
  /** Returns all files, concatenated and compressed with Zstandard. */
  contents(): Uint8Array;
}

/**
 * Prepends the directory of the helper programs to PATH and resolves with the directory; undefined if the host's own
 * programs are used.
 */
export async function useHelpers(settings: { readonly hostTools: boolean }): Promise<string | undefined> {
  const directory = settings.hostTools ? undefined : await openHelpers();
  if (directory !== undefined) process.env['PATH'] = `${directory}:${process.env['PATH'] ?? '/usr/sbin:/usr/bin'}`;
  return directory;
}

/** The helper programs in the executable; undefined when Node runs the sources or if the executable contains none. */
export function embeddedHelpers(): HelperContents | undefined {
  if (!packaged || !getAssetKeys().includes('helpers.json')) return undefined;
  const manifest: HelperManifest = JSON.parse(getAsset('helpers.json', 'utf8'));
  return { manifest, contents: () => new Uint8Array(getRawAsset('helpers.bin')) };
}

/**
 * Unpacks missing or damaged programs and resolves with their directory; undefined if there are none. Throws CodedError
 * 'assets' with the directory.
 */
export async function openHelpers(
  bundled: HelperContents | undefined = embeddedHelpers(),
  base: string = cacheDirectory(),
): Promise<string | undefined> {
  if (bundled === undefined) return undefined;
  const directory = join(base, `helpers-${bundled.manifest.hash}`);
  try {
    if (!(await isIntact(directory, bundled.manifest))) await unpack(directory, bundled);
  } catch (error) {
    throw new CodedError('assets', `cannot unpack programs into ${directory}: ${messageOf(error)}`, { cause: error });
  }
  return join(directory, 'bin');
}

async function isIntact(directory: string, manifest: HelperManifest): Promise<boolean> {
  const stat = await lstat(directory).catch(() => undefined);
  if (stat === undefined) return false;
  if (!stat.isDirectory() || stat.uid !== process.geteuid?.() || (stat.mode & 0o022) !== 0)
    throw new Error('it is not a directory that only this user can write; remove it');
  try {
    const digests = JSON.parse(await readFile(join(directory, DIGESTS), 'utf8'));
    for (const { path } of manifest.files)
      if (sha256Hex(await readFile(join(directory, path))) !== digests[path]) return false;
    return true;
  } catch {
    return false;
  }
}

async function unpack(directory: string, { manifest, contents }: HelperContents): Promise<void> {
  const base = dirname(directory);
  await mkdir(base, { recursive: true, mode: 0o700 });
  const temporary = await mkdtemp(join(base, '.unpack-'));
  try {
    await chmod(temporary, 0o700);
    for (const name of ['bin', 'lib']) await mkdir(join(temporary, name), { mode: 0o700 });
    const whole = await decompress(contents());
    const digests: Record<string, string> = {};
    let at = 0;
    for (const { path, size } of manifest.files) {
      const content = Buffer.from(whole.subarray(at, at + size));
      at += size;
      if (path.startsWith('bin/')) replaceHelperPrefix(content, directory);
      digests[path] = sha256Hex(content);
      const mode = path.startsWith('bin/') || path === 'lib/ld.so' ? 0o700 : 0o600;
      await writeFile(join(temporary, path), content, { mode, flush: true });
    }
    await writeFile(join(temporary, DIGESTS), JSON.stringify(digests), { mode: 0o600, flush: true });
    await rm(directory, { recursive: true, force: true });
    await rename(temporary, directory);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // The directory may exist because another process with the same programs has just unpacked them.
    if (await isIntact(directory, manifest)) return;
    throw error;
  }
}

/**
 * Replaces the placeholder by the directory in all strings of an ELF file. Each shorter string is padded with zero
 * bytes.
 */
export function replaceHelperPrefix(content: Buffer, directory: string): void {
  if (Buffer.byteLength(directory) > HELPER_PREFIX.length)
    throw new Error(`the path is longer than ${HELPER_PREFIX.length} bytes; set HYPEREDGE_CACHE to a shorter one`);
  for (let at = content.indexOf(HELPER_PREFIX); at >= 0; at = content.indexOf(HELPER_PREFIX, at)) {
    const end = content.indexOf(0, at);
    const rest = content.toString('latin1', at + HELPER_PREFIX.length, end);
    content.fill(0, at, end);
    content.write(`${directory}${rest}`, at);
  }
}
