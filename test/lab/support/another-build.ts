/** A build of the executable with another digest and the same behaviour. */
import { copyFile, open } from 'node:fs/promises';

/** Length of the trailer after the table of files in the executable, see `src/cli/launch.ts`. */
const TRAILER_BYTES = 8;

/**
 * Copies the executable to `to` with an additional byte before its table of files. The byte only changes the digest.
 */
export async function copyAnotherBuild(executable: string, to: string): Promise<void> {
  await copyFile(executable, to);
  const file = await open(to, 'r+');
  try {
    const { size } = await file.stat();
    const trailer = Buffer.alloc(TRAILER_BYTES);
    await file.read(trailer, 0, TRAILER_BYTES, size - TRAILER_BYTES);
    const end = Buffer.alloc(Number.parseInt(trailer.toString('latin1'), 16) + TRAILER_BYTES);
    await file.read(end, 0, end.length, size - end.length);
    await file.write(Buffer.concat([Buffer.from('\n'), end]), 0, end.length + 1, size);
    await file.chmod(0o755);
  } finally {
    await file.close();
  }
}
