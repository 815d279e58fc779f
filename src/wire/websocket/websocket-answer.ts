/**
 * A WebSocket response to a GET with an upgrade request where the body would otherwise be a stream: logs and watches,
 * as browsers read them. It is written like any other response. The body is sent in messages, and messages from the
 * client are ignored. Source: k8s.io/apiserver/pkg/util/wsstream (readers) and pkg/endpoints/handlers/watch.go
 * (HandleWS).
 */
import { type IncomingMessage, type OutgoingHttpHeaders, STATUS_CODES } from 'node:http';
import { type Duplex, Writable } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { endSocket } from '../connections/end-socket.ts';

const BINARY = 'binary.k8s.io';
const BASE64 = 'base64.binary.k8s.io';
/** Prefix of an offered subprotocol that contains a browser's bearer token and is no real protocol. */
const TOKEN = 'base64url.bearer.authorization.k8s.io.';
/** Limit for messages from the client, which are ignored. */
const MAX_RECEIVED = 64 * 1024;
const NEWLINE = 0x0a;
const PREFIX = 4;

type Message = Buffer | string;
/** Splits a chunk into messages. It must copy the bytes that it keeps, because the writer may reuse the chunk. */
type Framing = (chunk: Buffer) => Message[];

/** One message per line of JSON. */
function lines(): Framing {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: string[] = [];
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      messages.push(bytes.toString('utf8', from, end + 1));
      from = end + 1;
    }
    rest = Buffer.from(bytes.subarray(from));
    return messages;
  };
}

/** One message per frame, without the frame's length prefix, because WebSocket messages have a length. */
function frames(): Framing {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    let from = 0;
    while (bytes.length - from >= PREFIX) {
      const end = from + PREFIX + bytes.readUInt32BE(from);
      if (end > bytes.length) break;
      messages.push(bytes.subarray(from + PREFIX, end));
      from = end;
    }
    rest = Buffer.from(bytes.subarray(from));
    return messages;
  };
}

const base64 = (): Framing => (chunk) => [chunk.toString('base64')];
const plain = (): Framing => (chunk) => [chunk];

/**
 * Implements the part of `ServerResponse` that the API server uses. A status other than 200 is sent as plain HTTP and
 * ends the connection.
 */
export class WebSocketAnswer extends Writable {
  statusCode = 200;
  headersSent = false;
  readonly #request: IncomingMessage;
  readonly #socket: Duplex;
  readonly #head: Buffer;
  readonly #headers: OutgoingHttpHeaders = {};
  #webSocket: WebSocket | undefined;
  #framing: Framing = plain();

  constructor(request: IncomingMessage, socket: Duplex, head: Buffer) {
    super({ decodeStrings: true });
    this.#request = request;
    this.#socket = socket;
    this.#head = head;
    socket.once('close', () => this.destroy());
    // Prevents an unhandled error: a client that disconnects is no failure of the response.
    this.on('error', () => {});
  }

  setHeader(name: string, value: string | number | readonly string[]): this {
    this.#headers[name.toLowerCase()] = typeof value === 'object' ? [...value] : value;
    return this;
  }

  writeHead(code: number, headers: OutgoingHttpHeaders = {}): this {
    Object.assign(this.#headers, headers);
    this.headersSent = true;
    if (code === 200) this.#switchProtocols();
    else this.#writePlainHead(code);
    return this;
  }

  /** Does nothing, because the head is sent when it is written. */
  flushHeaders(): void {}

  #switchProtocols(): void {
    const type = String(this.#headers['content-type'] ?? '');
    const offered = (this.#request.headers['sec-websocket-protocol'] ?? '')
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '' && !each.startsWith(TOKEN));
    const isWatch = type.startsWith('application/');
    const known = [BINARY, BASE64].find((each) => offered.includes(each));
    const protocol = known ?? (isWatch ? offered[0] : undefined);
    if (protocol === undefined && offered.length > 0) {
      this.#refuse(`requested protocol(s) are not supported: ${offered.join(', ')}; supports ${BINARY}, ${BASE64}`);
      return;
    }
    this.statusCode = 101;
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_RECEIVED,
      handleProtocols: () => protocol ?? false,
    });
    server.handleUpgrade(this.#request, this.#socket, this.#head, (webSocket) => {
      this.#webSocket = webSocket;
      webSocket.on('error', () => this.destroy());
      webSocket.once('close', () => this.destroy());
      webSocket.on('message', () => {});
    });
    if (this.#webSocket === undefined) this.destroy();
    else if (isWatch) this.#framing = type.startsWith('application/json') ? lines() : frames();
    else {
      this.#framing = protocol === BASE64 ? base64() : plain();
      // An empty message informs the client that the stream is open, before there is any output.
      this.#webSocket.send(protocol === BASE64 ? '' : Buffer.alloc(0));
    }
  }

  #refuse(message: string): void {
    this.#headers['content-type'] = 'text/plain';
    this.#headers['content-length'] = Buffer.byteLength(message);
    this.#writePlainHead(403);
    endSocket(this.#socket, message);
    this.destroy();
  }

  #writePlainHead(code: number): void {
    this.statusCode = code;
    const given = Object.entries({ ...this.#headers, connection: 'close' }).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((each) => `${name}: ${String(each)}\r\n`),
    );
    this.#socket.write(`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}\r\n${given.join('')}\r\n`);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const webSocket = this.#webSocket;
    if (webSocket === undefined) {
      this.#socket.write(chunk, (error) => done(error));
      return;
    }
    const messages = this.#framing(chunk);
    const last = messages.pop();
    if (last === undefined) {
      done();
      return;
    }
    for (const message of messages) webSocket.send(message);
    webSocket.send(last, (error) => done(error));
  }

  override _final(done: (error?: Error | null) => void): void {
    // The library waits for the client's close and terminates the connection after a timeout.
    if (this.#webSocket !== undefined) this.#webSocket.close(1000);
    else endSocket(this.#socket);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.writableFinished && !this.#socket.writableEnded) {
      if (this.#webSocket === undefined) this.#socket.destroy();
      else this.#webSocket.terminate();
    }
    done(error);
  }
}
