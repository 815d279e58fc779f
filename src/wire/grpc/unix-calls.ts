/** Unary calls to a server on a Unix socket of this host. */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Channel } from './channel.ts';
import { RpcError } from './messages.ts';
import { MAX_MESSAGE_BYTES } from './plugin-calls.ts';
import { RpcCode } from './port.ts';

export interface UnixCallOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** Opens a connection for one call. Throws RpcError; 'unavailable' immediately if no process listens. */
export async function callOnSocket(
  socket: string,
  path: string,
  message: Buffer,
  timeoutMs: number,
  options: UnixCallOptions,
): Promise<Buffer> {
  const directory = Buffer.byteLength(socket) > MAX_PATH_BYTES ? await opened(dirname(socket)) : undefined;
  try {
    const near = directory === undefined ? socket : `/proc/self/fd/${directory.fd}/${basename(socket)}`;
    await answers(near);
    const endpoints = [`unix://${pathToFileURL(near).pathname}`];
    const channel = new Channel({ endpoints, maxMessageBytes: MAX_MESSAGE_BYTES, ...options });
    try {
      return await channel.unary(path, message, timeoutMs);
    } finally {
      channel.close();
    }
  } finally {
    await directory?.close();
  }
}

/**
 * Longest path in a socket address (unix(7)). A socket with a longer path is addressed through its opened directory.
 */
const MAX_PATH_BYTES = 107;

const opened = (directory: string): Promise<FileHandle> =>
  open(directory, constants.O_RDONLY | constants.O_DIRECTORY).catch((error: unknown) => {
    throw new RpcError(RpcCode.unavailable, `connection error: desc = "transport: ${messageOf(error)}"`);
  });

/**
 * Checks that a process listens. A channel would retry until its deadline, but a driver that has stopped must be an
 * immediate error.
 */
function answers(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', (error) => {
      reject(new RpcError(RpcCode.unavailable, `connection error: desc = "transport: ${messageOf(error)}"`));
    });
  });
}
