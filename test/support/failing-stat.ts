/** Simulates a disk whose files can be opened but not inspected. */
import { open, readdir, readlink } from 'node:fs/promises';
import { mock } from 'node:test';

/** Runs `act` while `fstat` of each opened file fails. Returns how many descriptors of `path` are open afterwards. */
export async function openAfterFailingStat(path: string, act: () => Promise<unknown>): Promise<number> {
  const file = await open('/proc/self/exe', 'r');
  const stat = mock.method(Object.getPrototypeOf(file), 'stat', async () => {
    throw new Error('EIO: i/o error, fstat');
  });
  await file.close();
  try {
    await act();
  } finally {
    stat.mock.restore();
  }
  return openDescriptors(path);
}

/** Number of descriptors of this process that refer to `path`. */
export async function openDescriptors(path: string): Promise<number> {
  const numbers = await readdir('/proc/self/fd');
  const paths = await Promise.all(numbers.map((number) => readlink(`/proc/self/fd/${number}`).catch(() => '')));
  return paths.filter((each) => each === path).length;
}
