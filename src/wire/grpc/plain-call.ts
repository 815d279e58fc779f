import { messageOf } from '../../base/errors.ts';
import { encodeHeaders, type HeaderField } from '../http2/hpack.ts';
import { ErrorCode } from '../http2/http2-frames.ts';
import type { Http2Stream, StreamEvents } from '../http2/http2-stream.ts';
import { BodyGatherer, type PlainService, plainRefusal, splitTarget } from './plain-http.ts';
import type { HttpAnswer, HttpRequest } from './port.ts';

const EMPTY = Buffer.alloc(0);

/** One plain HTTP request over HTTP/2, which https clients use if the server supports it. */
export class PlainCall implements StreamEvents {
  readonly #stream: Http2Stream;
  readonly #fields: readonly HeaderField[];
  readonly #body = new BodyGatherer();
  readonly #closed: Array<() => void> = [];
  readonly #drained: Array<() => void> = [];
  #over = false;

  constructor(
    stream: Http2Stream,
    fields: readonly HeaderField[],
    plain: PlainService,
    peer: { readonly secure: boolean; readonly commonName: () => string },
  ) {
    this.#stream = stream;
    this.#fields = fields;
    const method = this.#field(':method') ?? 'GET';
    const { path, query } = splitTarget(this.#field(':path') ?? '/');
    const host = this.#field(':authority') ?? this.#field('host') ?? '';
    const refused = plainRefusal(plain.rules, path, host, peer.secure);
    if (refused !== undefined) {
      this.#respond(method, refused);
      return;
    }
    const request: HttpRequest = {
      method,
      path,
      query,
      metadata: (name) => this.#field(name),
      peerCommonName: peer.commonName,
      body: () => this.#body.whole,
      closed: (listener) => this.#whenClosed(listener),
    };
    plain.service.http(request).then(
      (answer) => this.#respond(method, answer),
      (error: unknown) => {
        plain.log.error('request failed', { path, cause: messageOf(error) });
        stream.reset(ErrorCode.internal);
      },
    );
  }

  data(bytes: Buffer, endStream: boolean): void {
    // The bytes are copied, because the connection reuses its read buffer.
    if (bytes.length > 0) this.#body.push(Buffer.from(bytes));
    if (endStream) this.#body.end();
  }

  lost(): void {
    this.#body.fail();
    this.#end();
  }

  drained(): void {
    for (const listener of this.#drained) listener();
  }

  #field(name: string): string | undefined {
    return this.#fields.find((field) => field.name === name)?.value;
  }

  #whenClosed(listener: () => void): void {
    if (this.#over) listener();
    else this.#closed.push(listener);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const listener of this.#closed.splice(0)) listener();
  }

  #respond(method: string, { status, contentType, body, follow }: HttpAnswer): void {
    const head = [
      { name: ':status', value: String(status) },
      { name: 'content-type', value: contentType },
    ];
    if (follow !== undefined && method !== 'HEAD') {
      this.#stream.sendHeaders(encodeHeaders(head), { endStream: false });
      follow({
        write: (text) => this.#stream.sendData([Buffer.from(text)]),
        end: () => {
          this.#stream.end();
          this.#end();
        },
        closed: (listener) => this.#whenClosed(listener),
        drained: (listener) => void this.#drained.push(listener),
      });
      return;
    }
    const bytes = Buffer.from(body);
    const headers = encodeHeaders([...head, { name: 'content-length', value: String(bytes.length) }]);
    if (method === 'HEAD') this.#stream.sendHeaders(headers, { endStream: true });
    else this.#stream.sendAll(headers, EMPTY, bytes, undefined);
    this.#end();
  }
}
