/** History files: magic number, checksum, and the compressed content. */
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32, deflateRaw, inflateRaw } from 'node:zlib';
import type { HistoryFiles } from '../../history/port.ts';

/** The last character is the version of this layout. */
const MAGIC = Buffer.from('HEUSAGE1', 'latin1');
const HEADER_BYTES = MAGIC.length + 4;
/** About ten times the size that 110 pods need. */
const MAX_FILE_BYTES = 2 * 1024 * 1024;
const MAX_CONTENT_BYTES = 4 * 1024 * 1024;
const NAME = /^\d{1,12}\.history$/;

export function createHistoryFiles(directory: string): HistoryFiles {
  return {
    async list() {
      try {
        const names = await readdir(directory);
        const temporary = names.filter((name) => name.endsWith('.history.tmp'));
        for (const name of temporary) await rm(join(directory, name), { force: true });
        return names.filter((name) => NAME.test(name)).sort();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
        throw error;
      }
    },
    read: (name) => read(join(directory, name)),
    async replace(name, content) {
      const compressed = await promisify(deflateRaw)(content, { level: 6 });
      const checksum = Buffer.alloc(4);
      checksum.writeUInt32BE(crc32(compressed));
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, name);
      const temporary = `${path}.tmp`;
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writev([MAGIC, checksum, compressed]);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      const parent = await open(directory);
      await parent.sync().finally(() => parent.close());
    },
    remove: (name) => rm(join(directory, name), { recursive: true, force: true }),
  };
}

async function read(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r');
  let bytes: Buffer;
  try {
    const { size } = await file.stat();
    if (size > MAX_FILE_BYTES) throw new Error('larger than a history file can be');
    bytes = Buffer.alloc(size);
    const { bytesRead } = await file.read(bytes, 0, size, 0);
    bytes = bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
  if (bytes.length < HEADER_BYTES) throw new Error('incomplete');
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new Error('unknown format');
  const compressed = bytes.subarray(HEADER_BYTES);
  if (crc32(compressed) !== bytes.readUInt32BE(MAGIC.length)) throw new Error('checksum does not match');
  return promisify(inflateRaw)(compressed, { maxOutputLength: MAX_CONTENT_BYTES });
}
