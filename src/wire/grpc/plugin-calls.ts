/** Shared code of the clients and servers on the kubelet's plug-in sockets. */
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Reader, WireError, Writer } from '../protobuf/protobuf.ts';
import { Channel } from './channel.ts';
import { createRpcListener } from './listener.ts';
import { RpcError } from './messages.ts';
import { RpcCode, type RpcService, type StreamCall, type StreamHandler } from './port.ts';

/** grpc-go's default limit. A longer response fails the call. */
export const MAX_MESSAGE_BYTES = 4 << 20;
/** Maximum number of connections. A host has few plug-ins. */
const MAX_CONNECTIONS = 64;
/** Limit for the fields of one message including nested ones: five times what 4096 devices need. */
const MAX_FIELDS = 1 << 17;

export const EMPTY: Buffer = Buffer.alloc(0);

export function openChannel(socket: string, clock: Clock, log: Log): Channel {
  const endpoint = `unix://${pathToFileURL(socket).pathname}`;
  return new Channel({ endpoints: [endpoint], maxMessageBytes: MAX_MESSAGE_BYTES, clock, log });
}

/** Rewrites the channel's error messages, which mention the store, for plug-ins. */
export function pluginError(error: unknown, socket: string): Error {
  const message = messageOf(error).replace(/^store (is unavailable|did not answer in time)/, 'plug-in $1');
  return new RpcError(error instanceof RpcError ? error.code : RpcCode.unknown, `${socket}: ${message}`);
}

export async function callPluginMethod(
  channel: Channel,
  socket: string,
  path: string,
  message: Buffer,
  timeoutMs: number,
): Promise<Buffer> {
  try {
    return await channel.unary(path, message, timeoutMs);
  } catch (error) {
    throw pluginError(error, socket);
  }
}

/**
 * Calls `on` for each field. `on` must read or skip the field; for a nested message it calls `fields`. Throws WireError
 * if the message has too many fields.
 */
export function fields(message: Uint8Array, on: (field: number, reader: Reader) => void): void {
  const reader = new Reader(message);
  if (depth === 0) fieldsRead = 0;
  depth += 1;
  try {
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      fieldsRead += 1;
      if (fieldsRead > MAX_FIELDS) throw new WireError(`message has more than ${MAX_FIELDS} fields`);
      on(field, reader);
    }
  } finally {
    depth -= 1;
  }
}

/** State of the message that is being read. Reading is synchronous, so one variable is enough. */
let depth = 0;
let fieldsRead = 0;

/** Decodes an entry of a map of strings. */
export function entry(message: Uint8Array): [string, string] {
  const pair: [string, string] = ['', ''];
  fields(message, (field, reader) => {
    if (field === 1 || field === 2) pair[field - 1] = reader.string();
    else reader.skip();
  });
  return pair;
}

export function strings(writer: Writer, field: number, values: readonly string[]): Writer {
  for (const value of values) writer.message(field, Buffer.from(value));
  return writer;
}

export const newMessage = (): Writer => new Writer(256);

type Method = (message: Uint8Array) => Buffer;

/**
 * Serves the unary methods of one service on a socket. An Error thrown by a method becomes the status of the response.
 */
export async function serveUnary(
  path: string,
  service: string,
  methods: Readonly<Record<string, Method>>,
  log: Log,
): Promise<{ close(): Promise<void> }> {
  const listener = createRpcListener({
    host: '',
    port: 0,
    path,
    log,
    httpPaths: new Set<string>(),
    limits: { authenticated: MAX_CONNECTIONS },
  });
  const rpc: RpcService = {
    hasService: (name) => name === service,
    unary: (called) => {
      const [, name = '', method = ''] = called.split('/');
      const run = name === service && Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (run === undefined) return undefined;
      return (message, request) => {
        try {
          request.reply(run(message));
        } catch (error) {
          const code = error instanceof RpcError ? (error.code as RpcCode) : RpcCode.invalidArgument;
          request.fail(code, messageOf(error));
        }
      };
    },
    stream: (): ((streaming: StreamCall) => StreamHandler) | undefined => undefined,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  };
  await listener.listen(rpc);
  return { close: () => listener.close(0) };
}
