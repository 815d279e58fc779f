/** The proxy with real sockets on loopback: TLS, framing, time limits, upgrades. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttp, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { createServer as createHttps, request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { Log } from '../../../../src/base/log.ts';
import { Balancer, planRouting } from '../../../../src/network/router/core/index.ts';
import { RoutingTable } from '../../../../src/network/router/core/routing-table.ts';
import { createCertificateVerifier, proxyFactory } from '../../../../src/network/router/io/index.ts';
import type { Route } from '../../../../src/network/router/kinds/routes/types.ts';
import type { RoutingProxy } from '../../../../src/network/router/port.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/index.ts';
import { freePort } from '../../../support/ports.ts';

const silent = {
  info() {},
  warn() {},
  error() {},
  v() {},
  named: () => silent,
} as Partial<Log> as Log;

interface Given {
  readonly routes: readonly Route[];
  /** Port of the server behind each service. */
  readonly servers: Readonly<Record<string, { readonly port: number; readonly appProtocol?: string }>>;
  readonly idled?: readonly string[];
}

const slice = (port: number, appProtocol?: string) => ({
  addressType: 'IPv4',
  metadata: {},
  ports: [{ port, protocol: 'TCP', ...(appProtocol === undefined ? {} : { appProtocol }) }],
  endpoints: [{ addresses: ['127.0.0.1'] }],
});

const route = (name: string, spec: NonNullable<Route['spec']>, annotations: Record<string, string> = {}): Route => ({
  metadata: { name, namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z', annotations },
  spec: { wildcardPolicy: 'None', to: { kind: 'Service', name, weight: 100 }, host: `${name}.apps.test`, ...spec },
});

describe('proxy', { timeout: 60_000 }, () => {
  let proxy: RoutingProxy;
  let httpPort: number;
  let clusterCa = '';
  const needed: string[] = [];
  let httpsPort: number;
  const closing: { close(): unknown }[] = [];
  let ca: Awaited<ReturnType<typeof createAuthority>>;
  let defaultPair: Awaited<ReturnType<typeof issue>>;

  const leaf = (name: string) =>
    issue(ca, {
      subject: { commonName: name },
      usages: ['server'],
      names: { dns: [name], ips: [] },
      validity: lifetimeFrom(Date.now(), 10),
    });
  const listen = async (server: Server | ReturnType<typeof createServer>): Promise<number> => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(server);
    return (server.address() as AddressInfo).port;
  };
  let view: RoutingTable;
  const use = ({ routes, servers, idled = [] }: Given): void => {
    const { table, rejected } = planRouting({
      routes,
      ingresses: [],
      ingressClasses: [],
      httpRoutes: [],
      gateways: [],
      permits: () => false,
      service: (key) => {
        const annotations = { 'idling.alpha.openshift.io/idled-at': '2026-01-01T00:00:00Z' };
        return idled.includes(key.split('/')[1] ?? '') ? { metadata: { annotations } } : undefined;
      },
      slices: (key) => {
        const found = servers[key.split('/')[1] ?? ''];
        return found === undefined ? [] : [slice(found.port, found.appProtocol)];
      },
      certificate: () => undefined,
      check: createCertificateVerifier(),
      ports: { http: httpPort, https: httpsPort },
      policy: { domain: 'apps.lab', wildcardRoutes: true },
    });
    assert.deepEqual([...rejected], []);
    view = table;
    proxy.swap(table);
  };
  /** Sends raw bytes; resolves with everything received until the server closes or `until` matches. */
  const raw = (bytes: string, until?: RegExp, port = httpPort): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      const timer = setTimeout(() => reject(new Error(`no answer but ${JSON.stringify(text)}`)), 8_000);
      const done = (): void => {
        clearTimeout(timer);
        socket.destroy();
        resolve(text);
      };
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        if (until?.test(text)) done();
      });
      socket.on('close', done);
      socket.on('error', () => {});
      socket.write(bytes);
    });
  const get = (host: string, path = '/', headers = ''): Promise<string> =>
    raw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n`);
  const getSecure = (
    host: string,
    path = '/',
  ): Promise<{ status: number; body: string; headers: IncomingMessage['headers'] }> =>
    new Promise((resolve, reject) => {
      const request = httpsRequest(
        { host: '127.0.0.1', port: httpsPort, servername: host, path, headers: { host }, ca: ca.certPem, agent: false },
        async (response) => {
          let body = '';
          for await (const chunk of response) body += chunk;
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers });
        },
      );
      request.on('error', reject);
      request.end();
    });

  before(async () => {
    ca = await createAuthority('test-ca', lifetimeFrom(Date.now(), 10));
    clusterCa = ca.certPem;
    defaultPair = await leaf('*.apps.test');
    [httpPort, httpsPort] = [await freePort(), await freePort()];
    proxy = proxyFactory(silent, '127.0.0.1').create(
      {
        httpPort,
        httpsPort,
        statsPort: undefined,
        proxyProtocol: false,
        accessLog: false,
        clusterCa: async () => clusterCa,
        clusterCaPeriodMs: 50,
      },
      new Balancer(() => 0.5),
      (service) => needed.push(service),
    );
    proxy.useDefaultCertificate({ certificate: defaultPair.certPem, key: defaultPair.keyPem });
    await proxy.start();
  });
  after(async () => {
    await proxy.stop();
    for (const each of closing) each.close();
  });

  const echo = async (seen: IncomingMessage[] = []): Promise<number> =>
    listen(
      createHttp((request, response) => {
        seen.push(request);
        let size = 0;
        request.on('data', (chunk: Buffer) => (size += chunk.length));
        request.on('end', () => {
          const { method, url, headers } = request;
          response.end(JSON.stringify({ method, url, headers, size }));
        });
      }),
    );

  test('forwards requests of an insecure route with X-Forwarded headers and a sticky cookie', async () => {
    use({ routes: [route('web', { path: '/a' })], servers: { web: { port: await echo() } } });
    const text = await get('web.apps.test', '/a/b?c=d', 'X-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.1\r\n');
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.match(text, /Set-Cookie: [0-9a-f]{16}=[0-9a-f]{16}; Path=\/; HttpOnly\r\n/);
    const { url, headers } = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
    assert.equal(url, '/a/b?c=d');
    assert.equal(headers['x-forwarded-proto'], 'http');
    assert.equal(headers['x-forwarded-for'], '192.0.2.1, 127.0.0.1');
    assert.match(await get('web.apps.test', '/ab'), /^HTTP\/1\.1 503 /);
    assert.match(await get('other.apps.test', '/a'), /^HTTP\/1\.1 503 /);
  });

  test('counts requests for unknown hosts, but neither redirects nor probes of this host', async () => {
    const redirect = { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' };
    use({ routes: [route('edge', { tls: redirect })], servers: { edge: { port: await echo() } } });
    const unrouted = (): number =>
      Number(/^hyperedge_router_unrouted_requests_total (\d+)$/m.exec(proxy.metrics())?.[1]);
    const before = unrouted();
    assert.match(await get('127.0.0.1'), /^HTTP\/1\.1 503 /);
    assert.match(await get('edge.apps.test'), /^HTTP\/1\.1 302 /);
    assert.equal(unrouted() - before, 0);
    assert.match(await get('other.apps.test'), /^HTTP\/1\.1 503 /);
    assert.equal(unrouted() - before, 1);
  });

  test('rejects requests with ambiguous framing before they reach a server', async () => {
    const seen: IncomingMessage[] = [];
    use({ routes: [route('web', {})], servers: { web: { port: await echo(seen) } } });
    const start = 'POST / HTTP/1.1\r\nHost: web.apps.test\r\n';
    for (const bytes of [
      `${start}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n` +
        '0\r\n\r\nGET /x HTTP/1.1\r\nHost: web.apps.test\r\n\r\n',
      `${start}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`,
      `${start}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      `${start}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
      `${start}Content-Length: +4\r\n\r\nabcd`,
      'GET / HTTP/1.1\r\nHost: web.apps.test\r\nHost: other.apps.test\r\n\r\n',
      'GET http://other.apps.test/ HTTP/1.1\r\nHost: web.apps.test\r\n\r\n',
      'GET / HTTP/1.1\nHost: web.apps.test\nX: a\r\n b\n\n',
    ]) {
      const text = await raw(bytes);
      assert.match(text, /^HTTP\/1\.1 400 /, JSON.stringify(bytes));
    }
    assert.equal(seen.length, 0);
  });

  test('forwards a chunked body and the next request on the same connection', async () => {
    use({ routes: [route('web', {})], servers: { web: { port: await echo() } } });
    const post = 'POST / HTTP/1.1\r\nHost: web.apps.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
    const text = await raw(`${post}GET /next HTTP/1.1\r\nHost: web.apps.test\r\n\r\n`, /next/);
    assert.match(text, /"size":5/);
    assert.match(text, /"url":"\/next"/);
  });

  test('responds 504 within the timeout for a silent server, and 503 for a route without servers', async () => {
    const mute = await listen(createServer(() => {}));
    const annotations = { 'haproxy.router.openshift.io/timeout': '300ms' };
    use({ routes: [route('mute', {}, annotations), route('none', {})], servers: { mute: { port: mute } } });
    const since = performance.now();
    assert.match(await get('mute.apps.test'), /^HTTP\/1\.1 504 /);
    assert.ok(performance.now() - since < 5_000);
    assert.match(await get('none.apps.test'), /^HTTP\/1\.1 503 /);
  });

  test('holds requests to an idled service until it has servers, within limits, and reports them', async () => {
    const routes = [
      route('idle', {}),
      route('through', { tls: { termination: 'passthrough' } }),
      route('socket', {}),
      route('busy', {}),
    ];
    use({ routes, servers: {}, idled: ['idle', 'through', 'socket', 'busy'] });
    needed.length = 0;
    const post = 'POST /held HTTP/1.1\r\nHost: idle.apps.test\r\nContent-Length: 5\r\n\r\nhello';
    const held = raw(post, /"size":\d+/);
    const tunnel = raw(
      'GET / HTTP/1.1\r\nHost: socket.apps.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
      /HTTP\/1\.1 \d+/,
    );
    const own = await leaf('through.apps.test');
    const secure = getSecure('through.apps.test');
    const busy = Array.from({ length: 66 }, () => get('busy.apps.test'));
    const first = await Promise.race(busy);
    assert.match(first, /^HTTP\/1\.1 503 /, 'more than 64 are not held');
    const gone = connect(httpPort, '127.0.0.1');
    gone.write('GET / HTTP/1.1\r\nHost: idle.apps.test\r\n\r\n');
    await new Promise((resolve) => setTimeout(resolve, 100));
    gone.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual([...new Set(needed)].sort(), ['shop/busy', 'shop/idle', 'shop/socket', 'shop/through']);
    const tls = createHttps({ cert: own.certPem, key: own.keyPem }, (_request, response) => response.end('woken'));
    const seen: IncomingMessage[] = [];
    const port = await echo(seen);
    use({
      routes,
      servers: { idle: { port }, socket: { port }, busy: { port }, through: { port: await listen(tls) } },
    });
    assert.match(await held, /"url":"\/held".*"size":5/);
    assert.equal((await secure).body, 'woken');
    assert.match(await tunnel, /HTTP\/1\.1 200/, 'the server does not upgrade');
    const answers = await Promise.all(busy);
    assert.equal(answers.filter((text) => text.startsWith('HTTP/1.1 200')).length, 64);
    assert.equal(seen.filter(({ url }) => url === '/held').length, 1);
    assert.equal(seen.length, 1 + 1 + 64, 'the client that left has no request');
  });

  test('edge termination uses the certificate of the route or the default, redirects HTTP, sends HSTS', async () => {
    const own = await leaf('own.apps.test');
    const port = await echo();
    const hsts = { 'haproxy.router.openshift.io/hsts_header': 'max-age=31536000;includeSubDomains' };
    const redirect = { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' };
    use({
      routes: [
        route('edge', { tls: redirect }, hsts),
        route('own', { tls: { termination: 'edge', certificate: own.certPem, key: own.keyPem } }),
      ],
      servers: { edge: { port }, own: { port } },
    });
    const found = await getSecure('edge.apps.test', '/x');
    assert.equal(found.status, 200);
    assert.equal(found.headers['strict-transport-security'], 'max-age=31536000;includeSubDomains');
    assert.equal(JSON.parse(found.body).headers['x-forwarded-proto'], 'https');
    assert.equal((await getSecure('own.apps.test')).status, 200);
    assert.match(
      await get('edge.apps.test', '/x?y'),
      new RegExp(`302 .*Location: https://edge.apps.test:${httpsPort}/x\\?y`, 's'),
    );
    assert.match(await get('own.apps.test'), /^HTTP\/1\.1 503 /);
  });

  test('rejects TLS handshakes for a Gateway listener without a usable certificate', async () => {
    use({ routes: [], servers: {} });
    proxy.swap(new RoutingTable([], { http: httpPort, https: httpsPort }, new Set(['*.gone.test'])));
    await assert.rejects(getSecure('x.gone.test'), /unrecognized.name/i);
    assert.equal((await getSecure('x.apps.test')).status, 503, 'other names have the default certificate');
  });

  test('ends requests and connections of services whose endpoint is the router', async () => {
    use({
      routes: [route('mirror', {}), route('echoing', { tls: { termination: 'passthrough' } })],
      servers: { mirror: { port: httpPort }, echoing: { port: httpsPort } },
    });
    const sessions = (name: string): number =>
      Number(new RegExp(`backend_sessions_total\\{[^}]*route="${name}"\\} (\\d+)`).exec(proxy.metrics())?.[1]);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: httpPort, headers: { host: 'mirror.apps.test' } };
      httpRequest(options, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end();
    });
    assert.equal(status, 508);
    assert.equal(sessions('mirror'), 8);
    const client = connectTls({ host: '127.0.0.1', port: httpsPort, servername: 'echoing.apps.test', ca: ca.certPem });
    client.on('error', () => {});
    await new Promise((resolve) => client.once('close', resolve));
    assert.equal(sessions('echoing'), 0);
  });

  test('passthrough forwards TLS from the client to the server without decryption', async () => {
    const pair = await leaf('pass.apps.test');
    const server = createHttps({ cert: pair.certPem, key: pair.keyPem }, (_request, response) =>
      response.end('by server'),
    );
    const port = await listen(server);
    use({ routes: [route('pass', { tls: { termination: 'passthrough' } })], servers: { pass: { port } } });
    const found = await getSecure('pass.apps.test');
    assert.equal(found.body, 'by server');
    assert.match(proxy.metrics(), /haproxy_backend_sessions_total\{namespace="shop",route="pass"\} 1/);
  });

  test('re-encryption verifies the server with the CA of the route', async () => {
    const pair = await leaf('whatever');
    const server = createHttps({ cert: pair.certPem, key: pair.keyPem }, (_request, response) =>
      response.end('sealed'),
    );
    const other = await createAuthority('other', lifetimeFrom(Date.now(), 10));
    const tls = (pem: string) => ({ termination: 'reencrypt', destinationCACertificate: pem });
    const port = await listen(server);
    use({
      routes: [route('good', { tls: tls(ca.certPem) }), route('bad', { tls: tls(other.certPem) })],
      servers: { good: { port }, bad: { port } },
    });
    assert.equal((await getSecure('good.apps.test')).body, 'sealed');
    assert.equal((await getSecure('bad.apps.test')).status, 503);
  });

  test('re-encryption without a CA in the route verifies the service name with the cluster CA', async () => {
    const next = await createAuthority('next', lifetimeFrom(Date.now(), 10));
    const pair = await issue(next, {
      subject: { commonName: 'own' },
      usages: ['server'],
      names: { dns: ['own.shop.svc'], ips: [] },
      validity: lifetimeFrom(Date.now(), 10),
    });
    const server = createHttps({ cert: pair.certPem, key: pair.keyPem }, (_request, response) => response.end('own'));
    const port = await listen(server);
    const tls = { termination: 'reencrypt' };
    use({ routes: [route('own', { tls }), route('foreign', { tls })], servers: { own: { port }, foreign: { port } } });
    assert.equal((await getSecure('own.apps.test')).status, 503, 'an authority that the cluster does not trust yet');
    clusterCa = next.certPem;
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal((await getSecure('own.apps.test')).body, 'own');
    assert.equal((await getSecure('foreign.apps.test')).status, 503, 'the certificate of another service');
  });

  test('applies ip_whitelist and ip_allowlist annotations and the limits of connections and requests', async () => {
    const port = await echo();
    const prefix = 'haproxy.router.openshift.io/';
    const limited = `${prefix}rate-limit-connections`;
    use({
      routes: [
        route('a', {}, { [`${prefix}ip_whitelist`]: '10.0.0.0/8 127.0.0.1' }),
        route('b', {}, { [`${prefix}ip_allowlist`]: '10.0.0.0/8' }),
        route('c', {}, { [limited]: 'true', [`${limited}.rate-http`]: '3' }),
        route('d', {}, { [limited]: 'true', [`${limited}.rate-tcp`]: '2' }),
        route('e', {}, { [limited]: 'true', [`${limited}.concurrent-tcp`]: '1' }),
        route('f', {}, { [limited]: 'false', [`${limited}.rate-http`]: '1' }),
      ],
      servers: Object.fromEntries([...'abcdef'].map((name) => [name, { port }])),
    });
    const status = async (name: string): Promise<number> =>
      Number((await get(`${name}.apps.test`)).split(' ', 2)[1] ?? 0);
    const several = async (name: string, times: number): Promise<number[]> => {
      const all: number[] = [];
      for (let count = 0; count < times; count++) all.push(await status(name));
      return all;
    };
    assert.deepEqual([await status('a'), await status('b')], [200, 403]);
    assert.deepEqual(await several('c', 5), [200, 200, 200, 429, 429]);
    assert.deepEqual(await several('d', 4), [200, 200, 429, 429]);
    assert.deepEqual(await several('f', 4), [200, 200, 200, 200]);
    const held = connect(httpPort, '127.0.0.1');
    held.on('error', () => {});
    held.write('GET / HTTP/1.1\r\nHost: e.apps.test\r\n\r\n');
    await once(held, 'data');
    assert.equal(await status('e'), 429, 'one connection is open');
    held.destroy();
    const deadline = performance.now() + 5_000;
    let again = 429;
    while (again === 429 && performance.now() < deadline) again = await status('e');
    assert.equal(again, 200);
  });

  // HYPEREDGE_SLOW_CONNECTIONS=10000 opens that many connections and waits until the last is closed.
  test('slow connections from many source addresses do not delay other requests', async () => {
    const requested = process.env['HYPEREDGE_SLOW_CONNECTIONS'];
    const port = await echo();
    use({ routes: [route('a', {})], servers: { a: { port } } });
    const sockets: Socket[] = [];
    for (let at = 0; at < Number(requested ?? 1_000); at++) {
      const socket = connect({ port: httpPort, host: '127.0.0.1', localAddress: `127.0.1.${(at % 50) + 1}` });
      socket.on('error', () => {});
      socket.resume();
      socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nHost: a.apps.test\r\nX-Slow: '));
      sockets.push(socket);
      // No more at once than the backlog of the listening port.
      if (at % 200 === 199) await once(socket, 'connect');
    }
    const begin = performance.now();
    assert.match(await get('a.apps.test'), /^HTTP\/1.1 200/);
    const took = performance.now() - begin;
    assert.ok(took < 2_000, `others are answered after ${took} ms`);
    if (requested !== undefined) {
      await Promise.all(sockets.map((socket) => (socket.closed ? undefined : once(socket, 'close'))));
      const closedMs = performance.now() - begin;
      assert.ok(closedMs < 20_000, `slow connections are closed after ${closedMs} ms`);
    }
    for (const socket of sockets) socket.destroy();
  });

  test('the router tunnels an upgraded connection, with and without TLS', async () => {
    const server = createHttp();
    server.on('upgrade', (_request, socket: Socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
      socket.on('data', (chunk) => socket.write(`echo ${chunk}`));
    });
    const tls = { termination: 'edge', insecureEdgeTerminationPolicy: 'Allow' };
    use({ routes: [route('ws', { tls })], servers: { ws: { port: await listen(server) } } });
    const head = 'GET / HTTP/1.1\r\nHost: ws.apps.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    assert.match(await raw(`${head}ping`, /echo ping/), /^HTTP\/1\.1 101 .*echo ping$/s);
    const [, socket] = await new Promise<[IncomingMessage, Socket]>((resolve, reject) => {
      const headers = { host: 'ws.apps.test', connection: 'Upgrade', upgrade: 'websocket' };
      const request = httpsRequest({
        port: httpsPort,
        host: '127.0.0.1',
        servername: 'ws.apps.test',
        headers,
        ca: ca.certPem,
      });
      request.on('upgrade', (response, upgraded: Socket) => resolve([response, upgraded]));
      request.on('error', reject);
      request.end();
    });
    socket.write('over TLS');
    const [chunk] = await once(socket, 'data');
    assert.equal(String(chunk), 'echo over TLS');
    socket.destroy();
  });

  test('closes a tunnel that is idle for the timeout, and keeps a tunnel with traffic', async () => {
    const server = await listen(createServer((socket) => socket.on('error', () => {}).pipe(socket)));
    const annotations = { 'haproxy.router.openshift.io/timeout-tunnel': '400ms' };
    const seen = createHttp();
    seen.on('upgrade', (_request, socket: Socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
      socket.pipe(connect(server, '127.0.0.1')).on('error', () => {});
      socket.on('error', () => {});
    });
    use({ routes: [route('idle', {}, annotations)], servers: { idle: { port: await listen(seen) } } });
    const socket = connect(httpPort, '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: idle.apps.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    await once(socket, 'data');
    const since = performance.now();
    const busy = setInterval(() => socket.write('x'), 50);
    setTimeout(() => clearInterval(busy), 1_000);
    await once(socket, 'close');
    const tookMs = performance.now() - since;
    assert.ok(tookMs > 1_000 && tookMs < 5_000, `${tookMs} ms`);
  });

  test('serves gRPC with trailers to HTTP/2 clients and rejects smuggled headers', async () => {
    const server = createHttp2();
    server.on('stream', (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.on('error', () => {});
      stream.pipe(stream);
    });
    const grpcPort = await listen(server as unknown as Server);
    const seen: IncomingMessage[] = [];
    const tls = { termination: 'edge' };
    use({
      routes: [route('grpc', { tls }), route('web', { tls })],
      servers: { grpc: { port: grpcPort, appProtocol: 'kubernetes.io/h2c' }, web: { port: await echo(seen) } },
    });
    const session = connectHttp2(`https://grpc.apps.test:${httpsPort}`, {
      ca: ca.certPem,
      createConnection: undefined as never,
      lookup: (_name: string, _options: unknown, callback: (...args: unknown[]) => void) =>
        callback(null, [{ address: '127.0.0.1', family: 4 }]),
    } as never);
    const call = session.request({
      ':method': 'POST',
      ':path': '/s/m',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.end('message');
    const trailers = once(call, 'trailers');
    let body = '';
    call.setEncoding('utf8');
    call.on('data', (chunk) => (body += chunk));
    const [got] = await trailers;
    assert.equal(got['grpc-status'], '0');
    assert.equal(body, 'message');
    const plain = session.request({ ':path': '/plain', ':authority': 'web.apps.test' });
    const [headers] = await once(plain, 'response');
    assert.equal(headers[':status'], 200);
    plain.resume();
    await once(plain, 'end');
    const count = seen.length;
    const odd = session.request({ ':path': '/a b\tc', ':authority': 'web.apps.test' });
    odd.on('error', () => {});
    const [refused] = await once(odd, 'response').catch(() => []);
    assert.notEqual(refused?.[':status'], 200);
    assert.equal(seen.length, count);
    session.destroy();
  });

  test('the router limits connections of one source address that have not sent a complete request', async () => {
    use({ routes: [route('web', {})], servers: { web: { port: await echo() } } });
    const slow = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const socket = connect(httpPort, '127.0.0.1');
        socket.on('error', () => {});
        await once(socket, 'connect');
        socket.write('GET / HT');
        return socket;
      }),
    );
    const open = (): number => slow.filter(({ readyState, closed }) => readyState === 'open' && !closed).length;
    for (let tries = 0; open() > 256 && tries < 50; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(open(), 256);
    assert.match(proxy.metrics(), /hyperedge_router_refused_connections_total [1-9]/);
    for (const socket of slow) socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.match(await get('web.apps.test'), /^HTTP\/1\.1 200 /);
  });

  test('limits connections in total and per source address, and requests per namespace', async () => {
    let held = 0;
    const slow = createHttp(() => held++);
    use({
      routes: [route('slow', { tls: { termination: 'edge' } }), route('web', {})],
      servers: { slow: { port: await listen(slow) }, web: { port: await echo() } },
    });
    const [limited, limitedSecure] = [await freePort(), await freePort()];
    const small = proxyFactory(silent, '127.0.0.1').create(
      {
        httpPort: limited,
        httpsPort: limitedSecure,
        statsPort: undefined,
        proxyProtocol: false,
        accessLog: false,
        clusterCa: async () => clusterCa,
        maxConnections: 40,
      },
      new Balancer(Math.random),
      () => {},
    );
    small.useDefaultCertificate({ certificate: defaultPair.certPem, key: defaultPair.keyPem });
    small.swap(view);
    await small.start();
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = connect(limited, '127.0.0.1');
        socket.on('error', () => {});
        await once(socket, 'connect');
        socket.write('GET / HTTP/1.1\r\nHost: web.apps.test\r\n\r\n');
        return socket;
      }),
    );
    const open = (): number => sockets.filter(({ readyState, closed }) => readyState === 'open' && !closed).length;
    for (let tries = 0; open() > 20 && tries < 50; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(open(), 20);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.match(
      await raw('GET / HTTP/1.1\r\nHost: web.apps.test\r\nConnection: close\r\n\r\n', undefined, limited),
      /^HTTP\/1\.1 200 /,
    );
    // One connection of HTTP/2 carries many requests.
    const session = connectHttp2(`https://127.0.0.1:${limitedSecure}`, {
      ca: ca.certPem,
      servername: 'slow.apps.test',
    });
    const statuses: number[] = [];
    const streams = Array.from({ length: 30 }, () => {
      const stream = session.request({ ':path': '/', ':authority': 'slow.apps.test' });
      stream.on('response', (headers) => statuses.push(Number(headers[':status'])));
      stream.on('error', () => {});
      return stream;
    });
    for (let tries = 0; statuses.length < 10 && tries < 50; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(statuses, new Array(10).fill(503));
    for (let tries = 0; held < 20 && tries < 50; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(held, 20);
    for (const stream of streams) stream.close();
    session.destroy();
    slow.closeAllConnections();
    await small.stop();
  });
});
