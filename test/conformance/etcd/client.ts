/**
 * A gRPC client for tests with a single connection. It uses `node:http2` directly, independently of `src/wire/grpc`.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type SecureClientSessionOptions } from 'node:http2';
import { decode, encode, METHODS, type Method, type Request, type Response } from './messages.ts';

export class StatusError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'StatusError';
    this.code = code;
  }
}

const OVERDUE_MS = 15_000;

/** Messages of one stream in order, and its final status. */
export class Conversation<M extends Method> {
  readonly received: Response<M>[] = [];
  status: StatusError | undefined;
  readonly #method: M;
  readonly #stream: ClientHttp2Stream;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #wanted = 5;
  #used = 0;
  #wake: () => void = () => {};
  #over: (status: StatusError) => void = () => {};
  readonly #ended = new Promise<StatusError>((resolve) => {
    this.#over = (status) => {
      this.status ??= status;
      this.#wake();
      resolve(this.status);
    };
  });

  constructor(method: M, stream: ClientHttp2Stream) {
    this.#method = method;
    this.#stream = stream;
    const ended = (fields: Record<string, unknown>): void => {
      if (fields['grpc-status'] === undefined) return;
      const message = decodeURIComponent(String(fields['grpc-message'] ?? ''));
      this.#over(new StatusError(Number(fields['grpc-status']), message));
    };
    stream.on('response', ended);
    stream.on('trailers', ended);
    stream.on('error', (error) => this.#over(new StatusError(14, error.message)));
    stream.on('close', () => this.#over(new StatusError(14, 'the stream was closed')));
    stream.on('data', (chunk: Buffer) => this.#push(chunk));
  }

  send(request: Request<M>): this {
    const body = encode(METHODS[this.#method][0], request as object);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    this.#stream.write(Buffer.concat([head, body]));
    return this;
  }

  /** Next message. Throws the StatusError with which the stream ended, if there is none. */
  async next(withinMs = OVERDUE_MS): Promise<Response<M>> {
    await this.until(() => this.received.length > this.#used, withinMs);
    const message = this.received[this.#used];
    this.#used += 1;
    return message as Response<M>;
  }

  async until(condition: () => boolean, withinMs = OVERDUE_MS): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!condition()) {
      if (this.status !== undefined) throw this.status;
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`${this.#method}: nothing within ${withinMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Resolves with the status when the stream has ended. */
  async ended(withinMs = OVERDUE_MS): Promise<StatusError> {
    const timer = setTimeout(() => this.#over(new StatusError(4, `${this.#method} does not end`)), withinMs);
    const status = await this.#ended;
    clearTimeout(timer);
    return status;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  end(): void {
    this.#stream.end();
  }

  cancel(): void {
    this.#stream.close(8);
  }

  #push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#wanted) {
      const all = Buffer.concat(this.#pieces);
      const end = 5 + all.readUInt32BE(1);
      this.#wanted = end;
      this.#pieces = [all];
      if (all.length < end) return;
      this.received.push(decode(METHODS[this.#method][1], all.subarray(5, end)) as Response<M>);
      this.#pieces = [all.subarray(end)];
      this.#bytes = all.length - end;
      this.#wanted = 5;
      this.#wake();
    }
  }
}

export class EtcdClient {
  readonly #session: ClientHttp2Session;
  /** Authentication token of `Authenticate`, sent with each call. */
  token: string | undefined;

  /** `endpoint` is `http://host:port`, or `https://host:port` with `tls`. */
  constructor(endpoint: string, tls: Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key'> = {}) {
    this.#session = connect(endpoint, { ...tls, settings: { initialWindowSize: 1 << 20 } });
    this.#session.on('error', () => {});
    this.#session.on('connect', () => this.#session.setLocalWindowSize(16 << 20));
  }

  open<M extends Method>(method: M): Conversation<M> {
    const stream = this.#session.request(
      {
        ':method': 'POST',
        ':path': `/${method}`,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...(this.token === undefined ? {} : { token: this.token }),
      },
      { endStream: false },
    );
    return new Conversation(method, stream);
  }

  async call<M extends Method>(method: M, request: Request<M>): Promise<Response<M>> {
    const conversation = this.open(method).send(request);
    conversation.end();
    const status = await conversation.ended();
    if (status.code !== 0) throw status;
    return conversation.next();
  }

  range(request: Request<'etcdserverpb.KV/Range'>): Promise<Response<'etcdserverpb.KV/Range'>> {
    return this.call('etcdserverpb.KV/Range', request);
  }

  put(request: Request<'etcdserverpb.KV/Put'>): Promise<Response<'etcdserverpb.KV/Put'>> {
    return this.call('etcdserverpb.KV/Put', request);
  }

  delete(request: Request<'etcdserverpb.KV/DeleteRange'>): Promise<Response<'etcdserverpb.KV/DeleteRange'>> {
    return this.call('etcdserverpb.KV/DeleteRange', request);
  }

  txn(request: Request<'etcdserverpb.KV/Txn'>): Promise<Response<'etcdserverpb.KV/Txn'>> {
    return this.call('etcdserverpb.KV/Txn', request);
  }

  compact(revision: number, physical = true): Promise<Response<'etcdserverpb.KV/Compact'>> {
    return this.call('etcdserverpb.KV/Compact', { revision, physical });
  }

  grant(ID: bigint, TTL: number): Promise<Response<'etcdserverpb.Lease/LeaseGrant'>> {
    return this.call('etcdserverpb.Lease/LeaseGrant', { ID, TTL });
  }

  watch(): Conversation<'etcdserverpb.Watch/Watch'> {
    return this.open('etcdserverpb.Watch/Watch');
  }

  close(): void {
    this.#session.destroy();
  }
}
