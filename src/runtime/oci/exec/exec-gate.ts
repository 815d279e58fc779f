/**
 * Starts a created container as `runc start` does, without running runc: the first process waits until the fifo in the
 * container's state directory is read and then executes the container's program. Source: runc's libcontainer,
 * `Container.exec` and `execFifo`.
 */

import { constants, open as openFd } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ignore } from '../../../base/errors.ts';

const POLL_MS = 100;
const open = promisify(openFd);

/**
 * Returns false if there is no fifo (the container has been started) or the process exited before reading it. The
 * caller then runs the runtime to get its error message.
 */
export async function openGate(stateDirectory: string, isAlive: () => Promise<boolean>): Promise<boolean> {
  const path = join(stateDirectory, 'exec.fifo');
  let fd: number;
  try {
    if (!(await stat(path)).isFIFO()) return false;
    // O_NONBLOCK opens the fifo before the process has opened its end.
    fd = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  if (!(await isWritten(new Socket({ fd, readable: true, writable: false }), isAlive))) return false;
  await unlink(path).catch(ignore('the runtime removes it with the container'));
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
        // Output that the process wrote before its end is read first.
        if (!alive) setImmediate(() => setImmediate(() => settle(false)));
      });
    }, POLL_MS);
    fifo.once('data', () => settle(true));
    fifo.on('error', () => settle(false));
    fifo.on('close', () => settle(false));
  });
}
