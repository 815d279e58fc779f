import { access, chmod, mkdir, open, readdir, readlink, rename, symlink, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ignore } from '../../../base/errors.ts';
import type { PodFiles } from '../../ports/files-port.ts';

export const podFiles: PodFiles = {
  async makeDirectory(path, mode) {
    await mkdir(path, { recursive: true, mode });
  },
  names,
  async replace(path, content) {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    const temporary = `${path}.new`;
    await writeFile(temporary, content, { mode: 0o644 });
    await rename(temporary, path);
  },
  async replaceDurably(path, content) {
    const created = await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    const temporary = `${path}.new`;
    await writeFile(temporary, content, { mode: 0o644, flush: true });
    await rename(temporary, path);
    // Also sync the parents of new directories, up to the first directory that existed before.
    const top = dirname(created ?? path);
    for (let directory = dirname(path); ; directory = dirname(directory)) {
      await sync(directory);
      if (directory === top || directory === dirname(directory)) break;
    }
  },
  async makeMessageFile(path) {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await writeFile(path, '');
    // A separate call, because the umask restricts the mode of a new file.
    await chmod(path, 0o666);
  },
  takeMessage,
  async link(target, path) {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await unlink(path).catch(ignore('the link may not exist; symlink() reports any other obstacle'));
    await symlink(target, path);
  },
  async removeDanglingLinks(directory) {
    for (const name of await names(directory)) {
      const link = join(directory, name);
      const target = await readlink(link).catch(() => undefined);
      if (target === undefined) continue;
      await access(target).catch(() => unlink(link).catch(ignore('another pass may have removed the link')));
    }
  },
};

async function sync(directory: string): Promise<void> {
  const handle = await open(directory);
  await handle.sync().finally(() => handle.close());
}

async function names(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch((error: unknown): string[] => {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  });
}

async function takeMessage(path: string, maxBytes: number): Promise<string> {
  try {
    const file = await open(path, 'r+');
    try {
      const buffer = Buffer.alloc(maxBytes);
      const { bytesRead } = await file.read(buffer, 0, maxBytes, 0);
      if ((await file.stat()).size > maxBytes) await file.truncate(maxBytes);
      return buffer.subarray(0, bytesRead).toString('utf8');
    } finally {
      await file.close();
    }
  } catch {
    return '';
  }
}
