/** Data directories behind symbolic links, such as /var/lib/origin on an SSD. */
import { readlink } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import type { Paths } from './paths.ts';

const MAX_LINKS = 40;

/**
 * Resolves the symbolic links of the directories that contain mounts, because the kernel's mount table lists paths
 * without links. Other paths are not resolved, because control-plane pods mount them under the configured names.
 */
export async function canonicalMountPaths(paths: Paths): Promise<Paths> {
  const [volumes, containers] = await Promise.all([resolvedLinks(paths.volumes), resolvedLinks(paths.containers)]);
  return { ...paths, volumes, containers };
}

/** The path without links, even if its last components do not exist: their file system may not be mounted yet. */
export async function resolvedLinks(path: string): Promise<string> {
  let current = '/';
  let rest = path.split(sep).filter((part) => part !== '');
  for (let links = 0; rest.length > 0; ) {
    const [part = '', ...after] = rest;
    const next = join(current, part);
    const target = links < MAX_LINKS ? await readlink(next).catch(() => undefined) : undefined;
    if (target === undefined) {
      current = next;
      rest = after;
      continue;
    }
    links += 1;
    rest = [
      ...resolve(current, target)
        .split(sep)
        .filter((each) => each !== ''),
      ...after,
    ];
    current = '/';
  }
  return current;
}
