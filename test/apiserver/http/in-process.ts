/** An API server without sockets: requests go directly to its frontend, and requests to backends are recorded. */
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { type Duplex, PassThrough, Readable, Writable } from 'node:stream';
import type {
  BackendRequest,
  ConnectionInfo,
  HttpPort,
  HttpResponse,
  ListenOptions,
} from '../../../src/apiserver/port.ts';

/** Header that distinguishes the test's requests from the server's own. */
const MARK = 'x-in-process';

class MemoryResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _: string, done: () => void): void {
    // The sender reuses the buffer after `done`.
    this.#chunks.push(Buffer.from(chunk));
    done();
  }

  writeHead(code: number): this {
    this.statusCode = code;
    this.headersSent = true;
    return this;
  }

  setHeader(): this {
    return this;
  }

  flushHeaders(): void {
    // A stream has started. It is closed after two turns, so that its first data arrives.
    setImmediate(() => setImmediate(() => this.destroy()));
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

export interface Served {
  readonly code: number;
  readonly text: string;
  readonly backend: BackendRequest | undefined;
}

export class InProcess {
  readonly http: HttpPort;
  #listening: ListenOptions | undefined;
  #backend: BackendRequest | undefined;
  readonly #socket = new Socket();

  constructor() {
    const note = (request: BackendRequest): Readable => {
      if (request.headers[MARK] !== undefined) this.#backend = request;
      return Object.assign(Readable.from(['{}']), { statusCode: 200, headers: {}, rawHeaders: [] });
    };
    this.http = {
      listen: async (options) => {
        this.#listening = options;
        return { port: 6443, updateTls: () => {}, retire: () => {}, drain: () => {}, close: async () => {} };
      },
      backends: {
        publicAuthorities: '',
        request: async (request) => note(request) as IncomingMessage,
        upgrade: async (request) => ({ upgraded: false, response: note(request) as IncomingMessage }),
      },
    };
  }

  #request(method: string, url: string, headers: Record<string, string>, body?: string): IncomingMessage {
    const request = new IncomingMessage(this.#socket);
    Object.assign(request, { method, url, httpVersionMajor: 1 });
    Object.assign(request.headers, { host: 'in-process', [MARK]: '1', ...headers });
    if (body !== undefined) request.push(body);
    request.push(null);
    request.complete = true;
    return request;
  }

  async send(
    connection: ConnectionInfo,
    method: string,
    url: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Served> {
    this.#backend = undefined;
    const response = new MemoryResponse();
    const closed = once(response, 'close');
    this.#listening?.request(
      this.#request(method, url, headers, body),
      response as Writable as HttpResponse,
      connection,
    );
    await closed;
    return { code: response.statusCode, text: response.text, backend: this.#backend };
  }

  /** Sends an upgrade request, which the recorded backend rejects. */
  async upgrade(connection: ConnectionInfo, method: string, url: string): Promise<Served> {
    this.#backend = undefined;
    const socket: Duplex = new PassThrough();
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    const request = this.#request(method, url, { connection: 'Upgrade', upgrade: 'SPDY/3.1' });
    this.#listening?.upgrade(request, socket, Buffer.alloc(0), connection, () => {
      throw new Error('no WebSocket was asked for');
    });
    await once(socket, 'end');
    return { code: Number(text.split(' ', 2)[1]), text, backend: this.#backend };
  }
}
