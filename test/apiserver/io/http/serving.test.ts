/** Listener functions beside requests: certificates by name, limited connections, graceful shutdown. */
import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect as connectHttp2, type Settings } from 'node:http2';
import { buffer, text } from 'node:stream/consumers';
import { before, describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import type { ListenOptions, NamedCertificate } from '../../../../src/apiserver/port.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/index.ts';
import { eventually } from '../../../client/clocks.ts';

const validity = lifetimeFrom(Date.now(), 1);
const ANSWER_BYTES = 256 * 1024;
let ca: Awaited<ReturnType<typeof createAuthority>>;
const pairs = new Map<string, { certificate: string; key: string }>();
const pairOf = (name: string) => pairs.get(name) ?? { certificate: '', key: '' };
const named = (name: string, ...names: string[]): NamedCertificate => ({ names, ...pairOf(name) });

before(async () => {
  ca = await createAuthority('ca', validity);
  for (const commonName of ['default', 'a', 'b', 'c']) {
    const pair = await issue(ca, { subject: { commonName }, usages: ['server'], validity });
    pairs.set(commonName, { certificate: pair.certPem, key: pair.keyPem });
  }
});

async function listening(more: Partial<ListenOptions>, certificates?: readonly NamedCertificate[]) {
  const material = (given: readonly NamedCertificate[] | undefined) => ({
    ...pairOf('default'),
    clientAuthorities: [ca.certPem],
    ...(given === undefined ? {} : { named: given }),
  });
  const listener = await createHttp().listen({
    bindAddress: '127.0.0.1',
    port: 0,
    tls: material(certificates),
    maxHeaderBytes: 16_384,
    headersTimeoutMs: 10_000,
    keepAliveTimeoutMs: 10_000,
    request: (_request, response) => response.end('ok'),
    upgrade: (_request, socket) => socket.destroy(),
    ...more,
  });
  return { listener, material };
}

const trusting = { rejectUnauthorized: false };

/** Names in the certificate that a client gets for `servername`. */
const shownTo = (port: number, servername: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, ...trusting, servername }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on('error', reject);
  });

const open = (port: number, settings: Settings = {}): Promise<ClientHttp2Session> =>
  new Promise((resolve, reject) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ...trusting, settings }, () => resolve(session));
    session.once('error', reject);
  });

describe('certificates by name', () => {
  it('certificates by name are selected by exact name, then by wildcard, then the default, and may be replaced', async () => {
    const { listener, material } = await listening({}, [
      named('a', 'x.test', '*.x.test'),
      named('b', 'one.x.test', 'x.test'),
    ]);
    try {
      const requested = ['x.test', 'X.Test', 'one.x.test', 'two.x.test', 'deep.two.x.test', 'y.test'];
      const shown: string[] = [];
      for (const name of requested) shown.push(await shownTo(listener.port, name));
      assert.deepEqual(shown, ['a', 'a', 'b', 'a', 'default', 'default']);
      listener.updateTls(material([named('c', 'x.test')]));
      assert.deepEqual(
        [await shownTo(listener.port, 'x.test'), await shownTo(listener.port, 'one.x.test')],
        ['c', 'default'],
      );
    } finally {
      await listener.close(100);
    }
  });

  it('certificates by name use the same client CAs', async () => {
    const chains: (number | undefined)[] = [];
    const request: ListenOptions['request'] = (_request, response, connection) => {
      chains.push(connection.peerChain?.length);
      response.end('ok');
    };
    const { listener } = await listening({ request }, [named('a', 'x.test')]);
    const client = await issue(ca, { subject: { commonName: 'u' }, usages: ['client'], validity });
    try {
      const identity = { cert: client.certPem, key: client.keyPem, servername: 'x.test' };
      const socket = connect({ host: '127.0.0.1', port: listener.port, ...trusting, ...identity });
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      assert.match(await text(socket), /200 OK/);
      assert.ok((chains[0] ?? 0) >= 1);
    } finally {
      await listener.close(100);
    }
  });
});

describe('connections', () => {
  it('connections have the configured number of streams and key exchange groups', async () => {
    const { listener, material } = await listening({ maxStreams: 7 });
    const session = await open(listener.port);
    try {
      if (session.remoteSettings.maxConcurrentStreams === undefined || session.remoteSettings.maxConcurrentStreams > 7)
        await new Promise((resolve) => session.once('remoteSettings', resolve));
      assert.equal(session.remoteSettings.maxConcurrentStreams, 7);
      listener.updateTls({ ...material(undefined), curves: 'prime256v1' });
      const refused = connect({ host: '127.0.0.1', port: listener.port, ...trusting, ecdhCurve: 'X25519' });
      await assert.rejects(text(refused));
    } finally {
      session.destroy();
      await listener.close(100);
    }
  });

  it('connections complete the last request and accept no further request', async () => {
    let isLast = false;
    const { listener } = await listening({ isLast: () => isLast });
    const session = await open(listener.port);
    try {
      assert.equal(await text(session.request({ ':path': '/1' })), 'ok');
      assert.equal(session.closed, false);
      isLast = true;
      const gone = new Promise((resolve) => session.once('goaway', resolve));
      assert.equal(await text(session.request({ ':path': '/2' })), 'ok');
      assert.equal(await gone, 0);
    } finally {
      session.destroy();
      await listener.close(100);
    }
  });

  it('connections close the stream of a body that is left unread, only after the complete response', async () => {
    const answer = Buffer.alloc(ANSWER_BYTES, 'a');
    const request: ListenOptions['request'] = (incoming, response) => {
      incoming.once('data', () => {
        incoming.pause();
        response.writeHead(429);
        response.end(answer);
      });
    };
    const { listener } = await listening({ request });
    // A window smaller than the response keeps the end of the response queued in the server.
    const session = await open(listener.port, { initialWindowSize: ANSWER_BYTES / 4 });
    try {
      const upload = session.request({ ':path': '/', ':method': 'POST' });
      upload.write(Buffer.alloc(1 << 20));
      const received = await buffer(upload);
      assert.ok(received.equals(answer), `${received.length} of ${ANSWER_BYTES} bytes`);
      await eventually('end of the stream', () => upload.closed);
      assert.equal(upload.rstCode, 0);
      assert.equal(session.closed, false);
    } finally {
      session.destroy();
      await listener.close(100);
    }
  });

  it('connections complete started requests while draining, and accept no new requests', async () => {
    const begun = Promise.withResolvers<void>();
    const request: ListenOptions['request'] = (incoming, response) => {
      begun.resolve();
      text(incoming).then(
        (body) => response.end(body),
        () => {},
      );
    };
    const { listener } = await listening({ request });
    const session = await open(listener.port);
    const half = session.request({ ':path': '/', ':method': 'POST' });
    half.write('half ');
    await begun.promise;
    listener.drain();
    await assert.rejects(open(listener.port), /ECONNREFUSED/);
    half.end('sent');
    assert.equal(await text(half), 'half sent');
    await listener.close(10_000);
    session.destroy();
  });
});
