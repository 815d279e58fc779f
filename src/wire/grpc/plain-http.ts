/**
 * Plain HTTP beside gRPC on the same port: the rules for rejecting requests, and HTTP/1.1. `plain-call.ts` has HTTP/2.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { BytePieces } from './byte-pieces.ts';
import type { HttpAnswer, RpcService } from './port.ts';

export interface PlainRules {
  /** Paths that are served; undefined means all. */
  readonly paths?: ReadonlySet<string> | undefined;
  /** Without TLS: the only `Host` header names (without port) that are served; undefined means any. */
  readonly hosts?: ReadonlySet<string> | undefined;
}

export interface PlainService {
  readonly service: RpcService;
  readonly rules: PlainRules;
  readonly log: Log;
}

/** Limit for a request body: the limit of a gRPC message plus the overhead of base64. */
const MAX_BODY = 3 << 20;
const TEXT = 'text/plain; charset=utf-8';

/**
 * Returns the rejection of a request, or undefined if it may be served. `host`: the `Host` header, with or without
 * port.
 */
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

export function splitTarget(target: string): { readonly path: string; readonly query: URLSearchParams } {
  const [path = '/'] = target.split('?');
  return { path, query: new URLSearchParams(target.slice(path.length + 1)) };
}

/** Collects a request body up to a size limit. */
export class BodyGatherer {
  readonly #whole = Promise.withResolvers<Buffer>();
  readonly #pieces = new BytePieces();
  #tooLarge = false;

  constructor() {
    // Prevents an unhandled rejection if the body is never requested.
    this.#whole.promise.catch(ignore('the reader of the body gets the error'));
  }

  /** Rejects with CodedError 'too-large', or 'closed' if the client disconnects first. */
  get whole(): Promise<Buffer> {
    return this.#whole.promise;
  }

  /** Appends `piece`. Small pieces are copied; the caller must not change a large piece afterwards. */
  push(piece: Buffer): void {
    if (this.#tooLarge) return;
    this.#pieces.push(piece);
    if (this.#pieces.bytes <= MAX_BODY) return;
    // The rest is read and discarded. Otherwise the connection would be reset and the response lost.
    this.#tooLarge = true;
    this.#pieces.clear();
    this.#whole.reject(new CodedError('too-large', `the body is larger than ${MAX_BODY} bytes`));
  }

  end(): void {
    this.#whole.resolve(this.#pieces.take());
  }

  fail(error: Error = new CodedError('closed', 'the client has disconnected')): void {
    this.#pieces.clear();
    this.#whole.reject(error);
  }
}

/** Serves one HTTP/1.1 request. */
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
  const requested = {
    method: request.method ?? 'GET',
    path,
    query,
    metadata: (name: string) => request.headers[name]?.toString(),
    peerCommonName: peer.commonName,
    body: () => bodyOf(request),
    closed: (listener: () => void) => void response.once('close', listener),
  };
  service.http(requested).then(
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
