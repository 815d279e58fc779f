/** One HTTP request and its response. */
import { gzip } from 'node:zlib';
import type { KubeObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { Placed } from '../../base/concurrency/running-count.ts';
import type { AuditRecord } from '../audit/trail.ts';
import type { FlowRequest, Flows } from '../core/flow-control/index.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../port.ts';
import { renderObject } from './render-object.ts';
import { isTrue, type RequestInfo } from './request-info.ts';

/** Minimum size of a compressed body in bytes, as in upstream. */
const GZIP_FROM = 128 * 1024;
const MAX_WARNINGS_BYTES = 4096;
/** Clients that get indented JSON. Source: k8s.io/apiserver/pkg/endpoints/handlers/negotiation `isPrettyPrint`. */
const PEOPLE = /^(?:curl|Wget|Mozilla\/5\.0)/;
const NO_QUERY = new URLSearchParams();
const SHORT_BODY = 8 * 1024;

export class Exchange implements Placed {
  place = -1;
  /** Deadline in monotonic milliseconds. It does not apply to `longRunning` requests. */
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly connection: ConnectionInfo;
  info: RequestInfo;
  readonly startedMs: number;
  /** The user, after authentication and impersonation. */
  user: UserInfo;
  /** The user before impersonation. Undefined before authentication. */
  authenticated: UserInfo | undefined;
  /** The verb that authorized a constrained impersonation; '' for the legacy verb. */
  impersonation = '';
  /** Audit record of the request. Undefined if the request is not audited. */
  audit: AuditRecord | undefined;
  /** Flow schema and priority level of the request. */
  flows: Flows<Exchange> | undefined;
  /** The state of the request in flow control. */
  flow: FlowRequest<Exchange> | undefined;
  /** Removes a watch from the watch tracker, which estimates the cost of writes. */
  forgetWatch: (() => void) | undefined;
  /** Callback of flow control, called when a watch has started. */
  initialised: (() => void) | undefined;
  readonly warnings: string[] = [];
  /** Size of an uncompressed response body. Undefined if it is proxied or not counted. */
  sentBytes: number | undefined;
  /** Size of a compressed response body. Never rejects; stays pending if the client disconnects. */
  compressedBytes: Promise<number> | undefined;
  /** True for requests that do not end by themselves, such as watches and logs. */
  longRunning = false;
  cacheControl = 'no-cache, private';
  #abort: AbortController | undefined;
  #discarding = false;
  #answered = false;

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    connection: ConnectionInfo,
    info: RequestInfo,
    user: UserInfo,
    startedMs: number,
  ) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    this.info = info;
    this.user = user;
    this.startedMs = startedMs;
  }

  /**
   * Called when a watch has started. Frees data that only the start needed, because thousands of watches may stay open
   * for an hour.
   */
  begun(): void {
    const { initialised, request } = this;
    this.initialised = undefined;
    initialised?.();
    if (this.info.query.size > 0) this.info = { ...this.info, query: NO_QUERY };
    delete request.headers.authorization;
    request.rawHeaders.length = 0;
  }

  /** Signal that aborts when the client disconnects. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = new AbortController();
      this.#abort = abort;
      this.response.once('close', () => abort.abort());
    }
    return this.#abort.signal;
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** Discards the request body unread if its announced length is at most `limit`. Otherwise returns false. */
  discardBody(limit: number): boolean {
    const { request } = this;
    if (request.complete) return true;
    const length = request.headers['content-length'];
    if (length === undefined || !(Number(length) <= limit)) return false;
    this.#discarding = true;
    request.resume();
    return true;
  }

  /** Headers of every response. HTTP/1.1 connections are kept open unless the request body was left unread. */
  headers(contentType: string): Record<string, string | number | string[]> {
    const headers: Record<string, string | number | string[]> = {
      'content-type': contentType,
      'cache-control': this.cacheControl,
    };
    const { flows } = this;
    if (flows !== undefined) {
      headers['X-Kubernetes-PF-FlowSchema-UID'] = flows.uid;
      headers['X-Kubernetes-PF-PriorityLevel-UID'] = flows.level.uid;
    }
    if (this.warnings.length > 0) headers['warning'] = warningHeaders(this.warnings);
    return headers;
  }

  /**
   * Reason to indent JSON: the parameter `pretty`, or, as a guess, a user agent of browsers and command-line tools, as
   * upstream.
   */
  get indents(): 'requested' | 'guessed' | undefined {
    const { query } = this.info;
    const pretty = query.size > 0 ? query.get('pretty') : null;
    if (pretty !== null && pretty !== '') return isTrue(pretty) ? 'requested' : undefined;
    return PEOPLE.test(this.header('user-agent') ?? '') ? 'guessed' : undefined;
  }

  sendJson(code: number, value: unknown): void {
    this.sendBytes(code, Buffer.from(`${JSON.stringify(value)}\n`));
  }

  /** Sends an object or list of a built-in kind, or a Status, in the format that the client prefers. */
  sendObject(code: number, object: KubeObject): void {
    const { body, contentType } = renderObject(this.request.headers.accept, object);
    const indented = contentType === 'application/json' && this.indents !== undefined;
    this.sendBytes(code, indented ? Buffer.from(`${JSON.stringify(object, null, 2)}\n`) : body, contentType);
  }

  sendText(code: number, text: string): void {
    this.sendBytes(code, Buffer.from(text), 'text/plain; charset=utf-8');
  }

  /** Sends a complete body. Large bodies are compressed on the thread pool if the client accepts gzip. */
  sendBytes(code: number, body: Buffer, contentType = 'application/json'): void {
    const { response } = this;
    if (this.#answered || response.headersSent || response.destroyed) return;
    this.#answered = true;
    this.sentBytes = body.length;
    if (this.audit === undefined) {
      this.#send(code, body, contentType);
      return;
    }
    if (this.audit.logsResponses && contentType === 'application/json') this.audit.answered(body);
    const recorded = this.recorded(code);
    if (recorded === undefined) this.#send(code, body, contentType);
    else void recorded.then(() => this.#send(code, body, contentType));
  }

  /**
   * Records the response code in the audit log. If the result is asynchronous, the response must not end before it
   * resolves. It never rejects.
   */
  recorded(code: number): Promise<unknown> | undefined {
    const recorded = this.audit?.complete(code);
    if (recorded !== undefined) this.response.statusCode = code;
    return recorded;
  }

  /**
   * Like `recorded`, for streamed responses. Without a blocking audit sink, the end is recorded when the stream ends.
   */
  recordedFirst(code: number): Promise<unknown> | undefined {
    return this.audit?.blocks === true ? this.recorded(code) : undefined;
  }

  #send(code: number, body: Buffer, contentType: string): void {
    const { response } = this;
    if (response.headersSent || response.destroyed) return;
    const headers = this.headers(contentType);
    if (body.length >= GZIP_FROM && acceptsGzip(this.request)) {
      let counted: (bytes: number) => void = () => {};
      this.compressedBytes = new Promise((resolve) => {
        counted = resolve;
      });
      gzip(body, { level: 1 }, (error, zipped) => {
        counted(error === null ? zipped.length : body.length);
        if (response.headersSent || response.destroyed) return;
        headers['vary'] = 'Accept-Encoding';
        if (error === null) headers['content-encoding'] = 'gzip';
        const payload = error === null ? zipped : body;
        headers['content-length'] = payload.length;
        response.writeHead(code, headers);
        this.#end(payload);
      });
      return;
    }
    headers['content-length'] = body.length;
    const unread = !this.request.complete && !this.#discarding;
    if (unread && this.request.httpVersionMajor < 2 && this.request.method !== 'GET') {
      headers['connection'] = 'close';
    }
    response.writeHead(code, headers);
    this.#end(body);
  }

  #end(body: Buffer): void {
    const { request, response } = this;
    if (request.method === 'HEAD') response.end();
    // A latin1 string is written together with the header in one piece; a Buffer would be a second write.
    else if (body.length <= SHORT_BODY && request.httpVersionMajor < 2) response.end(body.toString('latin1'), 'latin1');
    else response.end(body);
  }
}

export function acceptsGzip(request: HttpRequest): boolean {
  const accepted = request.headers['accept-encoding'];
  if (typeof accepted !== 'string') return false;
  return accepted.split(',').some((clause) => {
    const [coding, ...parameters] = clause.split(';').map((each) => each.trim().toLowerCase());
    return (coding === 'gzip' || coding === '*') && !parameters.some((each) => /^q=0(?:\.0*)?$/.test(each));
  });
}

/** Warning headers (RFC 7234), truncated to the header limit of clients. */
function warningHeaders(warnings: readonly string[]): string[] {
  const headers: string[] = [];
  let bytes = 0;
  for (const text of new Set(warnings)) {
    const header = `299 - "${text.replaceAll(/[\\"]/g, '\\$&').replaceAll(/[^\x20-\x7e]/g, '?')}"`;
    bytes += header.length;
    if (bytes > MAX_WARNINGS_BYTES) break;
    headers.push(header);
  }
  return headers;
}
