/** Limits of unauthenticated connections, and permissions of authenticated ones. */
import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import type { Listener } from '../../../../src/apiserver/port.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/certificate.ts';
import { type Flood, streamOf } from '../../../attack/peers/floods.ts';

const LIMITS = {
  authenticated: 3,
  unauthenticated: 8,
  idleMs: 1500,
  unauthenticatedIdleMs: 700,
  handshakeMs: 5_000,
};

describe('a connection', () => {
  let listener: Listener;
  let requested = 0;
  let pair: { readonly certPem: string; readonly keyPem: string };
  before(async () => {
    const validity = lifetimeFrom(Date.now(), 1);
    const ca = await createAuthority('ca', validity);
    const names = { dns: [], ips: ['127.0.0.1'] };
    const server = await issue(ca, { subject: { commonName: 'x' }, usages: ['server'], names, validity });
    pair = await issue(ca, { subject: { commonName: 'c' }, usages: ['client'], validity });
    listener = await createHttp().listen({
      bindAddress: '127.0.0.1',
      port: 0,
      tls: { certificate: server.certPem, key: server.keyPem, clientAuthorities: [ca.certPem] },
      maxHeaderBytes: 16_384,
      headersTimeoutMs: 5_000,
      keepAliveTimeoutMs: 5_000,
      limits: LIMITS,
      request: (request, response, connection) => {
        requested += 1;
        const user = connection.peerChain !== undefined || request.headers.authorization !== undefined;
        const anonymous = request.url === '/healthz';
        connection.identified?.(user ? 'user' : anonymous ? 'anonymous' : 'refused');
        response.writeHead(user || anonymous ? 200 : 401);
        // A watch does not end.
        if (request.url === '/watch') response.write('begun');
        else response.end('x');
      },
      upgrade: (_request, socket) => socket.destroy(),
    });
  });
  after(() => listener.close(100));

  const secure = (alpn: string): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: listener.port, rejectUnauthorized: false, ALPNProtocols: [alpn] };
      const socket = connect(options, () => resolve(socket));
      socket.on('error', reject);
      socket.on('data', () => {});
    });
  const closed = (socket: TLSSocket): Promise<void> =>
    new Promise((resolve) => {
      socket.removeAllListeners('error');
      socket.on('error', () => {});
      if (socket.destroyed) resolve();
      else socket.once('close', () => resolve());
    });
  const session = (headers: Record<string, string>, cert?: { cert: string; key: string }) => {
    const client = connectHttp2(`https://127.0.0.1:${listener.port}`, { rejectUnauthorized: false, ...cert });
    client.on('error', () => {});
    const get = (path: string): Promise<number> =>
      new Promise((resolve) => {
        const stream = client.request({ ':path': path, ...headers });
        let code = 0;
        stream.on('response', (fields) => {
          code = Number(fields[':status']);
          if (path === '/watch') resolve(code);
        });
        stream.on('error', () => resolve(-1));
        stream.on('close', () => resolve(code));
        stream.resume();
      });
    return { client, get };
  };
  const token = { authorization: 'Bearer x' };
  const ended = (client: ClientHttp2Session): Promise<void> =>
    new Promise((resolve) => {
      if (client.destroyed) resolve();
      else client.once('close', () => resolve());
    });

  for (const [mode, most] of [
    ['rapid-reset', 1],
    ['made-you-reset', 1],
    ['streams', 1],
    ['hpack-bomb', 1],
    ['window-update', 0],
    ['settings', 0],
    ['ping', 0],
    ['priority', 0],
    ['continuation', 0],
    ['pipeline', 1],
  ] as readonly (readonly [Flood, number])[]) {
    it(`a connection is closed after ${most} requests with ${mode} and without an identity`, {
      timeout: 20_000,
    }, async () => {
      requested = 0;
      const { alpn, head, next } = streamOf(mode);
      const socket = await secure(alpn);
      const end = closed(socket);
      socket.write(head);
      const push = (): void => {
        if (!socket.destroyed && socket.write(next() ?? Buffer.alloc(0))) setImmediate(push);
        else socket.once('drain', push);
      };
      push();
      await end;
      assert.ok(requested <= most, `${requested} requests`);
    });
  }

  it('an unauthenticated HTTP/2 connection receives a 401 or health response and is then closed', async () => {
    for (const [path, code] of [
      ['/api', 401],
      ['/healthz', 200],
    ] as const) {
      const { client, get } = session({});
      assert.equal(await get(path), code);
      await ended(client);
    }
  });

  it('an unauthenticated HTTP/1.1 connection may repeat health requests within limits', async () => {
    const socket = await secure('http/1.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const end = closed(socket);
    let answers = 0;
    for (; answers < 40 && !socket.destroyed && !socket.readableEnded; answers += 1) {
      text = '';
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      while (!text.endsWith('\r\n\r\n') && !socket.readableEnded) await sleep(2);
      assert.match(text, /^HTTP\/1\.1 200 /);
      if (/connection: close/i.test(text)) break;
    }
    await end;
    assert.equal(answers, 19);
  });

  it('an authenticated connection is not closed after many requests; an unauthenticated HTTP/2 connection is closed after a 401', async () => {
    for (const identity of [session(token), session({}, { cert: pair.certPem, key: pair.keyPem })]) {
      const codes = await Promise.all(Array.from({ length: 200 }, () => identity.get('/api')));
      assert.ok(codes.every((code) => code === 200));
      assert.equal(identity.client.closed, false);
      identity.client.destroy();
    }
    const { client, get } = session({});
    assert.equal(await get('/api'), 401);
    await ended(client);
    const proxy = session({}, { cert: pair.certPem, key: pair.keyPem });
    assert.equal(await proxy.get('/api'), 200);
    proxy.client.destroy();
  });

  it('closes an idle connection, but not during a watch', async () => {
    const watching = session(token);
    assert.equal(await watching.get('/watch'), 200);
    const idle = session(token);
    assert.equal(await idle.get('/api'), 200);
    const silent = await secure('h2');
    await closed(silent);
    await ended(idle.client);
    await sleep(1500);
    assert.equal(watching.client.closed, false);
    assert.equal(await watching.get('/api'), 200);
    watching.client.destroy();
  });

  it('a connection that resets thousands of streams is closed, also if it is authenticated', {
    timeout: 60_000,
  }, async () => {
    const { client, get } = session(token);
    assert.equal(await get('/api'), 200);
    const end = ended(client);
    // Each worker waits for its response, so a busy host has no backlog of streams. It still resets far more than 33
    // streams in a second, the rate that is accepted in the long run.
    const resetStreams = async (): Promise<void> => {
      while (!client.destroyed && !client.closed) {
        const stream = client.request({ ':path': '/watch', ...token });
        const gone = new Promise<void>((resolve) => {
          stream.on('error', () => resolve());
          stream.on('close', () => resolve());
        });
        stream.on('response', () => stream.close(constants.NGHTTP2_CANCEL));
        await gone;
      }
    };
    await Promise.all(Array.from({ length: 20 }, resetStreams));
    await end;
  });

  it('a token connection is evicted for a node with a certificate when all slots are in use', async () => {
    const watching = Array.from({ length: LIMITS.authenticated }, () => session(token));
    for (const each of watching) assert.equal(await each.get('/watch'), 200);
    const more = session(token);
    await Promise.race([ended(more.client), more.get('/watch')]);
    await ended(more.client);
    assert.ok(watching.every(({ client }) => !client.destroyed));
    const node = session({}, { cert: pair.certPem, key: pair.keyPem });
    assert.equal(await node.get('/api'), 200);
    for (const { client } of [...watching, node]) client.destroy();
  });
});
