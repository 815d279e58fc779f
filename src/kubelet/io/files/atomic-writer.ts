/**
 * Replaces a set of files in a directory atomically: the files are in a time-stamped directory, `..data` points to it,
 * and the visible names point through `..data`. Source: pkg/volume/util/atomic_writer.go.
 */
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Payload, ProjectedFile } from '../../ports/files-port.ts';

const DATA = '..data';
const NEW_DATA = '..data_tmp';

/** Replaces the files of a projected volume together (`VolumeFiles.writeAtomically`). */
export async function writeAtomically(
  directory: string,
  payload: Payload,
  options: { readonly gid?: number; readonly nowMs: number },
): Promise<boolean> {
  for (const path of payload.keys()) assertInside(path);
  const current = await readlink(join(directory, DATA)).catch(() => undefined);
  const currentDirectory = current === undefined ? undefined : join(directory, current);
  if (currentDirectory !== undefined && (await same(currentDirectory, payload))) return false;
  const stamp = new Date(options.nowMs).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '_');
  const fresh = await mkdtemp(join(directory, `..${stamp}.`));
  await chmod(fresh, 0o755);
  for (const [path, file] of payload) await writeOne(fresh, path, file, options.gid);
  const link = join(directory, NEW_DATA);
  await rm(link, { force: true });
  await symlink(fresh.slice(directory.length + 1), link);
  await rename(link, join(directory, DATA));
  await linkNames(directory, payload);
  if (currentDirectory !== undefined) await rm(currentDirectory, { recursive: true, force: true });
  return true;
}

async function writeOne(root: string, path: string, file: ProjectedFile, gid: number | undefined): Promise<void> {
  const target = join(root, path);
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await writeFile(target, file.bytes, { mode: 0o600 });
  if (gid !== undefined || file.uid !== undefined) await chown(target, file.uid ?? 0, gid ?? 0);
  await chmod(target, gid === undefined ? file.mode : file.mode | 0o040);
}

/**
 * Updates the visible names. Only first path components are links, so that files in directories also change with
 * `..data`.
 */
async function linkNames(directory: string, payload: Payload): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? ''));
  for (const name of await readdir(directory)) {
    if (name.startsWith('..') || wanted.has(name)) continue;
    const path = join(directory, name);
    if ((await lstat(path)).isSymbolicLink()) await rm(path);
  }
  for (const name of wanted) {
    await symlink(join(DATA, name), join(directory, name)).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    });
  }
}

async function same(directory: string, payload: Payload): Promise<boolean> {
  let present: string[];
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    present = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  } catch {
    return false;
  }
  if (present.length !== payload.size) return false;
  for (const path of present) {
    const file = payload.get(path);
    if (file === undefined || !Buffer.from(file.bytes).equals(await readFile(join(directory, path)))) return false;
  }
  return true;
}

function assertInside(path: string): void {
  const parts = path.split('/');
  if (
    path === '' ||
    path.startsWith('/') ||
    path.includes('\0') ||
    parts.includes('..') ||
    parts[0]?.startsWith('..')
  ) {
    throw new Error(`invalid path ${JSON.stringify(path)} in volume`);
  }
}
