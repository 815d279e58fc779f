/**
 * Creates the directories and files of provisioned volumes at their first use. A record of each is kept in another
 * directory, so that a volume whose file system is not mounted is not replaced by an empty one.
 */
import { mkdir, open, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';

/**
 * Calls `create` if `path` does not exist and this host has not created it before. Throws CodedError 'volume-missing'
 * if it was created before. `records`: directory with one file for each created volume, named as the volume.
 */
export async function createOnce(records: string, path: string, create: () => Promise<unknown>): Promise<void> {
  const record = join(records, basename(path));
  const isRecorded = await exists(record);
  if (await exists(path)) {
    // Earlier releases kept no records.
    if (!isRecorded) await makeRecord(record);
    return;
  }
  if (isRecorded) {
    throw new CodedError(
      'volume-missing',
      `path "${path}" does not exist, but contained data of this volume; mount its file system, or remove ${record} to continue with an empty volume`,
    );
  }
  await create();
  // The volume must be on disk before its record. Otherwise a power failure could leave only the record.
  await sync(dirname(path));
  await makeRecord(record);
}

async function makeRecord(path: string): Promise<void> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await (await open(path, 'a', 0o600)).close();
  for (const each of [directory, dirname(directory)]) await sync(each);
}

async function sync(directory: string): Promise<void> {
  const handle = await open(directory);
  await handle.sync().finally(() => handle.close());
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return false;
    throw error;
  }
}
