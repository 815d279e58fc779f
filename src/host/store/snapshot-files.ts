/** Snapshots of this host for completion, which must start fast. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalRoot, pathsBelow } from '../config/settings.ts';

/** Files in the snapshot directory, the newest first. They are not verified. */
export async function snapshotFiles(root: string | undefined): Promise<string[]> {
  const directory = pathsBelow(await canonicalRoot(root)).snapshots;
  const names = (await readdir(directory)).filter((name) => name.endsWith('.db') && !name.startsWith('.'));
  return names
    .sort()
    .reverse()
    .map((name) => join(directory, name));
}
