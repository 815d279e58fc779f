import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** SQLite gives its journal the mode of the database, which holds every secret of the cluster. */
export function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
}

/** Throws when there is such a file. */
export function createPrivate(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

/** The lock is SQLite's; this only lets the next one say who has it, so a full disk does not matter. */
export function noteOwner(directory: string): void {
  try {
    writeFileSync(join(directory, 'owner'), `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

export function ownerOf(directory: string): string {
  try {
    return readFileSync(join(directory, 'owner'), 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
