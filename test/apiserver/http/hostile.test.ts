import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect as connectH2, constants } from 'node:http2';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { createLog } from '../../../src/base/log.ts';
import { startServer, type TestServer } from '../harness.ts';

describe('malicious and unusual clients', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  function raw(bytes: string, waitMs = 4000): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect({
        host: '127.0.0.1',
        port: server.port,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
      });
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      socket.on('error', () => resolve(text));
      socket.on('close', () => resolve(text));
      setTimeout(() => socket.destroy(), waitMs).unref();
      socket.on('secureConnect', () => socket.write(bytes));
    });
  }

  it('keeps tokens out of the log at the highest verbosity', async () => {
    const lines: string[] = [];
    const log = createLog({
      component: 'api',
      level: 10,
      sink: { write: (line) => lines.push(line) },
      nowMs: Date.now,
    });
    const talkative = await startServer({ log });
    try {
      await talkative.call('GET', '/version?pretty=true&access_token=s3cr3t.t0ken&x=1');
      const line = lines.find((each) => each.includes('/version'));
      assert.match(line ?? '', /pretty=true&access_token=…&x=1/);
      assert.ok(!lines.some((each) => each.includes('s3cr3t')));
    } finally {
      await talkative.stop();
    }
  });

  it('rejects a request with both Content-Length and Transfer-Encoding', async () => {
    const text = await raw(
      'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    assert.match(text, /^HTTP\/1\.1 400 /);
  });

  it('answers consecutive requests without a body on the same connection', async () => {
    const maps = '/api/v1/namespaces/default/configmaps';
    const bare = (method: string, path: string, more = ''): string =>
      `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
    const text = await raw(
      [
        bare('GET', '/version'),
        bare('DELETE', `${maps}/nobody`),
        bare('POST', maps, 'Content-Type: application/json\r\n'),
        bare('PATCH', `${maps}/nobody`, 'Content-Type: application/merge-patch+json\r\nContent-Encoding: gzip\r\n'),
        bare('GET', '/version', 'Connection: close\r\n'),
      ].join(''),
    );
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => code),
      ['200', '404', '400', '400', '200'],
      text,
    );
  });

  it('rejects requests with oversized headers', async () => {
    for (const length of [66_000, 70_000, 1_000_000]) {
      const text = await raw(`GET /version HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(length)}\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 431 .*$/s, `${length}`);
    }
  });

  it('rejects a body that is too large before the body has arrived, and closes the connection', async () => {
    const text = await raw(
      'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n' +
        'Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{',
    );
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /connection: close/i);
  });

  it('stops reading a chunked body at the limit', async () => {
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
    const text = await raw(
      'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n' +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(60)}`,
    );
    assert.match(text, /^HTTP\/1\.1 413 /);
  });

  it('returns an HTTP error for request paths with escapes and dot segments', async () => {
    for (const path of [
      '/api/v1/namespaces/a%2fb/pods',
      '/api/v1/namespaces/%2e%2e/secrets',
      '/api/v1/namespaces/a/pods/x%00',
      '/api/v1/../../metrics',
    ]) {
      const text = await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 40[04] /, path);
    }
  });

  const session = async (): Promise<ClientHttp2Session> => {
    const client = connectH2(server.url, {
      ca: server.ca.certPem,
      cert: server.admin.certPem,
      key: server.admin.keyPem,
    });
    client.on('error', () => {});
    await new Promise((resolve) => client.once('connect', resolve));
    return client;
  };
  const ask = (client: ClientHttp2Session, path: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ':path': path });
      let status = 0;
      let text = '';
      stream.on('response', (headers) => (status = Number(headers[':status'])));
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
      stream.on('end', () => resolve({ status, text }));
      stream.on('error', reject);
      stream.end();
    });

  it('creates no metric series for unknown subresources', async () => {
    assert.equal((await server.call('GET', '/api/v1/namespaces/default/pods/x/invented-by-a-client')).code, 404);
    const { text } = await server.call('GET', '/metrics');
    assert.match(text, /apiserver_request_total\{/);
    assert.doesNotMatch(text, /invented-by-a-client/);
  });

  it('does not call a toString field of decoded documents', async () => {
    for (const field of ['kind', 'apiVersion']) {
      for (const value of ['{"toString":1,"valueOf":2}', '[{"toString":1,"valueOf":2}]', '5', '{}']) {
        const raw = `{"metadata":{"name":"x"},"${field}":${value}}`;
        const answer = await server.call('POST', '/api/v1/namespaces/default/configmaps', { raw });
        assert.equal(answer.code, 400, `${raw}: ${answer.text}`);
      }
    }
  });

  it('serves watches to clients with read permission only', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'HEAD']) {
      const answer = await server.call(method, '/api/v1/watch/namespaces/default/pods/x', {
        ...(method === 'HEAD' ? {} : { body: {} }),
      });
      assert.equal(answer.code, 405, method);
    }
  });

  it('serves many concurrent requests over HTTP/2', async () => {
    const client = await session();
    try {
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask(client, '/api/v1/namespaces/default')));
      assert.ok(answers.every((each) => each.status === 200 && each.text.includes('"name":"default"')));
      assert.equal((await ask(client, '/nothing')).status, 404);
    } finally {
      client.destroy();
    }
  });

  it('closes a connection that resets streams rapidly, without affecting other clients', async () => {
    const other = await session();
    const attacker = await session();
    let ended = false;
    attacker.on('close', () => (ended = true));
    attacker.on('goaway', () => (ended = true));
    try {
      for (let round = 0; round < 100 && !ended; round++) {
        // Watches do not end by themselves, so each is ended by its reset.
        const streams = Array.from({ length: 100 }, () => attacker.request({ ':path': '/api/v1/pods?watch=true' }));
        // The client sends nothing for a stream that it closes while the stream waits for its turn.
        const begun = streams.map(
          (stream) =>
            new Promise<void>((resolve) => {
              for (const event of ['response', 'error', 'close']) stream.on(event, () => resolve());
            }),
        );
        await Promise.race([Promise.all(begun), sleep(5_000)]);
        for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
      }
      for (let wait = 0; wait < 100 && !ended; wait++) await sleep(20);
      assert.ok(ended, 'the attacker is still connected');
      const began = performance.now();
      assert.equal((await ask(other, '/api/v1/namespaces/default')).status, 200);
      assert.ok(performance.now() - began < 3000);
    } finally {
      attacker.destroy();
      other.destroy();
    }
  });

  it('answers every request path outside of resources', async () => {
    const version = await server.call<{ gitVersion: string }>('GET', '/version');
    assert.match(version.body.gitVersion, /^v1\.\d+\.\d+\+hyperedge/);
    assert.match((await server.call('GET', '/readyz?verbose')).text, /\[\+\]etcd ok\n[\s\S]*readyz check passed/);
    assert.equal((await server.call('GET', '/readyz/none')).code, 404);
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const step = `${path}/poststarthook/apiservice-status-remote-available-controller`;
      assert.equal((await server.call('GET', step)).text, 'ok');
      const output = (await server.call('GET', `${path}?verbose=1`)).text.split('\n');
      for (const name of [
        'poststarthook/crd-informer-synced',
        'poststarthook/storage-readiness',
        'poststarthook/start-legacy-token-tracking-controller',
        'poststarthook/start-kube-apiserver-identity-lease-controller',
        'poststarthook/start-kube-apiserver-identity-lease-garbage-collector',
        'poststarthook/peer-endpoint-reconciler-controller',
        'autoregister-completion',
      ])
        assert.ok(output.includes(`[+]${name} ok`), `${path} ${name}`);
      assert.equal(output.includes('[+]loopback-serving-certificate ok'), path !== '/readyz', path);
    }
    assert.match((await server.call('GET', '/metrics')).text, /apiserver_request_total\{.*verb="GET".*\} \d+/);
    const issuer = await server.call<{ jwks_uri: string }>('GET', '/.well-known/openid-configuration');
    assert.match(issuer.body.jwks_uri, /^https:\/\/192\.0\.2\.10:\d+\/openid\/v1\/jwks$/);
    const keys = await server.call<{ keys: { kty: string; d?: string }[] }>('GET', '/openid/v1/jwks');
    assert.deepEqual([keys.body.keys[0]?.kty, keys.body.keys[0]?.d], ['EC', undefined]);
    const discovery = await server.call<{ items: unknown[] }>('GET', '/apis', {
      headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' },
    });
    assert.ok(discovery.body.items.length > 5);
    const tag = discovery.headers.etag ?? '';
    const again = await server.call('GET', '/apis', {
      headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList', 'if-none-match': tag },
    });
    assert.equal(again.code, 304);
    const index = await server.call<{ paths: Record<string, { serverRelativeURL: string }> }>('GET', '/openapi/v3');
    const core = await server.call('GET', index.body.paths['api/v1']?.serverRelativeURL ?? '');
    assert.match(core.text, /io\.k8s\.api\.core\.v1\.Pod/);
    assert.ok(core.headers.expires !== undefined);
  });
});
