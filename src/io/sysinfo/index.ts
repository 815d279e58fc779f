/**
 * A host's hardware and kernel features, for a short-lived process: reading them takes about a second and runs
 * programs.
 */
import { Worker } from 'node:worker_threads';
import type { Hardware } from './inventory.ts';

/** Throws when the thread fails. `path` is the PATH on which the thread finds lsblk, smartctl, dmidecode and others. */
export async function readHardware(path: string = process.env['PATH'] ?? ''): Promise<Hardware> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    name: 'sysinfo',
    env: { PATH: path, LC_ALL: 'C', LANG: 'C' },
  });
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`sysinfo: the thread ended with ${code} and without an answer`)));
    });
  } finally {
    await worker.terminate();
  }
}
