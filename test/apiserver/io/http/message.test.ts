/** Request bodies are equal whether they are read immediately without a stream, or later with one. */
import assert from 'node:assert/strict';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readBody } from '../../../../src/apiserver/http/body.ts';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/certificate.ts';

const LIMIT = 100_000;

describe('bodies of HTTP/1.1', () => {
  const streamed: boolean[] = [];
  let ca = '';
  let port = 0;
  let close = (): Promise<void> => Promise.resolve();
  before(async () => {
    const validity = lifetimeFrom(Date.now(), 1);
    const authority = await createAuthority('ca', validity);
    const pair = await issue(authority, {
      subject: { commonName: 'x' },
      usages: ['server'],
      names: { dns: [], ips: ['127.0.0.1'] },
      validity,
    });
    ca = authority.certPem;
    const listener = await createHttp().listen({
      bindAddress: '127.0.0.1',
      port: 0,
      tls: { certificate: pair.certPem, key: pair.keyPem, clientAuthorities: [ca] },
      maxHeaderBytes: 16_384,
      headersTimeoutMs: 5_000,
      keepAliveTimeoutMs: 5_000,
      request: (requested, response) => {
        const read = async (): Promise<void> => {
          if (requested.url === '/later') await sleep(50);
          const body = readBody(requested, LIMIT);
          streamed.push(requested.listenerCount('data') > 0);
          response.end(await body);
        };
        read().catch((error: { httpCode: number }) => {
          response.writeHead(error.httpCode, { connection: 'close' }).end();
        });
      },
      upgrade: (_request, socket) => socket.destroy(),
    });
    port = listener.port;
    close = () => listener.close(100);
  });
  after(() => close());

  function send(path: string, pieces: readonly Buffer[], headers: Record<string, number> = {}) {
    return new Promise<{ readonly code: number; readonly body: Buffer }>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, method: 'POST', ca, headers }, (response) => {
        const got: Buffer[] = [];
        response.on('data', (chunk: Buffer) => got.push(chunk));
        response.on('end', () => resolve({ code: response.statusCode ?? 0, body: Buffer.concat(got) }));
      });
      sent.on('error', reject);
      for (const piece of pieces) sent.write(piece);
      sent.end();
    });
  }

  const pieces = [Buffer.alloc(30_000, 'a'), Buffer.alloc(1, 'b'), Buffer.alloc(40_000, 'c')];
  const whole = Buffer.concat(pieces);

  it('reads a body of HTTP/1.1 immediately without a stream, in chunks or with a Content-Length', async () => {
    streamed.length = 0;
    assert.deepEqual((await send('/', pieces)).body, whole);
    assert.deepEqual((await send('/', pieces, { 'content-length': whole.length })).body, whole);
    assert.equal((await send('/', [], { 'content-length': 0 })).body.length, 0);
    assert.deepEqual(streamed, [false, false, false]);
  });

  it('reads a body of HTTP/1.1 after the complete body has arrived', async () => {
    streamed.length = 0;
    assert.deepEqual((await send('/later', pieces)).body, whole);
    assert.equal((await send('/later', [], { 'content-length': 0 })).body.length, 0);
    assert.equal(streamed[0], true);
  });

  it('stops reading a body of HTTP/1.1 at its limit', async () => {
    // The response 413 may be lost because the connection is reset with unread bytes, so a failed request counts as
    // 413.
    for (const path of ['/', '/later'])
      assert.equal((await send(path, [whole, whole]).catch(() => ({ code: 413 }))).code, 413, path);
  });
});
