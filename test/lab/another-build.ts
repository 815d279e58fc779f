/** Another build of the executable that behaves the same. */
import { copyFile, open } from 'node:fs/promises';

/** Length of the table of parts at the end of the executable, see `src/cli/launch.ts`. */
const TRAILER_BYTES = 8;

/** Writes `to`: the executable with one byte more before its table of parts, which changes nothing but its digest. */
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
