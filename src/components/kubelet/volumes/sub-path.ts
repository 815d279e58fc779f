/**
 * Sub-paths that a container cannot turn against the host by swapping in a link between check and use: every component is opened relative to the one
 * before without following links, and the opened file itself is what gets bound. Source: pkg/volume/util/subpath (CVE-2017-1002101, CVE-2021-25741).
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Mounter } from '../port.ts';

/** Linux' O_PATH, which Node does not name. */
const O_PATH = 0o10000000;
const NO_FOLLOW = O_PATH | constants.O_NOFOLLOW;

/** Binds `subPath` of `volume` on `target` (made as file or directory to fit). A missing directory is made, as upstream does. */
export async function bindSubPath(volume: string, subPath: string, target: string, mounts: Mounter): Promise<void> {
  const parts = subPath.split('/').filter((part) => part !== '' && part !== '.');
  if (subPath.startsWith('/') || parts.includes('..'))
    throw new Error(`subPath ${JSON.stringify(subPath)} leaves the volume`);
  if (await mounts.isMountPoint(target)) return;
  let current: FileHandle = await open(volume, NO_FOLLOW | constants.O_DIRECTORY);
  try {
    for (const part of parts) {
      const next = await openBelow(current, part, subPath);
      await current.close();
      current = next;
    }
    const isDirectory = (await stat(`/proc/self/fd/${current.fd}`)).isDirectory();
    await mkdir(isDirectory ? target : dirname(target), { recursive: true, mode: 0o750 });
    if (!isDirectory) await writeFile(target, '', { mode: 0o640 });
    await mounts.bindFd(current.fd, target);
  } finally {
    await current.close();
  }
}

/** `/proc/self/fd/<n>/name` resolves against the opened directory itself, as openat(2) would. */
async function openBelow(directory: FileHandle, name: string, subPath: string): Promise<FileHandle> {
  const path = join(`/proc/self/fd/${directory.fd}`, name);
  let handle: FileHandle;
  try {
    handle = await open(path, NO_FOLLOW);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    await mkdir(path, { mode: 0o755 }).catch((failure: unknown) => {
      if (!(failure instanceof Error && 'code' in failure && failure.code === 'EEXIST')) throw failure;
    });
    handle = await open(path, NO_FOLLOW);
  }
  // With O_PATH a link is opened itself instead of being refused.
  if ((await handle.stat()).isSymbolicLink()) {
    await handle.close();
    throw new Error(`subPath ${JSON.stringify(subPath)}: ${name} is a symbolic link`);
  }
  return handle;
}
