/** File replacement that survives a power cut. */
import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';

/** Replaces the file atomically and resolves when it is on disk. Throws CodedError 'unwritable'. */
export async function writeDurably(path: string, content: string, mode: number): Promise<void> {
  try {
    await writeFile(`${path}.new`, content, { mode, flush: true });
    await rename(`${path}.new`, path);
    await flushDirectory(dirname(path));
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Flushes the directory entry changes: renames and new files. */
export async function flushDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
