/** An HTTP/1.1 client over TLS that sends arbitrary bytes, which HTTP libraries do not allow. */
import { connect, type TLSSocket } from 'node:tls';

export interface Identity {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Reply {
  readonly code: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** False if the connection ended, or was closed here, before the body was complete. */
  readonly complete: boolean;
}

export class Unanswered extends Error {}

export interface Peer {
  readonly port: number;
  readonly ca: string;
}

/** Most connections are closed by the server intentionally. Session resumption saves most of the handshake. */
const sessions = new WeakMap<object, Buffer>();

export function open(peer: Peer, identity: Identity | undefined, alpn: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const session = sessions.get(identity ?? peer);
    const socket = connect({
      host: '127.0.0.1',
      port: peer.port,
      ca: peer.ca,
      ALPNProtocols: [alpn],
      ...(identity === undefined ? {} : { cert: identity.certPem, key: identity.keyPem }),
      ...(session === undefined ? {} : { session }),
    });
    socket.on('session', (ticket: Buffer) => sessions.set(identity ?? peer, ticket));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

const SWITCHED = 101;
const EMPTY = Buffer.alloc(0);
const HEAD_END = '\r\n\r\n';

interface Head {
  readonly code: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly length: number;
}

function parseHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [status = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) /.exec(status);
  if (match === null) throw new Error(`not a status line: ${JSON.stringify(status.slice(0, 100))}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new Error(`not a header: ${JSON.stringify(line.slice(0, 100))}`);
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { code: Number(match[1]), headers, length: end + HEAD_END.length };
}

/** Decodes the received part of a chunked body. `end` is undefined while the body is incomplete. */
function unchunk(bytes: Buffer): { readonly body: Buffer; readonly end: number | undefined } {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return { body: Buffer.concat(parts), end: undefined };
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    if (!Number.isFinite(size)) throw new Error('not a chunk');
    const from = line + 2;
    if (bytes.length < from + size + 2) return { body: Buffer.concat(parts), end: undefined };
    if (size === 0) return { body: Buffer.concat(parts), end: from + 2 };
    parts.push(bytes.subarray(from, from + size));
    at = from + size + 2;
  }
}

/** A connection for sequential requests that is reopened when it has ended. */
export class Channel {
  readonly #peer: Peer;
  readonly #identity: Identity | undefined;
  #socket: TLSSocket | undefined;

  constructor(peer: Peer, identity: Identity | undefined) {
    this.#peer = peer;
    this.#identity = identity;
  }

  /**
   * Sends `bytes` and reads one response. `openEnded`: the data of 60 ms after the headers are sufficient. Throws
   * `Unanswered` if there is no response within `withinMs` or the connection ends without one.
   */
  async exchange(bytes: Buffer, head: boolean, openEnded: boolean, withinMs: number): Promise<Reply> {
    // The server may close a kept connection just as it is reused, but not a new one.
    const kept = this.#socket !== undefined && !this.#socket.destroyed && this.#socket.readable;
    if (!kept) this.#socket = await open(this.#peer, this.#identity, 'http/1.1');
    try {
      return await this.#once(this.#socket as TLSSocket, bytes, head, openEnded, withinMs);
    } catch (error) {
      this.close();
      if (!kept || !(error instanceof Unanswered) || !error.message.startsWith('ended')) throw error;
      this.#socket = await open(this.#peer, this.#identity, 'http/1.1');
      return await this.#once(this.#socket, bytes, head, openEnded, withinMs);
    }
  }

  #once(socket: TLSSocket, bytes: Buffer, isHead: boolean, openEnded: boolean, withinMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      let received: Buffer = EMPTY;
      let parsed: Head | undefined;
      let patience: NodeJS.Timeout | undefined;
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        clearTimeout(patience);
        socket.off('data', take);
        socket.off('close', ended);
        finish();
      };
      const answer = (body: Buffer, complete: boolean): void => {
        const head = parsed as Head;
        settle(() => {
          if (!complete || head.headers.get('connection') === 'close') this.close();
          resolve({ code: head.code, headers: head.headers, body, complete });
        });
      };
      const fail = (error: Error): void => settle(() => reject(error));
      const whatCame = (): Buffer => {
        const rest = received.subarray(parsed?.length ?? 0);
        return parsed?.headers.get('transfer-encoding') === 'chunked' ? unchunk(rest).body : rest;
      };
      const judge = (): void => {
        parsed ??= parseHead(received);
        while (parsed !== undefined && parsed.code < 200 && parsed.code !== SWITCHED) {
          received = received.subarray(parsed.length);
          parsed = parseHead(received);
        }
        if (parsed === undefined) return;
        const rest = received.subarray(parsed.length);
        // The response to a HEAD of an endless resource never ends and has no body.
        const endless = parsed.code === SWITCHED || (isHead && openEnded);
        if (endless) answer(isHead ? EMPTY : rest, false);
        else if (isHead || parsed.code === 204 || parsed.code === 304) exactly(rest, 0);
        else if (parsed.headers.has('content-length')) exactly(rest, Number(parsed.headers.get('content-length')));
        else if (parsed.headers.get('transfer-encoding') === 'chunked') {
          const { body, end } = unchunk(rest);
          if (end !== undefined) answer(body, true);
          else if (openEnded) patience ??= setTimeout(() => answer(whatCame(), false), 60);
        }
      };
      /** Unexpected bytes would be the beginning of a smuggled response. */
      const exactly = (rest: Buffer, length: number): void => {
        if (rest.length > length)
          throw new Error(`bytes after the answer: ${rest.subarray(length).toString('latin1').slice(0, 80)}`);
        if (rest.length === length) answer(rest, true);
      };
      // Large responses arrive in many chunks, which are joined when there are enough.
      let pieces: Buffer[] = [];
      let pending = 0;
      const take = (chunk: Buffer): void => {
        pieces.push(chunk);
        pending += chunk.length;
        const length = parsed?.headers.get('content-length');
        if (length !== undefined && received.length + pending < (parsed?.length ?? 0) + Number(length)) return;
        received = Buffer.concat([received, ...pieces]);
        pieces = [];
        pending = 0;
        try {
          judge();
        } catch (error) {
          fail(error as Error);
        }
      };
      const ended = (): void => {
        if (parsed === undefined) {
          fail(new Unanswered('ended without an answer'));
          return;
        }
        const untilClosed = !parsed.headers.has('content-length') && !parsed.headers.has('transfer-encoding');
        answer(whatCame(), untilClosed);
      };
      const timer = setTimeout(() => fail(new Unanswered(`no answer within ${withinMs} ms`)), withinMs);
      socket.on('data', take);
      socket.on('close', ended);
      socket.write(bytes);
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}
