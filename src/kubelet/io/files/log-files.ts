import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import type { LogFiles, OpenLog } from '../../ports/files-port.ts';

export const logFiles: LogFiles = {
  open: openLog,
  size: async (path) => (await stat(path)).size,
  names: (directory) => readdir(directory),
  rename,
  remove: (path) => rm(path, { force: true }),
};

async function openLog(path: string): Promise<OpenLog> {
  // Without O_NONBLOCK, opening a pipe without a writer would block a thread of the pool forever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if ((await file.stat()).isFile()) return logOf(file);
    throw new Error(`${path}: is not a regular file`);
  } catch (error) {
    await file.close();
    throw error;
  }
}

function logOf(file: FileHandle): OpenLog {
  return {
    size: async () => (await file.stat()).size,
    read: async (buffer, position) => (await file.read(buffer, 0, buffer.length, position)).bytesRead,
    identity: async () => {
      const { dev, ino } = await file.stat();
      return `${dev}:${ino}`;
    },
    close: () => file.close(),
  };
}
