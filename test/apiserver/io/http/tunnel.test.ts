/** Requests through CONNECT proxies over TCP, TLS and a Unix socket. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, it } from 'node:test';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import type { BackendRequest, EgressProxy } from '../../../../src/apiserver/port.ts';
import { type Authority, createAuthority, issue, type KeyPair, lifetimeFrom } from '../../../../src/pki/certificate.ts';

const validity = lifetimeFrom(Date.now(), 1);
const portOf = (server: Server | ReturnType<typeof createTcpServer>): number => (server.address() as AddressInfo).port;
const ears = (server: ReturnType<typeof createTcpServer>, at: number | string): Promise<void> =>
  new Promise((resolve) =>
    server.listen(typeof at === 'string' ? { path: at } : { port: at, host: '127.0.0.1' }, resolve),
  );

/** Targets that clients requested from the proxies. `logins` has the Proxy-Authorization header of each request. */
const requested: string[] = [];
const logins: (string | undefined)[] = [];
const servers: Server[] = [];
const sockets = new Set<Duplex>();
let directory = '';
let ca: Authority & KeyPair;
let client: KeyPair;
let backend: Server;
let plain: Server;
/** Proxies by transport. */
const proxies = new Map<string, EgressProxy>();

/** Connects every requested target to this host. */
function proxy(server: Server): Server {
  server.on('connect', (request, socket, head) => {
    requested.push(request.url ?? '');
    logins.push(request.headers['proxy-authorization']);
    const target = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.write(head);
      target.pipe(socket).pipe(target);
    });
    for (const each of [socket, target]) each.on('error', () => undefined);
  });
  return server;
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tunnel-'));
  ca = await createAuthority('ca', validity);
  const pair = (name: string, usage: 'server' | 'client') =>
    issue(ca, { subject: { commonName: name }, usages: [usage], names: { dns: [name], ips: ['127.0.0.1'] }, validity });
  const own = await pair('backend.test', 'server');
  client = await pair('api', 'client');
  const tls = { cert: own.certPem, key: own.keyPem };
  const answer: Parameters<typeof createHttpServer>[1] = (request, response) => response.end(`saw ${request.url}`);
  backend = createHttpsServer(tls, answer);
  plain = createHttpServer(answer);
  plain.on('upgrade', (_request, socket) =>
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi'),
  );
  const inClear = proxy(createHttpServer());
  const secured = proxy(createHttpsServer({ ...tls, ca: ca.certPem, requestCert: true, rejectUnauthorized: true }));
  const local = proxy(createHttpServer());
  await Promise.all([
    ...[backend, plain, inClear, secured].map((server) => ears(server, 0)),
    ears(local, join(directory, 'proxy.sock')),
  ]);
  servers.push(backend, plain, inClear, secured, local);
  for (const server of servers) server.on('connection', (socket: Socket) => sockets.add(socket));
  proxies.set('TCP', { at: { host: '127.0.0.1', port: portOf(inClear) } });
  proxies.set('a socket', { at: { socket: join(directory, 'proxy.sock') } });
  proxies.set('TLS', {
    at: { host: '127.0.0.1', port: portOf(secured) },
    tls: { certificate: client.certPem, key: client.keyPem, authority: ca.certPem, serverName: 'backend.test' },
  });
});
after(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  await rm(directory, { recursive: true });
});

const request = (more: Partial<BackendRequest>): BackendRequest => ({
  network: 'cluster',
  scheme: 'https',
  host: 'backend.test',
  port: portOf(backend),
  method: 'GET',
  path: '/path',
  headers: {},
  tls: { authority: ca.certPem },
  allowAddress: () => true,
  connectTimeoutMs: 20_000,
  signal: new AbortController().signal,
  ...more,
});
const through = (by: EgressProxy, more: Partial<BackendRequest> = {}) =>
  createHttp(new Map([['cluster', by]])).backends.request(request(more), undefined);

for (const by of ['TCP', 'a socket', 'TLS']) {
  it(`uses a proxy by ${by} for addresses in its network, and verifies the server behind it`, async () => {
    const at = proxies.get(by) as EgressProxy;
    requested.length = 0;
    // Only the proxy can resolve this name.
    const answer = await through(at);
    assert.equal(await text(answer), 'saw /path');
    assert.deepEqual(requested, [`backend.test:${portOf(backend)}`]);
    const unencrypted = await through(at, { scheme: 'http', port: portOf(plain) });
    assert.equal(await text(unencrypted), 'saw /path');
    await assert.rejects(through(at, { host: 'other.test' }), /altnames|hostname/i);
  });
}

it('connects without a proxy to networks without a configured proxy', async () => {
  requested.length = 0;
  const answer = await through(proxies.get('TCP') as EgressProxy, { network: 'controlplane', host: '127.0.0.1' });
  assert.equal(await text(answer), 'saw /path');
  assert.deepEqual(requested, []);
});

it("uses the host's proxy for webhooks with a URL, but not for services and NO_PROXY exceptions", async () => {
  const { at } = proxies.get('TCP') as { at: { port: number } };
  const httpsProxy = `http://user:word@127.0.0.1:${at.port}`;
  const send = (noProxy: readonly string[], more: Partial<BackendRequest>) =>
    createHttp(new Map(), { httpsProxy, noProxy }).backends.request(request(more), undefined);
  requested.length = 0;
  assert.equal(await text(await send([], { network: 'controlplane' })), 'saw /path');
  assert.deepEqual(requested, [`backend.test:${portOf(backend)}`]);
  assert.equal(logins.at(-1), `Basic ${Buffer.from('user:word').toString('base64')}`);
  await send(['127.0.0.0/8'], { network: 'controlplane', host: '127.0.0.1' });
  await send([], { network: 'cluster', host: '127.0.0.1' });
  assert.equal(requested.length, 1);
});

it('requests through a proxy can upgrade the connection, and denied addresses are still rejected', async () => {
  const { backends } = createHttp(new Map([['cluster', proxies.get('TCP') as EgressProxy]]));
  const headers = { connection: 'Upgrade', upgrade: 'x' };
  const answer = await backends.upgrade(request({ scheme: 'http', port: portOf(plain), headers }));
  assert.ok(answer.upgraded);
  assert.equal(`${answer.head}${await text(answer.socket)}`, 'hi');
  await assert.rejects(through(proxies.get('TCP') as EgressProxy, { host: '127.0.0.1', allowAddress: () => false }), {
    code: 'address-refused',
  });
});

it('reports the response of a failing proxy, and a missing response', async () => {
  let says = '';
  const odd = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (says === '') socket.destroy();
    else if (says === 'nothing') socket.resume();
    else socket.once('data', () => socket.write(says));
  });
  await ears(odd, 0);
  const at: EgressProxy = { at: { host: '127.0.0.1', port: portOf(odd) } };
  const tell = async (answer: string, message: RegExp, more: Partial<BackendRequest> = {}): Promise<void> => {
    says = answer;
    await assert.rejects(through(at, more), message);
  };
  await tell(
    'HTTP/1.1 403 Forbidden\r\n\r\n',
    /through the proxy 127\.0\.0\.1:\d+: answers "HTTP\/1\.1 403 Forbidden"/,
  );
  await tell('HTTP/1.1 200 OK\r\n\r\nmore', /sent data before the first request/);
  await tell('x'.repeat(20_000), /answers with more than 16384 bytes/);
  await tell('', /closed the connection|ECONNRESET/);
  await tell('nothing', /did not answer within 50 ms/, { connectTimeoutMs: 50 });
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 20);
  await tell('nothing', /disconnected|aborted/, { signal: abort.signal });
  await new Promise((resolve) => odd.close(resolve));
});
