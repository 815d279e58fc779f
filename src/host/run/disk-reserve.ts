/**
 * Reserved disk space. It is created while enough space is free. If the disk is full when the host process starts, the
 * reserve is released, so that the control plane, logs and cleanup can write. The store has a separate reserve.
 */
import { mkdir, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDiskFull, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';

const MOST_BYTES = 16 << 20;
/** Maximum share of the file system that the reserve may use. It limits the reserve on small file systems. */
const SHARE = 1 / 32;
/** Multiple of the reserve that must be free before the reserve is created. */
const SPARE = 8;
/** Delay of the first check, so that the reserve is not written during the start of the control plane. */
const FIRST_CHECK_MS = 15_000;
const CHECK_MS = 60_000;
const PIECE = 256 << 10;

export interface DiskReserve {
  /** Creates the reserve as soon as there is enough space. Returns a function that ends the attempts. */
  keep(): () => void;
}

interface Room {
  readonly freeBytes: number;
  readonly reserveBytes: number;
}

async function freeSpaceFor(file: string): Promise<Room> {
  await mkdir(dirname(file), { recursive: true, mode: 0o755 });
  const { blocks, bfree, bsize } = await statfs(dirname(file));
  const share = Math.floor((blocks * bsize * SHARE) / PIECE) * PIECE;
  return { freeBytes: bfree * bsize, reserveBytes: Math.min(MOST_BYTES, share) };
}

/** Releases the reserve of an earlier start if the disk is full. */
export async function openDiskReserve(file: string, clock: Clock, log: Log): Promise<DiskReserve> {
  try {
    const { freeBytes, reserveBytes } = await freeSpaceFor(file);
    const isKept = (await stat(file).catch(() => undefined)) !== undefined;
    if (isKept && freeBytes < reserveBytes) {
      await rm(file, { force: true });
      log.warn('disk is full; reserve released', { file, bytes: reserveBytes });
    }
  } catch (error) {
    log.warn('disk reserve not checked', { file, error: messageOf(error) });
  }
  return {
    keep() {
      let isStopped = false;
      let timer: Timer | undefined;
      const check = async (): Promise<void> => {
        const isSetAside = await reserveSpace(file).catch((error: unknown) => {
          if (!isDiskFull(error)) log.warn('disk reserve not written', { file, error: messageOf(error) });
          return false;
        });
        if (!isSetAside && !isStopped) timer = clock.setTimer(CHECK_MS, () => void check());
      };
      timer = clock.setTimer(FIRST_CHECK_MS, () => void check());
      return () => {
        isStopped = true;
        timer?.cancel();
      };
    },
  };
}

/** Writes the reserve. Returns false if there is not enough space. */
async function reserveSpace(file: string): Promise<boolean> {
  const { freeBytes, reserveBytes } = await freeSpaceFor(file);
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size >= reserveBytes) return true;
  if (freeBytes < SPARE * reserveBytes) return false;
  const handle = await open(file, 'w', 0o600);
  try {
    // The content is not compressible, because a compressing file system would store zeros without using space.
    const piece = Buffer.alloc(PIECE);
    for (let i = 0; i < PIECE; i += 4) piece.writeUInt32LE(Math.imul(i + 1, 0x9e37_79b1) >>> 0, i);
    for (let written = 0; written < reserveBytes; written += PIECE) await handle.write(piece);
    await handle.sync();
    return true;
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
