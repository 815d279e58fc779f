/** Addresses of the other members in a file beside the database, for a start without the database. */
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { PeerUrls } from './port.ts';

const OTHERS = 'others.json';

export async function savePeers(directory: string, peerUrls: PeerUrls): Promise<void> {
  const known = await savedPeers(directory).catch(ignore('the file is replaced'));
  if (known !== undefined && JSON.stringify(known) === JSON.stringify(peerUrls)) return;
  await replaceFile(directory, OTHERS, `${JSON.stringify(peerUrls)}\n`);
}

/** See `StoreLog.savedPeers`. */
export async function savedPeers(directory: string): Promise<PeerUrls | undefined> {
  const path = join(directory, OTHERS);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw unreadable(path, `cannot be read (${messageOf(error)})`);
  }
  try {
    const noted: unknown = JSON.parse(text);
    if (isPeerUrls(noted)) return noted;
  } catch {
    // Reported below, like content of another form.
  }
  throw unreadable(path, 'is damaged');
}

const unreadable = (path: string, what: string): CodedError =>
  new CodedError(
    'unreadable',
    `${path}: ${what}; it names the other members of the cluster; remove it only if this member is the only one`,
  );

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
