/** Names of this host's snapshots for completion. The module imports little, because completion must start fast. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';

/** Snapshots in the snapshot directory, newest first. Their content is not verified. */
export async function snapshotFiles(root: string | undefined): Promise<string[]> {
  const directory = pathsBelow(await canonicalRoot(root)).snapshots;
  const names = (await readdir(directory)).filter((name) => name.endsWith('.db') && !name.startsWith('.'));
  return names
    .sort()
    .reverse()
    .map((name) => join(directory, name));
}
