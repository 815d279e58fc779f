/** One HTTP request and its response. */
import { gzip } from 'node:zlib';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Placed } from '../../../base/under-way.ts';
import type { FlowRequest, Flows } from '../../../core/flowcontrol/index.ts';
import type { AuditRecord } from '../audit/trail.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../port.ts';
import { renderObject } from './render-object.ts';
import { isTrue, type RequestInfo } from './request-info.ts';

/** Below this, compressing costs more than sending. Upstream's threshold. */
const GZIP_FROM = 128 * 1024;
const MAX_WARNINGS_BYTES = 4096;
/** Clients that get indented JSON. Source: k8s.io/apiserver/pkg/endpoints/handlers/negotiation `isPrettyPrint`. */
const PEOPLE = /^(?:curl|Wget|Mozilla\/5\.0)/;
const NO_QUERY = new URLSearchParams();
const SHORT_BODY = 8 * 1024;

export class Exchange implements Placed {
  place = -1;
  /** When it has to have ended, in monotonic milliseconds; a request that is `longRunning` need not heed it. */
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly connection: ConnectionInfo;
  info: RequestInfo;
  readonly startedMs: number;
  /** Set once authentication is done. */
  user: UserInfo;
  /** Who it was before any impersonation; undefined until that is known. */
  authenticated: UserInfo | undefined;
  /** The verb that authorized a constrained impersonation; '' for the legacy verb. */
  impersonation = '';
  /** What is recorded of this request; undefined: nothing. */
  audit: AuditRecord | undefined;
  /** The schema and the level that priority and fairness have put it to. */
  flows: Flows<Exchange> | undefined;
  /** Its place there. */
  flow: FlowRequest<Exchange> | undefined;
  /** Of a watch: what it has that a write costs more for. */
  forgetWatch: (() => void) | undefined;
  /** Of a watch: called when it has begun. */
  initialised: (() => void) | undefined;
  readonly warnings: string[] = [];
  /** Bytes of an uncompressed response body; undefined: proxied or not counted. */
  sentBytes: number | undefined;
  /** Of a body that is compressed: its size then. Never rejects; may stay open when the client goes away. */
  compressedBytes: Promise<number> | undefined;
  /** Set when the request has no end of its own: watches, logs. */
  longRunning = false;
  /** The header of that name of the answer. */
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
   * A watch has begun: what only its beginning needed is let go, for it may stay for an hour with thousands of others.
   */
  begun(): void {
    const { initialised, request } = this;
    this.initialised = undefined;
    initialised?.();
    if (this.info.query.size > 0) this.info = { ...this.info, query: NO_QUERY };
    delete request.headers.authorization;
    request.rawHeaders.length = 0;
  }

  /** Aborts when the client goes away. */
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

  /** Lets the body go by unread when it says that it is no longer than `limit`; false when it does not. */
  discardBody(limit: number): boolean {
    const { request } = this;
    if (request.complete) return true;
    const length = request.headers['content-length'];
    if (length === undefined || !(Number(length) <= limit)) return false;
    this.#discarding = true;
    request.resume();
    return true;
  }

  /** Headers every answer has. HTTP/1.1 connections are kept unless the body of the request was left unread. */
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
   * How the client wants to read JSON: as it says by `pretty`, else indented when it is a browser or a tool on a
   * terminal, as upstream.
   */
  get indents(): 'asked' | 'guessed' | undefined {
    const { query } = this.info;
    const said = query.size > 0 ? query.get('pretty') : null;
    if (said !== null && said !== '') return isTrue(said) ? 'asked' : undefined;
    return PEOPLE.test(this.header('user-agent') ?? '') ? 'guessed' : undefined;
  }

  sendJson(code: number, value: unknown): void {
    this.sendBytes(code, Buffer.from(`${JSON.stringify(value)}\n`));
  }

  /** Sends an object or a list of a built-in kind, or a Status, in the format that the client prefers. */
  sendObject(code: number, object: KubeObject): void {
    const { body, contentType } = renderObject(this.request.headers.accept, object);
    const indented = contentType === 'application/json' && this.indents !== undefined;
    this.sendBytes(code, indented ? Buffer.from(`${JSON.stringify(object, null, 2)}\n`) : body, contentType);
  }

  sendText(code: number, text: string): void {
    this.sendBytes(code, Buffer.from(text), 'text/plain; charset=utf-8');
  }

  /** Sends a complete body. Large ones are compressed off the event loop for clients that take it. */
  sendBytes(code: number, body: Buffer, contentType = 'application/json'): void {
    const { response } = this;
    if (this.#answered || response.headersSent || response.destroyed) return;
    this.#answered = true;
    this.sentBytes = body.length;
    if (this.audit === undefined) {
      this.#send(code, body, contentType);
      return;
    }
    if (this.audit.wantsAnswers && contentType === 'application/json') this.audit.answered(body);
    const recorded = this.recorded(code);
    if (recorded === undefined) this.#send(code, body, contentType);
    else void recorded.then(() => this.#send(code, body, contentType));
  }

  /** The answer is known, and will be `code`. A promise, which never rejects: it must not end before. */
  recorded(code: number): Promise<unknown> | undefined {
    const recorded = this.audit?.complete(code);
    if (recorded !== undefined) this.response.statusCode = code;
    return recorded;
  }

  /** As `recorded`, for a streamed response: without a blocking audit sink its end is recorded when it is reached. */
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
    // As text that has one character for each byte it goes out in one piece with the header; bytes are a piece of their
    // own.
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

/** Warnings as RFC 7234 has them, cut to what a client's header limit takes. */
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
