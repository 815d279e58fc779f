import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/certificate.ts';

const validity = lifetimeFrom(Date.now(), 1);

async function listening(
  headersTimeoutMs: number,
  more: { readonly withoutHttp2?: boolean; readonly maxHeaderBytes?: number } = {},
) {
  const ca = await createAuthority('ca', validity);
  const pair = await issue(ca, {
    subject: { commonName: 'x' },
    usages: ['server'],
    names: { dns: [], ips: ['127.0.0.1'] },
    validity,
  });
  const chains: (number | undefined)[] = [];
  const listener = await createHttp().listen({
    bindAddress: '127.0.0.1',
    port: 0,
    tls: { certificate: pair.certPem, key: pair.keyPem, clientAuthorities: [ca.certPem] },
    maxHeaderBytes: 16_384,
    headersTimeoutMs,
    keepAliveTimeoutMs: 5_000,
    request: (_request, response, connection) => {
      chains.push(connection.peerChain?.length);
      response.end('ok');
    },
    upgrade: (_request, socket) => socket.destroy(),
    ...more,
  });
  return { ca, listener, chains };
}

const talk = (port: number, bytes: string, options: object = {}): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.write(bytes);
  });

describe('listener', () => {
  it('serves only HTTP/1.1 if configured', async () => {
    const { listener } = await listening(5_000, { withoutHttp2: true });
    try {
      const spoken = (protocols: string[]): Promise<string | false | null> =>
        new Promise((resolve, reject) => {
          const options = { host: '127.0.0.1', port: listener.port, rejectUnauthorized: false };
          const socket = connect({ ...options, ALPNProtocols: protocols }, () => {
            resolve(socket.alpnProtocol);
            socket.destroy();
          });
          socket.on('error', reject);
        });
      assert.equal(await spoken(['h2', 'http/1.1']), 'http/1.1');
      assert.equal(await spoken([]), false);
      await assert.rejects(spoken(['h2']), /no application protocol/);
      assert.match(
        await talk(listener.port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
        /^HTTP\/1\.1 200 /,
      );
    } finally {
      await listener.close(100);
    }
  });

  it('closes a connection whose request header does not arrive in time', async () => {
    const { listener } = await listening(600);
    try {
      const began = performance.now();
      const text = await talk(listener.port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
      assert.match(text, /^HTTP\/1\.1 408 /);
      assert.ok(performance.now() - began < 5_000);
    } finally {
      await listener.close(100);
    }
  });

  it('responds to request headers above the limit while the client is still sending', async () => {
    const { listener } = await listening(5_000, { maxHeaderBytes: 65_536 });
    try {
      for (const kilobytes of [70, 120, 4_000]) {
        const header = `X: ${'y'.repeat(1_020)}\r\n`.repeat(kilobytes);
        const text = await talk(listener.port, `GET / HTTP/1.1\r\nHost: x\r\n${header}\r\n`);
        assert.match(text, /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/, `${kilobytes} KB`);
        assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1);
      }
      assert.match(await talk(listener.port, 'GE(T / HTTP/1.1\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\n/);
    } finally {
      await listener.close(100);
    }
  });

  it('rejects a request whose HTTP version differs from the negotiated version', async () => {
    const { listener } = await listening(5_000);
    try {
      for (const version of ['2.0', '0.9']) {
        const plain = await talk(listener.port, `GET / HTTP/${version}\r\nHost: x\r\n\r\n`);
        assert.match(plain, /^HTTP\/1\.1 505 /);
        const upgrade = `GET / HTTP/${version}\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
        assert.match(await talk(listener.port, upgrade), /^HTTP\/1\.1 505 /);
      }
      assert.match(await talk(listener.port, 'GET / HTTP/1.0\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 200 /);
    } finally {
      await listener.close(100);
    }
  });

  it('reports the certificate chain of a client only if it ends at a configured CA, and reloads the CAs', async () => {
    const { listener, ca, chains } = await listening(5_000);
    const other = await createAuthority('other', validity);
    const client = await issue(other, { subject: { commonName: 'c' }, usages: ['client'], validity });
    const certificate = { cert: client.certPem, key: client.keyPem };
    const get = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    try {
      await talk(listener.port, get, certificate);
      assert.deepEqual(chains, [undefined]);
      const next = await issue(ca, {
        subject: { commonName: 'y' },
        usages: ['server'],
        names: { dns: [], ips: ['127.0.0.1'] },
        validity,
      });
      listener.updateTls({
        certificate: next.certPem,
        key: next.keyPem,
        clientAuthorities: [ca.certPem, other.certPem],
      });
      await talk(listener.port, get, certificate);
      assert.ok((chains[1] ?? 0) >= 1);
    } finally {
      await listener.close(100);
    }
  });
});

describe('back ends', () => {
  it('a request to a back end checks the address that its name resolves to', async () => {
    const server = createServer((_request, response) => response.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const ask = (host: string, allowed: boolean) =>
      createHttp().backends.request(
        {
          network: 'cluster',
          scheme: 'http',
          host,
          port,
          method: 'GET',
          path: '/',
          headers: {},
          allowAddress: (address) => allowed || !address.startsWith('127.'),
          connectTimeoutMs: 2_000,
          signal: new AbortController().signal,
        },
        undefined,
      );
    try {
      await assert.rejects(ask('127.0.0.1', false), { code: 'address-refused' });
      await assert.rejects(
        ask('localhost', false),
        (error: { code?: string }) => error.code === 'address-refused' || error.code === 'connect-failed',
      );
      const response = await ask('127.0.0.1', true);
      assert.equal(response.statusCode, 200);
      response.resume();
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
