/**
 * Sets the group of a tree that containers may change at the same time. Every entry is opened once, relative to its
 * directory and without following links; owner and mode are changed through that descriptor. Source:
 * pkg/volume/volume_linux.go SetVolumeOwnership.
 */
import type { Stats } from 'node:fs';
import { chmod, chown, type FileHandle, open, opendir } from 'node:fs/promises';
import { NO_FOLLOW } from './sub-path.ts';

/** Maximum depth of a volume, because each directory level keeps a descriptor open. */
const MAX_DEPTH = 1_000;

/** Gives the files of a volume to the group of `fsGroup` (`VolumeFiles.ownByGroup`). */
export async function ownByGroup(path: string, gid: number, policy: string | undefined): Promise<void> {
  const top = await open(path, NO_FOLLOW);
  try {
    const found = await top.stat();
    if (policy === 'OnRootMismatch' && isOwnedBy(gid, found)) return;
    await ownTree(top, found, gid, path, 0);
  } finally {
    await top.close();
  }
}

/** Source: pkg/volume/volume_linux.go requiresPermissionChange, for a writable root. */
const isOwnedBy = (gid: number, { gid: group, mode }: Stats): boolean => group === gid && (mode & 0o2770) === 0o2770;

async function ownTree(handle: FileHandle, found: Stats, gid: number, path: string, depth: number): Promise<void> {
  // NO_FOLLOW opens a symbolic link itself. Links are left unchanged.
  if (found.isSymbolicLink()) return;
  if (depth > MAX_DEPTH)
    throw new Error(`${path}: directories are nested deeper than ${MAX_DEPTH}; flatten the volume`);
  const self = `/proc/self/fd/${handle.fd}`;
  await chown(self, found.uid, gid);
  await chmod(self, (found.mode & 0o7777) | (found.isDirectory() ? 0o2770 : 0o660));
  if (!found.isDirectory()) return;
  // Names are bytes, because some are not valid UTF-8.
  for await (const { name } of await opendir(self, { encoding: 'buffer' as 'utf8' })) {
    const entry = await openEntry(Buffer.concat([Buffer.from(`${self}/`), bytesOf(name)]));
    if (entry === undefined) continue;
    try {
      await ownTree(entry, await entry.stat(), gid, path, depth + 1);
    } finally {
      await entry.close();
    }
  }
}

/** Returns undefined if the entry was removed meanwhile. */
async function openEntry(path: Buffer): Promise<FileHandle | undefined> {
  try {
    return await open(path, NO_FOLLOW);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** With the encoding `buffer`, names are bytes, contrary to the type that Node declares. */
const bytesOf = (name: string | Buffer): Buffer => (typeof name === 'string' ? Buffer.from(name) : name);
