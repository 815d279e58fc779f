import assert from 'node:assert/strict';
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, createApiClient, isConnectionError } from '../../../src/client/index.ts';
import { createAuthority } from '../certificates.ts';
import { eventually, ManualClock } from '../clocks.ts';

describe('streams over HTTP/2', () => {
  const authority = createAuthority('test-ca');
  const alice = authority.issue('alice');
  const sessions = new Set<ServerHttp2Session>();
  const streams: ServerHttp2Stream[] = [];
  let opened = 0;
  const server = createSecureServer({
    ...authority.issue('server', { server: true }),
    ca: authority.cert,
    requestCert: true,
    settings: { maxConcurrentStreams: 3 },
  });
  server.on('session', (session) => {
    opened += 1;
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('error', () => {});
  });
  server.on('stream', (stream) => {
    streams.push(stream);
    stream.on('error', () => {});
    if (!stream.session?.socket || stream.destroyed) return;
    stream.respond({ ':status': 200, 'content-type': 'application/json' });
    stream.write('{}\n');
  });
  const clock = new ManualClock();
  let client: ApiClient;

  const stream = (signal?: AbortSignal) =>
    client.stream('GET', '/watch?watch=true', undefined, signal === undefined ? {} : { signal });
  const first = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
    for await (const chunk of body) return Buffer.from(chunk).toString();
    return '';
  };

  before(
    () =>
      new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      }),
  );
  const begin = (): void => {
    opened = 0;
    streams.length = 0;
    client = createApiClient({
      server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
      ca: authority.cert,
      cert: alice.cert,
      key: alice.key,
      userAgent: 'test/1',
      log: silentLog,
      clock,
    });
  };
  afterEach(async () => {
    await client.close();
    await eventually('the connections are closed', () => sessions.size === 0);
  });
  after(() => server.close());

  it("streams over HTTP/2 share one connection, and open a second connection at the server's stream limit", async () => {
    begin();
    await stream();
    await Promise.all([stream(), stream()]);
    assert.equal(opened, 1);
    const fourth = await stream();
    assert.equal(await first(fourth.body), '{}\n');
    assert.equal(opened, 2);
  });

  it('streams over HTTP/2 use a new connection after five minutes while open ones continue', async () => {
    begin();
    const old = await stream();
    await clock.advance(300_000);
    await stream();
    assert.equal(opened, 2);
    streams[0]?.write('more\n');
    const seen: string[] = [];
    for await (const chunk of old.body) {
      seen.push(Buffer.from(chunk).toString());
      if (seen.join('').includes('more')) break;
    }
    assert.equal(seen.join(''), '{}\nmore\n');
  });

  it('streams over HTTP/2 fail with their connection, and the next stream opens a new connection', async () => {
    begin();
    const { body } = await stream();
    for (const session of sessions) session.destroy();
    await assert.rejects(async () => {
      for await (const _ of body);
    }, isConnectionError);
    assert.equal(await first((await stream()).body), '{}\n');
    assert.equal(opened, 2);
  });

  it('streams over HTTP/2 end individually when they are aborted', async () => {
    begin();
    const controller = new AbortController();
    const { body } = await stream(controller.signal);
    const other = await stream();
    controller.abort(new Error('changed my mind'));
    await assert.rejects(
      async () => {
        for await (const _ of body);
      },
      { message: 'changed my mind' },
    );
    await eventually('the server detected the disconnect', () => streams[0]?.destroyed === true);
    assert.equal(await first(other.body), '{}\n');
    assert.equal(opened, 1);
  });
});
