/** Why a container ended, in its own words. Source: kuberuntime_container.go getTerminationMessage. */
import { chmod, mkdir, open, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ContainerStatus } from '../../../core/podplan/port.ts';
import { ANNOTATIONS } from '../../../core/podplan/snapshot.ts';
import { tailOfLog } from '../server/log-lines.ts';

const MAX_MESSAGE_BYTES = 4096;
const MAX_LOG_BYTES = 2048;
const MAX_LOG_LINES = 80;

/** Makes the file that is mounted at terminationMessagePath; anybody in the container may write it. */
export async function makeTerminationFile(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await writeFile(path, '');
  // Apart from the writing: the mode of a file that is made is cut by this process's mask.
  await chmod(path, 0o666);
}

/**
 * Of a container that has ended. What no one reads of its file is cut off: it would take room on the disk for as long
 * as the pod's object stays.
 */
export async function terminationMessage(status: ContainerStatus, path: string): Promise<string> {
  const fromFile = await cutTo(path, MAX_MESSAGE_BYTES);
  if (fromFile !== '') return fromFile;
  const fallsBack =
    status.annotations[ANNOTATIONS.terminationMessagePolicy] === 'FallbackToLogsOnError' && status.exitCode !== 0;
  if (!fallsBack) return status.message;
  const tail = await tailOfLog(status.logPath, { lines: MAX_LOG_LINES, bytes: MAX_LOG_BYTES }).catch(() => '');
  return tail === '' ? status.message : tail;
}

async function cutTo(path: string, limit: number): Promise<string> {
  try {
    const file = await open(path, 'r+');
    try {
      const buffer = Buffer.alloc(limit);
      const { bytesRead } = await file.read(buffer, 0, limit, 0);
      if ((await file.stat()).size > limit) await file.truncate(limit);
      return buffer.subarray(0, bytesRead).toString('utf8');
    } finally {
      await file.close();
    }
  } catch {
    return '';
  }
}
