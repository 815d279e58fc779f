/** Addresses of the other members in a file beside the database, for a start without the database. */
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PeerUrls } from './port.ts';

const OTHERS = 'others.json';

export async function savePeers(directory: string, peerUrls: PeerUrls): Promise<void> {
  const known = await savedPeers(directory);
  if (known !== undefined && JSON.stringify(known) === JSON.stringify(peerUrls)) return;
  await replaceFile(directory, OTHERS, `${JSON.stringify(peerUrls)}\n`);
}

export async function savedPeers(directory: string): Promise<PeerUrls | undefined> {
  try {
    const noted: unknown = JSON.parse(await readFile(join(directory, OTHERS), 'utf8'));
    return isPeerUrls(noted) ? noted : undefined;
  } catch {
    // A missing or damaged file is treated as no information.
    return undefined;
  }
}

function isPeerUrls(value: unknown): value is PeerUrls {
  return (
    Array.isArray(value) &&
    value.every((urls) => Array.isArray(urls) && urls.every((url: unknown) => typeof url === 'string'))
  );
}

/** Replaces a file durably and atomically. */
async function replaceFile(directory: string, name: string, text: string): Promise<void> {
  const path = join(directory, name);
  await writeFile(`${path}.new`, text, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
