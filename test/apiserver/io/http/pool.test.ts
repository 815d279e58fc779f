/** Kept connections to servers that get several requests. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import type { BackendRequest, BackendTls } from '../../../../src/apiserver/port.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/index.ts';

const { backends } = createHttp();
let server: Server;
let tls: BackendTls;
/** Requests by the connection on which they arrived. */
const connections = new Map<object, string[]>();
/** Whether the server closes a connection at its second request. */
let isForgetful = false;

before(async () => {
  const ca = await createAuthority('ca', lifetimeFrom(Date.now(), 10));
  const names = { dns: ['backend.test'], ips: [] };
  const validity = lifetimeFrom(Date.now(), 5);
  const pair = await issue(ca, { subject: { commonName: 's' }, usages: ['server'], names, validity });
  tls = { authority: ca.certPem, serverName: 'backend.test' };
  server = createServer({ cert: pair.certPem, key: pair.keyPem });
  server.on('request', (incoming: IncomingMessage, response) => {
    const seen = connections.get(incoming.socket) ?? [];
    connections.set(incoming.socket, [...seen, `${incoming.method} ${incoming.url}`]);
    if (isForgetful && seen.length > 0) incoming.socket.destroy();
    else response.end('answer');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const backendRequest = (method: string, path: string, more: Partial<BackendRequest> = {}): BackendRequest => ({
  network: 'cluster',
  scheme: 'https',
  host: '127.0.0.1',
  port: (server.address() as AddressInfo).port,
  method,
  path,
  headers: {},
  tls,
  allowAddress: () => true,
  connectTimeoutMs: 5_000,
  signal: new AbortController().signal,
  pooled: true,
  ...more,
});

async function ask(request: BackendRequest, body?: string): Promise<string> {
  return text(await backends.request(request, body === undefined ? undefined : Readable.from([body])));
}

/** Sends a body that is completely in memory. */
async function put(request: BackendRequest, body: string): Promise<string> {
  return text(await backends.request(request, Buffer.from(body)));
}

const seen = (): string[][] => {
  const found = [...connections.values()];
  connections.clear();
  return found;
};

test('shares a connection only between requests of the same kind with the same trusted CA', async () => {
  for (const path of ['/1', '/2', '/3']) assert.equal(await ask(backendRequest('GET', path)), 'answer');
  assert.equal(await ask(backendRequest('POST', '/4'), 'body'), 'answer');
  assert.deepEqual(seen(), [['GET /1', 'GET /2', 'GET /3', 'POST /4']]);
  const { serverName = '' } = tls;
  await ask(backendRequest('GET', '/unverified', { tls: { serverName, authority: undefined } }));
  await ask(backendRequest('GET', '/alone', { pooled: false }));
  assert.deepEqual(seen(), [['GET /unverified'], ['GET /alone']]);
  const other = backendRequest('GET', '/other', { tls: { ...tls, serverName: 'other.test' } });
  await assert.rejects(ask(other), { code: 'connect-failed' });
});

test('repeats a request after a kept-alive connection has closed only if the request is safe to repeat', async () => {
  isForgetful = true;
  try {
    await ask(backendRequest('GET', '/first', { headers: { x: '1' } }));
    assert.equal(await ask(backendRequest('GET', '/again')), 'answer');
    seen();
    assert.equal(await ask(backendRequest('GET', '/first')), 'answer');
    await assert.rejects(ask(backendRequest('POST', '/once'), 'body'), { code: 'connect-failed' });
    const posts = seen()
      .flat()
      .filter((each) => each === 'POST /once');
    assert.equal(posts.length, 1);
    isForgetful = false;
    await put(backendRequest('POST', '/kept'), 'body');
    isForgetful = true;
    assert.equal(await put(backendRequest('POST', '/twice'), 'body'), 'answer');
    // The first attempt was sent on the kept connection, the second one on a new connection.
    assert.deepEqual(seen(), [['POST /kept', 'POST /twice'], ['POST /twice']]);
  } finally {
    isForgetful = false;
  }
});

test('a body of unknown length cannot inject a second request on a kept-alive connection, with every method', async () => {
  connections.clear();
  const methods = ['DELETE', 'OPTIONS', 'GET', 'PATCH'];
  for (const method of methods) {
    await ask(backendRequest(method, '/outer', { headers: { x: '2' } }), 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n');
    await ask(backendRequest('GET', '/next'));
  }
  assert.deepEqual(
    seen().flat(),
    methods.flatMap((method) => [`${method} /outer`, 'GET /next']),
  );
});

test('the connection pool rejects a denied address on every connection', async () => {
  await ask(backendRequest('GET', '/before'));
  await assert.rejects(ask(backendRequest('GET', '/after', { allowAddress: () => false })), {
    code: 'address-refused',
  });
  // The address of a host name is known only after a connection is established. A kept connection already has its
  // address.
  await ask(backendRequest('GET', '/before', { host: 'localhost' }));
  await assert.rejects(ask(backendRequest('GET', '/after', { host: 'localhost', allowAddress: () => false })), {
    code: 'address-refused',
  });
  assert.ok(![...connections.values()].flat().includes('GET /after'));
});

test('checks legacy IPv4 notations such as 0x7f.1 as addresses, not as host names', async () => {
  for (const host of ['0x7f.1', '2130706433', '[::ffff:7f00:1]'])
    await assert.rejects(ask(backendRequest('GET', '/', { host, allowAddress: () => false })), {
      code: 'address-refused',
    });
});
