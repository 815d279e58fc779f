/** A client connection to the agent's socket, `agent.sock`. */
import { createConnection, type Socket } from 'node:net';
import { CodedError, messageOf } from '../../base/errors.ts';
import { LineReader } from './lines.ts';

/** Maximum length of a line. All members of a ring fit into one line. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface AgentConnectionHandlers {
  /** Called with all events in one chunk of received data. */
  readonly events?: (events: readonly unknown[]) => void;
  /** Called once when the connection ends for any reason. */
  readonly closed?: () => void;
}

export class AgentConnection {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;

  private constructor(socket: Socket, handlers: AgentConnectionHandlers) {
    this.#socket = socket;
    const reader = new LineReader(MAX_LINE_BYTES);
    socket.on('data', (chunk: Buffer) => {
      try {
        const events = reader.push(chunk).flatMap((line) => this.#take(line));
        if (events.length > 0) handlers.events?.(events);
      } catch (error) {
        socket.destroy(new CodedError('failed', messageOf(error), { cause: error }));
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      const error = new CodedError('not-running', 'the host process closed the connection');
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
      handlers.closed?.();
    });
  }

  /** Connects to the agent. Throws CodedError 'not-running' if no process listens. */
  static open(socket: string, handlers: AgentConnectionHandlers = {}): Promise<AgentConnection> {
    return new Promise((resolve, reject) => {
      const connection = createConnection(socket);
      connection.once('error', (error: NodeJS.ErrnoException) => {
        const absent = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
        reject(
          absent
            ? new CodedError(
                'not-running',
                `no member of a gossip ring runs here (no answer at ${socket}); run systemctl start hyperedge, or name its --root`,
              )
            : new CodedError('failed', `${socket}: ${error.message}`, { cause: error }),
        );
      });
      connection.once('connect', () => resolve(new AgentConnection(connection, handlers)));
    });
  }

  /** Bytes that the peer has not read yet. */
  get unsent(): number {
    return this.#socket.writableLength;
  }

  /** Sends a request. Rejects with the CodedError in the agent's response. */
  request(method: string, params: unknown = {}): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.write(`${JSON.stringify({ id, method, params })}\n`);
    });
  }

  /** Permits the process to exit although the connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(line: string): unknown[] {
    const { id, event, result, error } = JSON.parse(line);
    if (event !== undefined) return [event];
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error !== undefined) waiting?.reject(new CodedError(String(error.code), String(error.message)));
    else waiting?.resolve(result);
    return [];
  }
}

/**
 * Sends one request on its own connection and returns the response. Throws CodedError 'not-running', 'no-answer', or
 * the error in the agent's response.
 */
export async function callAgent<T>(socket: string, method: string, params: unknown, timeoutMs: number): Promise<T> {
  const connection = await AgentConnection.open(socket);
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new CodedError('no-answer', `${socket} did not answer within ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
    });
    return (await Promise.race([connection.request(method, params), late])) as T;
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}
