/**
 * Hardware and kernel features of a host. Only short-lived processes may read them, because that takes about a second
 * and runs programs.
 */
import { Worker } from 'node:worker_threads';
import type { Hardware } from './inventory.ts';

/**
 * Reads the hardware in a worker thread. Throws if the thread fails. `path`: PATH in which the thread finds lsblk,
 * smartctl, dmidecode and other programs.
 */
export async function readHardware(path: string = process.env['PATH'] ?? ''): Promise<Hardware> {
  const worker = new Worker(new URL('./inventory-worker.ts', import.meta.url), {
    name: 'sysinfo',
    env: { PATH: path, LC_ALL: 'C', LANG: 'C' },
  });
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) =>
        reject(new Error(`sysinfo: the worker thread ended with exit code ${code} before it answered`)),
      );
    });
  } finally {
    await worker.terminate();
  }
}
