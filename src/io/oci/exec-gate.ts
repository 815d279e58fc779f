/**
 * What `runc start` does, without a process: the first process of a created container waits until the fifo in the
 * container's state directory is read, and runs the container's program then. Source: runc's libcontainer,
 * `Container.exec` and `execFifo`.
 */
import { constants, open as openFd } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const LOOK_MS = 100;
const open = promisify(openFd);

/**
 * False: there is no such fifo (the container has been started), or the process ended before it was read. The runtime
 * itself then has the words for why not.
 */
export async function openGate(stateDirectory: string, isAlive: () => Promise<boolean>): Promise<boolean> {
  const path = join(stateDirectory, 'exec.fifo');
  let fd: number;
  try {
    if (!(await stat(path)).isFIFO()) return false;
    // Without a writer this does not wait: the process may not have got there yet.
    fd = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  if (!(await isWritten(new Socket({ fd, readable: true, writable: false }), isAlive))) return false;
  await unlink(path).catch(() => {});
  return true;
}

function isWritten(fifo: Socket, isAlive: () => Promise<boolean>): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (written: boolean): void => {
      clearInterval(timer);
      fifo.destroy();
      resolve(written);
    };
    const timer = setInterval(() => {
      void isAlive().then((alive) => {
        // What it wrote before its end is read first.
        if (!alive) setImmediate(() => setImmediate(() => settle(false)));
      });
    }, LOOK_MS);
    fifo.once('data', () => settle(true));
    fifo.on('error', () => settle(false));
    fifo.on('close', () => settle(false));
  });
}
