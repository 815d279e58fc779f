/**
 * Plain HTTP beside gRPC on the same port: what is refused whatever it asks for, and requests and answers over
 * HTTP/1.1. `plain-call.ts` has HTTP/2.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { HttpAnswer, RpcService } from '../../components/etcd/port.ts';
import { BytePieces } from './byte-pieces.ts';

export interface PlainRules {
  /** Paths that are answered; undefined: all. */
  readonly paths?: ReadonlySet<string> | undefined;
  /** Without TLS, the only names (`Host` header, without port) under which anything is answered; undefined: any. */
  readonly hosts?: ReadonlySet<string> | undefined;
}

export interface PlainService {
  readonly service: RpcService;
  readonly rules: PlainRules;
  readonly log: Log;
}

/** Of a body: as much as a gRPC message may have and what base64 adds. */
const MAX_BODY = 3 << 20;
const TEXT = 'text/plain; charset=utf-8';

/** Undefined: the request may be asked. `host`: as the client has it, with or without port. */
export function plainRefusal(
  { paths, hosts }: PlainRules,
  path: string,
  host: string,
  secure: boolean,
): HttpAnswer | undefined {
  if (paths !== undefined && !paths.has(path)) return { status: 404, contentType: TEXT, body: '404 page not found\n' };
  if (secure || hosts === undefined) return undefined;
  const name = host.replace(/:\d*$/, '').replaceAll(/[[\]]/g, '').toLowerCase();
  if (hosts.has(name)) return undefined;
  return { status: 421, contentType: TEXT, body: `the Host header "${name}" is not in --host-whitelist\n` };
}

/** Path and query of a request's target. */
export function splitTarget(target: string): { readonly path: string; readonly query: URLSearchParams } {
  const [path = '/'] = target.split('?');
  return { path, query: new URLSearchParams(target.slice(path.length + 1)) };
}

/** Gathers a body until it is too large. */
export class BodyGatherer {
  readonly #whole = Promise.withResolvers<Buffer>();
  readonly #pieces = new BytePieces();
  #tooLarge = false;

  constructor() {
    // The body may never be requested.
    this.#whole.promise.catch(() => {});
  }

  /** Rejects with CodedError 'too-large', or 'closed' when the client leaves first. */
  get whole(): Promise<Buffer> {
    return this.#whole.promise;
  }

  /** `piece` is not changed any more unless it is small. */
  push(piece: Buffer): void {
    if (this.#tooLarge) return;
    this.#pieces.push(piece);
    if (this.#pieces.bytes <= MAX_BODY) return;
    // What is left is read and thrown away: the answer would be lost with the connection otherwise.
    this.#tooLarge = true;
    this.#pieces.clear();
    this.#whole.reject(new CodedError('too-large', `the body is larger than ${MAX_BODY} bytes`));
  }

  end(): void {
    this.#whole.resolve(this.#pieces.take());
  }

  fail(error: Error = new CodedError('closed', 'the client is gone')): void {
    this.#pieces.clear();
    this.#whole.reject(error);
  }
}

/** One request over HTTP/1.1. */
export function answerHttp1(
  request: IncomingMessage,
  response: ServerResponse,
  { service, rules, log }: PlainService,
  peer: { readonly secure: boolean; readonly commonName: () => string },
): void {
  const { path, query } = splitTarget(request.url ?? '/');
  const refused = plainRefusal(rules, path, request.headers.host ?? '', peer.secure);
  if (refused !== undefined) {
    respond(request, response, refused);
    return;
  }
  const asked = {
    method: request.method ?? 'GET',
    path,
    query,
    metadata: (name: string) => request.headers[name]?.toString(),
    peerCommonName: peer.commonName,
    body: () => bodyOf(request),
    closed: (listener: () => void) => void response.once('close', listener),
  };
  service.http(asked).then(
    (given) => respond(request, response, given),
    (error: unknown) => {
      log.error('request failed', { path, cause: messageOf(error) });
      response.writeHead(500).end();
    },
  );
}

function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const body = new BodyGatherer();
  request.on('data', (piece: Buffer) => body.push(piece));
  request.once('end', () => body.end());
  request.once('error', (error) => body.fail(error));
  request.once('close', () => body.fail());
  return body.whole;
}

function respond(request: IncomingMessage, response: ServerResponse, given: HttpAnswer): void {
  const { status, contentType, body, follow } = given;
  if (follow !== undefined && request.method !== 'HEAD') {
    response.writeHead(status, { 'content-type': contentType });
    response.flushHeaders();
    follow({
      write: (text) => response.write(text),
      end: () => void response.end(),
      closed: (listener) => void response.once('close', listener),
      drained: (listener) => void response.on('drain', listener),
    });
    return;
  }
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}
