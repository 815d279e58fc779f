/**
 * The answer to a GET that asks to be upgraded to a WebSocket where the body would be an ordinary stream: logs and
 * watches, as browsers read them. It is written like any other answer; what would be its body travels in messages, and
 * whatever the client sends is passed over. Source: k8s.io/apiserver/pkg/util/wsstream (readers) and
 * pkg/endpoints/handlers/watch.go (HandleWS).
 */
import { type IncomingMessage, type OutgoingHttpHeaders, STATUS_CODES } from 'node:http';
import { type Duplex, Writable } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

const BINARY = 'binary.k8s.io';
const BASE64 = 'base64.binary.k8s.io';
/** A token that a browser brings; not a protocol that could be spoken. */
const TOKEN = 'base64url.bearer.authorization.k8s.io.';
/** The client has nothing to say. */
const MAX_RECEIVED = 64 * 1024;
const NEWLINE = 0x0a;
const PREFIX = 4;

type Message = Buffer | string;
/** Keeps nothing of the chunk: the writer may reuse its memory once it has been sent. */
type Framing = (chunk: Buffer) => Message[];

/** One message a line of JSON. */
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

/** One message a frame, without the length before it: messages have lengths of their own. */
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
 * Has the surface of `ServerResponse` as far as the API server uses it; an answer other than 200 is plain HTTP and ends
 * the connection.
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
    // No other listener: a response whose client disconnected is no failure.
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

  /** The head is on its way as soon as it is written. */
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
      // An empty message tells the client that the stream stands, before anything has been logged.
      this.#webSocket.send(protocol === BASE64 ? '' : Buffer.alloc(0));
    }
  }

  #refuse(message: string): void {
    this.#headers['content-type'] = 'text/plain';
    this.#headers['content-length'] = Buffer.byteLength(message);
    this.#writePlainHead(403);
    this.#socket.end(message);
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
    // The other side is waited for by the library, which ends the connection of one that does not answer.
    if (this.#webSocket !== undefined) this.#webSocket.close(1000);
    else this.#socket.end();
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
