/**
 * The server of `agent.sock`. It gives other processes of this host access to the gossip ring. See
 * `gossip/membership/agent-port.ts` for the protocol. Only the user of this process may connect. All buffers are
 * limited: a client that reads too slowly is disconnected and may reconnect.
 */
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AgentService } from '../membership/agent-port.ts';
import { LineReader } from './lines.ts';

export interface AgentServer {
  stop(): Promise<void>;
}

const MAX_CONNECTIONS = 32;
const MAX_LINE_BYTES = 64 * 1024;
/** Maximum number of unanswered requests of one connection. */
const MAX_PENDING = 16;
/**
 * Maximum number of bytes that one client may leave unread. It exceeds a full table of members with metadata of maximum
 * length, in one response or in one event per member.
 */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/**
 * Listens on the socket at the path `socket`. Replaces a socket file that a killed process has left. Throws CodedError
 * 'listen'.
 */
export async function serveAgent(options: {
  readonly socket: string;
  readonly service: AgentService;
  readonly log: Log;
}): Promise<AgentServer> {
  const { socket, service, log } = options;
  const open = new Set<Socket>();
  const server = createServer((connection) => {
    open.add(connection);
    connection.on('close', () => open.delete(connection));
    serve(connection, service, log);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await rm(socket, { force: true });
  await listenPrivately(server, socket);
  server.on('error', (error) => log.warn('agent socket failed', { error: error.message }));
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of open) connection.destroy();
      }),
  };
}

function listenPrivately(server: Server, socket: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(new CodedError('listen', `cannot listen on ${socket}: ${error.message}`, { cause: error })),
    );
    // The umask gives the socket its mode when it is created. A later chmod would leave it open to other users for a
    // moment.
    const before = process.umask(0o177);
    server.listen(socket, resolve);
    process.umask(before);
  });
}

function serve(connection: Socket, service: AgentService, log: Log): void {
  const session = service.open();
  const reader = new LineReader(MAX_LINE_BYTES);
  let pending = 0;

  const send = (document: unknown): void => {
    if (connection.destroyed) return;
    connection.write(`${JSON.stringify(document)}\n`);
    if (connection.writableLength <= MAX_UNREAD_BYTES) return;
    log.warn('agent client disconnected: the client reads too slowly', { unread: connection.writableLength });
    connection.destroy();
  };

  const answer = async (line: string): Promise<void> => {
    let id: number | null = null;
    try {
      const request = requestOf(line);
      id = request.id;
      if (typeof request.method !== 'string')
        throw new CodedError('bad-request', 'method: give a string such as "members"');
      if (pending >= MAX_PENDING) throw new CodedError('too-many', `at most ${MAX_PENDING} requests at a time`);
      pending++;
      try {
        const result = await session.request(request.method, request.params, (event) => send({ id, event }));
        send({ id, result });
      } finally {
        pending--;
      }
    } catch (error) {
      const code = error instanceof CodedError ? error.code : 'failed';
      send({ id, error: { code, message: messageOf(error) } });
    }
  };

  connection.on('data', (chunk: Buffer) => {
    try {
      for (const line of reader.push(chunk)) if (line.trim() !== '') void answer(line);
    } catch (error) {
      send({ id: null, error: { code: 'line-too-long', message: messageOf(error) } });
      connection.destroySoon();
      connection.removeAllListeners('data');
      connection.resume();
    }
  });
  connection.on('error', () => connection.destroy());
  connection.on('close', () => session.closed());
}

interface Request {
  readonly id: number;
  readonly method: unknown;
  readonly params: unknown;
}

function requestOf(line: string): Request {
  let document: unknown;
  try {
    document = JSON.parse(line);
  } catch (error) {
    throw new CodedError('bad-request', 'the line is not JSON', { cause: error });
  }
  const {
    id,
    method,
    params = {},
  }: { id?: unknown; method?: unknown; params?: unknown } = typeof document === 'object' && document !== null
    ? document
    : {};
  if (typeof id !== 'number' || !Number.isSafeInteger(id))
    throw new CodedError('bad-request', 'id: give a whole number; the response repeats it');
  return { id, method, params };
}
