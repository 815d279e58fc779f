import { lstat, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { HostPathVolumeSource } from 'kubernetes-types/core/v1';

/** Checks (or makes) what the volume's type asks for. Throws with upstream's text. Source: pkg/volume/hostpath. */
export async function prepareHostPath(source: HostPathVolumeSource): Promise<string> {
  const { path } = source;
  if (path.split('/').includes('..')) throw new Error(`invalid path ${JSON.stringify(path)}: must not contain '..'`);
  const type = source.type ?? '';
  if (type === 'DirectoryOrCreate') await mkdir(path, { recursive: true, mode: 0o755 });
  if (type === 'FileOrCreate') {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await (await open(path, 'a', 0o644)).close();
  }
  if (type === '') {
    // The runtime binds it; where nothing is, a directory is what container engines make of it.
    await lstat(path).catch(() => mkdir(path, { recursive: true, mode: 0o755 }));
    return path;
  }
  const expected = type.replace('OrCreate', '');
  const found = await stat(path).catch(() => undefined);
  const fits =
    found !== undefined &&
    ((expected === 'Directory' && found.isDirectory()) ||
      (expected === 'File' && found.isFile()) ||
      (expected === 'Socket' && found.isSocket()) ||
      (expected === 'CharDevice' && found.isCharacterDevice()) ||
      (expected === 'BlockDevice' && found.isBlockDevice()));
  if (!fits) throw new Error(`hostPath type check failed: ${path} is not ${DESCRIPTION[expected] ?? `a ${expected}`}`);
  return path;
}

const DESCRIPTION: Readonly<Record<string, string>> = {
  Directory: 'a directory',
  File: 'a file',
  Socket: 'a socket file',
  CharDevice: 'a character device',
  BlockDevice: 'a block device',
};
