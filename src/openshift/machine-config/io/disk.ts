/**
 * File system operations of a transaction, below the root of a host. Paths are absolute below this root. Symbolic links
 * in parent directories are not followed: each directory is opened relative to its parent.
 */
import { constants, type Stats } from 'node:fs';
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import type { Owner } from '../core/host-files/port.ts';

export interface Stat {
  readonly kind: 'file' | 'link' | 'directory' | 'other';
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  /** Target of a symbolic link; empty for other kinds. */
  readonly target: string;
}

export interface Disk {
  /**
   * Inspects an entry without following a link; undefined if it does not exist. Throws CodedError 'symlinked-parent'.
   */
  stat(path: string): Promise<Stat | undefined>;
  /** Reads a regular file. Throws CodedError 'too-large' if it has more than `maxBytes`. */
  read(path: string, maxBytes: number): Promise<Uint8Array>;
  /** Creates a new file and flushes its contents to disk. */
  write(path: string, bytes: Uint8Array, owner: Owner): Promise<void>;
  symlink(path: string, target: string): Promise<void>;
  /** Creates a hard link to a regular file, or a flushed copy of it if the file system has no hard links. */
  keep(path: string, as: string): Promise<void>;
  /** Renames an entry within its directory. Replaces an existing entry. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or link. Succeeds if the path does not exist. */
  remove(path: string): Promise<void>;
  makeDirectory(path: string, owner: Owner): Promise<void>;
  /** Removes a directory if it is empty. Returns whether it was removed. */
  removeDirectory(path: string): Promise<boolean>;
  list(path: string): Promise<readonly string[]>;
  /** Flushes the entries of a directory to disk. */
  sync(directory: string): Promise<void>;
}

/** O_PATH of Linux, which the constants of Node.js lack. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'EXDEV', 'ENOSYS']);

export function createDisk(root: string): Disk {
  /** Opens the parent directory of `path`, and calls `act` with a path below its descriptor, as openat(2) does. */
  const inParent = async <T>(path: string, act: (at: string) => Promise<T>): Promise<T> => {
    const directory = await openDirectory(root, dirname(path));
    try {
      return await act(join(`/proc/self/fd/${directory.fd}`, basename(path)));
    } finally {
      await directory.close();
    }
  };
  const disk: Disk = {
    async stat(path) {
      try {
        return await inParent(path, statOf);
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return undefined;
        throw error;
      }
    },
    read: (path, maxBytes) => inParent(path, (at) => readAt(at, path, maxBytes)),
    write: (path, bytes, owner) => inParent(path, (at) => writeAt(at, bytes, owner)),
    symlink: (path, target) => inParent(path, (at) => symlink(target, at)),
    async keep(path, as) {
      try {
        await inParent(path, (from) => inParent(as, (to) => link(from, to)));
      } catch (error) {
        if (!NO_HARD_LINKS.has(codeOf(error) ?? '')) throw error;
        const stat = await disk.stat(path);
        if (stat === undefined) throw error;
        await disk.write(as, await disk.read(path, stat.size), stat);
      }
    },
    rename: (from, to) => inParent(from, (at) => rename(at, join(dirname(at), basename(to)))),
    async remove(path) {
      await inParent(path, unlink).catch(async (error: unknown) => {
        // A read-only file system returns EROFS even if the file does not exist.
        const absent = codeOf(error) === 'EROFS' && (await disk.stat(path)) === undefined;
        if (codeOf(error) !== 'ENOENT' && !absent) throw error;
      });
    },
    makeDirectory: (path, { mode, uid, gid }) =>
      inParent(path, async (at) => {
        await mkdir(at, { mode: 0o700 });
        // Set owner and mode by descriptor, because the owner of the parent could replace the new directory by a link.
        const made = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY);
        try {
          await made.chown(uid, gid);
          await made.chmod(mode);
        } finally {
          await made.close();
        }
      }),
    async removeDirectory(path) {
      try {
        await inParent(path, rmdir);
        return true;
      } catch (error) {
        if (['ENOTEMPTY', 'EEXIST', 'ENOENT', 'EBUSY'].includes(codeOf(error) ?? '')) return false;
        throw error;
      }
    },
    list: (path) => inDirectory(root, path, (at) => readdir(at)),
    sync: (path) =>
      inDirectory(root, path, async (at) => {
        const handle = await open(at, constants.O_RDONLY | constants.O_DIRECTORY);
        try {
          await handle.sync();
        } finally {
          await handle.close();
        }
      }),
  };
  return disk;
}

async function inDirectory<T>(root: string, path: string, act: (at: string) => Promise<T>): Promise<T> {
  const directory = await openDirectory(root, path);
  try {
    return await act(`/proc/self/fd/${directory.fd}/.`);
  } finally {
    await directory.close();
  }
}

async function openDirectory(root: string, path: string): Promise<FileHandle> {
  let current = await open(root, O_PATH | constants.O_DIRECTORY);
  try {
    let at = '';
    for (const name of path.split('/').filter((part) => part !== '')) {
      if (name === '..' || name === '.') throw new CodedError('bad-path', `${path}: must not contain ${name}`);
      at += `/${name}`;
      const next = await open(`/proc/self/fd/${current.fd}/${name}`, DIRECTORY).catch((error: unknown) => {
        if (codeOf(error) !== 'ENOTDIR' && codeOf(error) !== 'ELOOP') throw error;
        const fix = 'symbolic links are not followed; name the directory that it leads to';
        throw new CodedError('symlinked-parent', `${path}: ${at} is not a directory; ${fix}`);
      });
      await current.close();
      current = next;
    }
    return current;
  } catch (error) {
    await current.close();
    throw error;
  }
}

function kindOf(found: Stats): Stat['kind'] {
  if (found.isFile()) return 'file';
  if (found.isSymbolicLink()) return 'link';
  return found.isDirectory() ? 'directory' : 'other';
}

async function statOf(at: string): Promise<Stat> {
  const found = await lstat(at);
  const kind = kindOf(found);
  const target = kind === 'link' ? await readlink(at) : '';
  return { kind, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid, size: found.size, target };
}

async function readAt(at: string, path: string, maxBytes: number): Promise<Uint8Array> {
  // With O_NONBLOCK, opening a device or a pipe does not block the host process.
  const handle = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw new CodedError('not-a-file', `${path}: is not a regular file`);
    if (found.size > maxBytes)
      throw new CodedError('too-large', `${path}: ${found.size} bytes; must have at most ${maxBytes}`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

async function writeAt(at: string, bytes: Uint8Array, { mode, uid, gid }: Owner): Promise<void> {
  const handle = await open(at, CREATE, 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.chown(uid, gid);
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
