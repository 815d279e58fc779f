import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Restricts the database file to its owner. The file contains every secret of the cluster, and SQLite creates the
 * rollback journal with the mode of the database file.
 */
export function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
}

/** Throws if the file exists. */
export function createPrivate(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

/**
 * Records the pid of the lock's owner for error messages. The lock itself is SQLite's, so the pid is omitted when the
 * disk is full.
 */
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
