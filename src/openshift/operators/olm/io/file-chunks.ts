import { openFile } from './tree.ts';

const CHUNK = 64 * 1024;

/** Reads the first `sizeBytes` of a file. The size is a limit, because the file may grow while it is read. */
export async function* chunksOf(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const file = await openFile(path);
  try {
    const buffer = Buffer.allocUnsafeSlow(CHUNK);
    for (let at = 0; at < sizeBytes; ) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, sizeBytes - at), at);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}
