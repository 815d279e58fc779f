/** `SHA256SUMS` and its Ed25519 signature in base64, as sha256sum(1) and openssl(1) verify them. */
import type { KeyObject } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, signatureOf } from '../../src/openshift/updates/io/index.ts';

export const SUMS = 'SHA256SUMS';

/** Lists all files of the directory, sorted by name, and signs the list. */
export async function writeSums(directory: string, key: KeyObject): Promise<void> {
  const names = (await readdir(directory)).filter((name) => !name.startsWith(SUMS)).sort();
  const lines: string[] = [];
  for (const name of names) lines.push(`${await digestOf(join(directory, name))}  ${name}\n`);
  await writeFile(join(directory, SUMS), lines.join(''));
  await writeFile(join(directory, `${SUMS}.sig`), `${signatureOf(lines.join(''), key)}\n`);
}
