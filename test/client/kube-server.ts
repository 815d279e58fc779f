import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ConfigMap } from '../../src/api/generated/core/v1.ts';
import { ApiError, errors } from '../../src/api/meta/status.ts';
import type { TestCertificate } from './certificates.ts';

interface Change {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: ConfigMap;
}

interface Watcher {
  readonly response: ServerResponse;
  readonly namespace: string | undefined;
  readonly bookmarks: boolean;
}

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly commonName: string | undefined;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: unknown;
}

type Intercept = (request: Seen, response: ServerResponse) => boolean;

/**
 * The list/watch protocol of an API server for config maps over real TLS, with failures on demand: lost connections,
 * restarts, compaction, a history that went backwards, rejections, invalid data.
 */
export class KubeServer {
  readonly seen: Seen[] = [];
  /** Handles a request itself if it returns true. */
  intercept: Intercept = () => false;
  /** Maximum number of items per page; limits of clients apply as well. */
  maxPage = Number.POSITIVE_INFINITY;
  readonly #certificate: TestCertificate;
  readonly #clientAuthority: string;
  #objects = new Map<string, ConfigMap>();
  #history: Change[] = [];
  #compacted = 0;
  #revision = 100;
  #uid = 0;
  #port = 0;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #watchers = new Set<Watcher>();
  #handshakes = 0;

  constructor(certificate: TestCertificate, clientAuthority: string) {
    this.#certificate = certificate;
    this.#clientAuthority = clientAuthority;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Number of TLS connections that were accepted. */
  get handshakes(): number {
    return this.#handshakes;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Starts to listen. After `stop`, the server uses the same port as before. */
  async start(): Promise<void> {
    const server = createServer(
      { ...this.#certificate, ca: this.#clientAuthority, requestCert: true, rejectUnauthorized: false },
      (request, response) => void this.#answer(request, response),
    );
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.on('secureConnection', () => this.#handshakes++);
    server.on('tlsClientError', () => {});
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Resets all connections, as when the process is killed. The objects remain. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    this.dropConnections();
    await closed;
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    this.#watchers.clear();
  }

  /** Ends all watches regularly, as after their time-out. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end();
    this.#watchers.clear();
  }

  put(namespace: string, name: string, data: Record<string, string>): ConfigMap {
    const key = `${namespace}/${name}`;
    const old = this.#objects.get(key);
    const revision = ++this.#revision;
    const object: ConfigMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name, uid: old?.metadata?.uid ?? `uid-${++this.#uid}`, resourceVersion: String(revision) },
      data,
    };
    this.#objects.set(key, object);
    this.#record({ revision, type: old === undefined ? 'ADDED' : 'MODIFIED', object });
    return object;
  }

  remove(namespace: string, name: string): void {
    const object = this.#objects.get(`${namespace}/${name}`);
    if (object === undefined) return;
    this.#objects.delete(`${namespace}/${name}`);
    const revision = ++this.#revision;
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
    this.#record({ revision, type: 'DELETED', object: last });
  }

  /** Drops the history: a watch from an older version is answered with 410. */
  compact(): void {
    this.#compacted = this.#revision;
    this.#history = [];
  }

  /** Continues with a smaller revision and the same objects, as after a restore from a backup. */
  rewind(revision: number): void {
    this.#revision = revision;
    this.#history = [];
    this.#compacted = 0;
    for (const [key, object] of this.#objects) {
      this.#objects.set(key, { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } });
    }
  }

  bookmark(): void {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: String(this.#revision) } };
    for (const watcher of this.#watchers) if (watcher.bookmarks) send(watcher.response, { type: 'BOOKMARK', object });
  }

  /** Sends raw bytes to every watcher. */
  write(bytes: Uint8Array | string): void {
    for (const { response } of this.#watchers) response.write(bytes);
  }

  keys(): string[] {
    return [...this.#objects.keys()].sort();
  }

  #record(change: Change): void {
    this.#history.push(change);
    for (const watcher of this.#watchers) if (wants(watcher, change)) send(watcher.response, change);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const text = Buffer.concat(chunks).toString('utf8');
    const seen: Seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      commonName: commonNameOf(request.socket as TLSSocket),
      authorization: request.headers.authorization,
      contentType: request.headers['content-type'],
      body: text === '' ? undefined : JSON.parse(text),
    };
    this.seen.push(seen);
    if (this.intercept(seen, response)) return;
    try {
      this.#route(seen, response);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      json(response, error.httpCode, error.toStatus());
    }
  }

  #route(request: Seen, response: ServerResponse): void {
    const url = new URL(request.url, this.url);
    if (url.pathname === '/version') {
      json(response, 200, { major: '1' });
      return;
    }
    const match = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/configmaps(?:\/([^/]+))?$/.exec(url.pathname);
    if (match === null) throw new ApiError('NotFound', 'the server could not find the requested resource');
    const [, namespace, name] = match;
    if (name === undefined && url.searchParams.get('watch') === 'true')
      this.#watch(namespace, url.searchParams, response);
    else if (name === undefined && request.method === 'GET') this.#list(namespace, url.searchParams, response);
    else if (name !== undefined && request.method === 'GET') {
      const object = this.#objects.get(`${namespace}/${name}`);
      if (object === undefined) throw errors.notFound({ group: '', plural: 'configmaps' }, name);
      json(response, 200, object);
    } else if (request.method === 'POST' || request.method === 'PUT') {
      const body = request.body as ConfigMap;
      json(response, 201, this.put(namespace ?? '', body.metadata?.name ?? '', body.data ?? {}));
    } else if (request.method === 'DELETE') {
      this.remove(namespace ?? '', name ?? '');
      json(response, 200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    } else {
      throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource');
    }
  }

  #list(namespace: string | undefined, query: URLSearchParams, response: ServerResponse): void {
    const token = query.get('continue');
    const [revision, after] = token === null ? [this.#revision, ''] : (JSON.parse(token) as [number, string]);
    if (token !== null && revision < this.#compacted) {
      throw new ApiError('Expired', 'The provided continue parameter is too old');
    }
    if (Number(query.get('resourceVersion') ?? '0') > this.#revision) throw tooLarge();
    const limit = Math.min(Number(query.get('limit') ?? Number.POSITIVE_INFINITY), this.maxPage);
    const keys = this.keys().filter(
      (key) => key > after && (namespace === undefined || key.startsWith(`${namespace}/`)),
    );
    const page = query.has('limit') ? keys.slice(0, limit) : keys;
    const more = page.length < keys.length;
    json(response, 200, {
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: {
        resourceVersion: String(revision),
        ...(more ? { continue: JSON.stringify([revision, page.at(-1)]) } : {}),
      },
      // Items of a typed list have no apiVersion and kind.
      items: page.map((key) => ({ ...this.#objects.get(key), apiVersion: undefined, kind: undefined })),
    });
  }

  #watch(namespace: string | undefined, query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? '0');
    if (from > this.#revision) throw tooLarge();
    response.writeHead(200, { 'content-type': 'application/json;stream=watch' });
    response.flushHeaders();
    if (from < this.#compacted) {
      const expired = new ApiError('Expired', `too old resource version: ${from} (${this.#compacted})`);
      send(response, { type: 'ERROR', object: expired.toStatus() });
      response.end();
      return;
    }
    const watcher: Watcher = { response, namespace, bookmarks: query.get('allowWatchBookmarks') === 'true' };
    for (const change of this.#history) {
      if (change.revision > from && wants(watcher, change)) send(response, change);
    }
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
  }
}

function wants(watcher: Watcher, change: Change): boolean {
  return watcher.namespace === undefined || watcher.namespace === change.object.metadata?.namespace;
}

function send(response: ServerResponse, event: { readonly type: string; readonly object: unknown }): void {
  response.write(`${JSON.stringify({ type: event.type, object: event.object })}\n`);
}

export function json(
  response: ServerResponse,
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function tooLarge(): ApiError {
  return new ApiError('Timeout', 'Too large resource version', {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
  });
}

function commonNameOf(socket: TLSSocket): string | undefined {
  const subject = socket.getPeerCertificate().subject as { readonly CN?: string } | undefined;
  return socket.authorized ? subject?.CN : undefined;
}
