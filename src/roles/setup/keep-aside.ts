/** The data of this host: removed, or kept where no later start finds it. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Settings } from '../config/settings.ts';

const run = promisify(execFile);

const KEPT = 'var/lib/hyperedge-kept';
const DATA = ['etc/origin', 'etc/etcd', 'var/lib/origin', 'var/log/origin', 'var/log/pods', 'var/log/containers'];

/** Resolves with the directory that has the data now; undefined when it was removed or there was none. */
export async function putAside(settings: Settings, purge: boolean, nowMs: number): Promise<string | undefined> {
  const { root, paths } = settings;
  const kept = join(root, KEPT, new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-'));
  // Root file systems of containers are made from images at every start.
  await rm(paths.containers, { recursive: true, force: true });
  let moved = false;
  for (const name of DATA) {
    const path = join(root, name);
    const entries = await readdir(path).catch(() => []);
    if (!purge) {
      for (const entry of entries) {
        await mkdir(join(kept, name), { recursive: true, mode: 0o700 });
        await move(join(path, entry), join(kept, name, entry));
        moved = true;
      }
    }
    await removeDirectory(path);
  }
  await rm(paths.run, { recursive: true, force: true });
  // The directory is the host's own where other programs have files in it.
  await rm(paths.nodeSysconfig, { force: true });
  await rmdir(dirname(paths.nodeSysconfig)).catch(() => {});
  return moved ? kept : undefined;
}

/** To another file system it is copied first. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await run('cp', ['-a', '--', from, dirname(to)]);
    await rm(from, { recursive: true, force: true });
  }
}

/** A mount point stays, empty. */
async function removeDirectory(path: string): Promise<void> {
  for (const entry of await readdir(path).catch(() => []))
    await rm(join(path, entry), { recursive: true, force: true, maxRetries: 3 });
  await rmdir(path).catch(() => {});
}
