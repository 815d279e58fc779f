/**
 * An aggregated API server for tests. It trusts clients with a certificate of the authority in the config map
 * extension-apiserver-authentication, and serves flunders with discovery, OpenAPI, lists, watches and upgrades.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import type { TestServer } from '../harness.ts';

export const GROUP = 'wardle.example.com';
export const VERSION = 'v1alpha1';
export const ROOT = `/apis/${GROUP}/${VERSION}`;
export const FLUNDERS = `${ROOT}/namespaces/default/flunders`;

interface Flunder {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly client: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: readonly string[];
  readonly body: string;
  /** Requests with equal numbers came over the same connection. */
  readonly connection: number;
}

/** Misbehaviour for a test. Returns true if it has sent a response. */
type Mischief = (request: IncomingMessage, response: ServerResponse) => boolean;

const VERBS = ['create', 'delete', 'get', 'list', 'watch'];
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const GVK = { group: GROUP, kind: 'Flunder', version: VERSION };

/** OpenAPI schemas, for both versions. */
export const schemas = (prefix: string): Record<string, object> => ({
  'com.example.wardle.v1alpha1.Flunder': {
    description: 'A flunder is what it is.',
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { $ref: `${prefix}${META}.ObjectMeta` },
      spec: { $ref: `${prefix}com.example.wardle.v1alpha1.FlunderSpec` },
    },
    'x-kubernetes-group-version-kind': [GVK],
  },
  'com.example.wardle.v1alpha1.FlunderSpec': {
    type: 'object',
    properties: { reference: { description: 'What it is about.', type: 'string' } },
  },
  // Differs from the main server's type of the same name.
  [`${META}.ObjectMeta`]: {
    type: 'object',
    properties: { name: { type: 'string', description: 'Its own name.' }, namespace: { type: 'string' } },
  },
});

const operation = (action: string, more: object) => ({
  description: 'Flunders.',
  operationId: `${action}Flunder`,
  'x-kubernetes-action': action,
  'x-kubernetes-group-version-kind': GVK,
  ...more,
});

const FLUNDER_PATH = /^\/apis\/[^/]+\/[^/]+(?:\/namespaces\/default)?\/flunders(?:\/([^/]+))?$/;

const NOT_FOUND = {
  code: 404,
  document: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 404, reason: 'NotFound' },
};

function send(response: ServerResponse, code: number, value: object, headers: Record<string, string> = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
}

export class FlunderServer {
  readonly #server: Server;
  readonly #flunders = new Map<string, Flunder>();
  readonly #watchers = new Set<ServerResponse>();
  readonly #sockets = new Map<object, number>();
  #revision = 10;
  readonly seen: Seen[] = [];
  readonly caBundle: string;
  mischief: Mischief = () => false;
  /** Whether the server supports aggregated discovery. */
  aggregated = true;
  /** Whether the server supports OpenAPI v3. */
  explained = true;
  resources: object[] = [
    {
      resource: 'flunders',
      responseKind: GVK,
      scope: 'Namespaced',
      singularResource: 'flunder',
      verbs: VERBS,
      shortNames: ['fl'],
      categories: ['all'],
    },
  ];

  private constructor(server: Server, caPem: string) {
    this.#server = server;
    this.caBundle = Buffer.from(caPem).toString('base64');
    server.on('connection', (socket) => this.#sockets.set(socket, this.#sockets.size));
    server.on('request', (request, response) => this.#answer(request, response));
    server.on('upgrade', (request, socket: Duplex, head: Buffer) => {
      this.#note(request, '');
      socket.on('error', () => {});
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello:');
      socket.write(head);
      socket.pipe(socket);
    });
  }

  /** Starts a server that trusts the authorities published by `main`. Its certificate is for `NAME.NAMESPACE.svc`. */
  static async start(main: TestServer, names: readonly string[]): Promise<FlunderServer> {
    const map = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
    const { body } = await main.call<{ data: Record<string, string> }>('GET', map);
    const day = lifetimeFrom(Date.now(), 1);
    const ca = await createAuthority('flunder-ca', day);
    const pair = await issue(ca, {
      subject: { commonName: 'flunders' },
      usages: ['server'],
      names: { dns: [...names], ips: [] },
      validity: day,
    });
    const server = createServer({
      cert: pair.certPem,
      key: pair.keyPem,
      ca: body.data['requestheader-client-ca-file'] ?? '',
      requestCert: true,
      rejectUnauthorized: true,
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return new FlunderServer(server, ca.certPem);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Requests below `path` since the last call. */
  take(path: string): Seen[] {
    const found = this.seen.filter(({ url }) => url.startsWith(path));
    this.seen.length = 0;
    return found;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #note(request: IncomingMessage, body: string): void {
    const socket = request.socket as TLSSocket & { _parent?: object };
    this.seen.push({
      method: request.method ?? '',
      url: request.url ?? '',
      client: String(socket.getPeerCertificate().subject.CN),
      headers: request.headers,
      raw: request.rawHeaders,
      body,
      connection: this.#sockets.get(socket._parent ?? socket) ?? -1,
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      this.#note(request, body);
      if (!this.mischief(request, response)) this.#serve(request, response, body);
    });
  }

  #serve(request: IncomingMessage, response: ServerResponse, body: string): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://flunders');
    if (pathname === '/apis') this.#sendGroups(request, response);
    else if (FLUNDER_PATH.test(pathname) && (searchParams.get('watch') ?? 'false') !== 'false') this.#watch(response);
    else {
      const { code, document } = this.#documentAt(request.method ?? '', pathname, body);
      send(response, code, document, pathname === '/openapi/v2' ? { etag: '"v2"' } : {});
    }
  }

  #documentAt(method: string, path: string, body: string): { readonly code: number; readonly document: object } {
    const found = (document: object) => ({ code: 200, document });
    if (path === ROOT) return found(this.#resourceList());
    if (path.startsWith('/openapi/v3') && !this.explained) return NOT_FOUND;
    if (path === '/openapi/v3') {
      return found({ paths: { [ROOT.slice(1)]: { serverRelativeURL: `/openapi/v3${ROOT}?hash=ABC` } } });
    }
    if (path === `/openapi/v3${ROOT}`) return found(this.#openapiV3());
    if (path === '/openapi/v2') return found(this.#openapiV2());
    const name = FLUNDER_PATH.exec(path)?.[1] ?? '';
    if (!FLUNDER_PATH.test(path)) return NOT_FOUND;
    if (method === 'POST') return { code: 201, document: this.#put(JSON.parse(body) as Flunder) };
    if (method === 'DELETE') return found(this.#remove(name));
    if (name !== '') {
      const flunder = this.#flunders.get(name);
      return flunder === undefined ? NOT_FOUND : found(flunder);
    }
    const metadata = { resourceVersion: String(this.#revision) };
    const items = [...this.#flunders.values()];
    return found({ kind: 'FlunderList', apiVersion: `${GROUP}/${VERSION}`, metadata, items });
  }

  #sendGroups(request: IncomingMessage, response: ServerResponse): void {
    const document = {
      kind: 'APIGroupDiscoveryList',
      apiVersion: 'apidiscovery.k8s.io/v2',
      metadata: {},
      items: [
        {
          metadata: { name: GROUP },
          versions: [{ version: VERSION, resources: this.resources, freshness: 'Current' }],
        },
        // A group for which the server is not registered.
        { metadata: { name: 'apps' }, versions: [{ version: 'v1', resources: [], freshness: 'Current' }] },
      ],
    };
    const etag = `"${JSON.stringify(this.resources).length}"`;
    const type = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    if (!this.aggregated) send(response, 200, { kind: 'APIGroupList', apiVersion: 'v1', groups: [] });
    else if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
    else send(response, 200, document, { 'content-type': type, etag });
  }

  #resourceList(): object {
    return {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: `${GROUP}/${VERSION}`,
      resources: [
        {
          name: 'flunders',
          singularName: 'flunder',
          namespaced: true,
          kind: 'Flunder',
          verbs: VERBS,
          shortNames: ['fl'],
        },
        { name: 'flunders/status', singularName: '', namespaced: true, kind: 'Flunder', verbs: ['get'] },
      ],
    };
  }

  #openapiV3(): object {
    const content = {
      'application/json': { schema: { $ref: '#/components/schemas/com.example.wardle.v1alpha1.Flunder' } },
    };
    const responses = { 200: { description: 'OK', content } };
    return {
      openapi: '3.0.0',
      info: { title: 'Flunders', version: '1' },
      paths: {
        [`${ROOT}/namespaces/{namespace}/flunders`]: {
          get: operation('list', { responses }),
          post: operation('post', { requestBody: { content }, responses }),
        },
      },
      components: { schemas: schemas('#/components/schemas/') },
    };
  }

  #openapiV2(): object {
    const schema = { $ref: '#/definitions/com.example.wardle.v1alpha1.Flunder' };
    const responses = { 200: { description: 'OK', schema } };
    const body = { name: 'body', in: 'body', required: true, schema };
    return {
      swagger: '2.0',
      info: { title: 'Flunders', version: '1' },
      paths: {
        [`${ROOT}/namespaces/{namespace}/flunders`]: {
          get: operation('list', { responses, produces: ['application/json'] }),
          post: operation('post', { parameters: [body], responses }),
        },
        // A path outside the server's group.
        '/api/v1/nodes': { get: operation('list', { responses }) },
      },
      definitions: { ...schemas('#/definitions/'), 'com.example.unused.Thing': { type: 'object' } },
    };
  }

  #put(flunder: Flunder): Flunder {
    this.#revision += 1;
    const metadata = {
      namespace: 'default',
      uid: `uid-${this.#revision}`,
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...flunder.metadata,
      resourceVersion: String(this.#revision),
    };
    const made = { ...flunder, apiVersion: `${GROUP}/${VERSION}`, kind: 'Flunder', metadata };
    this.#flunders.set(flunder.metadata.name, made);
    for (const watcher of this.#watchers) watcher.write(`${JSON.stringify({ type: 'ADDED', object: made })}\n`);
    return made;
  }

  #remove(name: string): object {
    const found = this.#flunders.get(name);
    this.#flunders.delete(name);
    for (const watcher of this.#watchers) watcher.write(`${JSON.stringify({ type: 'DELETED', object: found })}\n`);
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
  }

  #watch(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    this.#watchers.add(response);
    response.once('close', () => this.#watchers.delete(response));
  }

  get watchers(): number {
    return this.#watchers.size;
  }
}
