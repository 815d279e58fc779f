import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { endSocket } from './end-socket.ts';

/** Responses to errors of Node's parser; all others are 400. */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', '413 Payload Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
]);

type Response = EventEmitter & { readonly headersSent: boolean };

/**
 * Makes a server for HTTP/1.1 respond to bytes that are not a request. By default, Node closes the connection while the
 * client still sends; the reset discards the response, and over TLS no response is sent at all. `isBusy`: whether a
 * response has started on a connection; the refusal would become a part of it.
 */
export function refuseMalformed(server: EventEmitter, isBusy: (socket: Duplex) => boolean): void {
  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    if (!socket.writable || error.code === 'ECONNRESET' || isBusy(socket)) {
      socket.destroy();
      return;
    }
    const status = REFUSALS.get(error.code ?? '') ?? '400 Bad Request';
    endSocket(socket, `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  });
}

/** Responses in progress on each connection of a server for HTTP/1.1. */
export class ResponsesInProgress {
  readonly #responses = new WeakMap<Duplex, Set<Response>>();

  /** Whether the header of a response has been sent. */
  readonly isBusy = (socket: Duplex): boolean =>
    [...(this.#responses.get(socket) ?? [])].some(({ headersSent }) => headersSent);

  add(socket: Duplex, response: Response): void {
    const responses = this.#responses.get(socket) ?? new Set();
    this.#responses.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  }
}
