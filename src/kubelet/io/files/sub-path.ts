/**
 * Binds sub-paths of volumes safely, although a container may replace a component by a link between check and use.
 * Links are resolved first and must stay in the volume (projected files are links themselves). Then every component of
 * the result is opened relative to the previous one without following links, and the opened file itself is bound.
 * Source: pkg/volume/util/subpath (CVE-2017-1002101, CVE-2021-25741).
 */
import { constants } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, realpath, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Mounter } from '../../port.ts';

/** Linux O_PATH, which is missing in Node's constants. */
const O_PATH = 0o10000000;
/** Flags that open an entry itself, also a link, without reading or writing it. */
export const NO_FOLLOW = O_PATH | constants.O_NOFOLLOW;

/** Mounts a subPath of a volume, without following links out of it (`VolumeFiles.bindSubPath`). */
export async function bindSubPath(volume: string, subPath: string, target: string, mounts: Mounter): Promise<void> {
  const base = await realpath(volume);
  const parts = await resolveBelow(base, subPath);
  let current: FileHandle = await open(base, NO_FOLLOW | constants.O_DIRECTORY);
  try {
    const { mode } = await stat(`/proc/self/fd/${current.fd}`);
    for (const part of parts) {
      const next = await openBelow(current, part, subPath, mode & 0o7777);
      await current.close();
      current = next;
    }
    const found = await stat(`/proc/self/fd/${current.fd}`);
    if (await mounts.isMountPoint(target)) {
      const bound = await stat(target);
      if (bound.dev === found.dev && bound.ino === found.ino) return;
      await mounts.unmountTree(target);
    }
    const isDirectory = found.isDirectory();
    await mkdir(isDirectory ? target : dirname(target), { recursive: true, mode: 0o750 });
    if (!isDirectory) await writeFile(target, '', { mode: 0o640 });
    await mounts.bindFd(current.fd, target);
  } finally {
    await current.close();
  }
}

/** Names below `base` that `subPath` leads to after its links are resolved. Missing components are kept as they are. */
async function resolveBelow(base: string, subPath: string): Promise<string[]> {
  const parts = subPath.split('/').filter((part) => part !== '' && part !== '.');
  const leaves = (): Error => new Error(`subPath ${JSON.stringify(subPath)} leaves the volume`);
  if (subPath.startsWith('/') || parts.includes('..')) throw leaves();
  for (let known = parts.length; known > 0; known--) {
    const resolved = await realpath(join(base, ...parts.slice(0, known))).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (resolved === undefined) continue;
    if (resolved !== base && !resolved.startsWith(`${base}/`)) throw leaves();
    const inside = resolved
      .slice(base.length)
      .split('/')
      .filter((part) => part !== '');
    return [...inside, ...parts.slice(known)];
  }
  return parts;
}

/**
 * Opens a component. `/proc/self/fd/<n>/name` resolves against the opened directory itself, as openat(2) would. `mode`
 * applies to missing directories, regardless of the umask.
 */
async function openBelow(directory: FileHandle, name: string, subPath: string, mode: number): Promise<FileHandle> {
  const path = join(`/proc/self/fd/${directory.fd}`, name);
  let handle: FileHandle;
  let made = false;
  try {
    handle = await open(path, NO_FOLLOW);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    made = await mkdir(path, { mode: 0o750 }).then(
      () => true,
      (failure: unknown) => {
        if (!(failure instanceof Error && 'code' in failure && failure.code === 'EEXIST')) throw failure;
        return false;
      },
    );
    handle = await open(path, NO_FOLLOW);
  }
  try {
    if (made) await setMode(handle, mode);
    // O_PATH opens a link itself instead of rejecting it.
    if ((await handle.stat()).isSymbolicLink())
      throw new Error(`subPath ${JSON.stringify(subPath)}: ${name} is a symbolic link`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Uses the opened directory, because its path may lead elsewhere meanwhile. */
async function setMode(handle: FileHandle, mode: number): Promise<void> {
  if ((await handle.stat()).isDirectory()) await chmod(`/proc/self/fd/${handle.fd}`, mode);
}
