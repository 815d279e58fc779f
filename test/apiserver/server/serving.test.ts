/**
 * Settings of serving: shutdown (not ready first, then requests in flight end), browsers, and the lifetime of events.
 */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect } from 'node:tls';
import type { Clock } from '../../../src/base/time/clock.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer } from '../harness.ts';

/** A duration that no other timer has. */
const DELAY_SECONDS = 12_345;
const BODY = JSON.stringify({ metadata: { name: 'late' } });

test('the API server becomes unready on shutdown, serves during the delay, and answers requests in flight', async () => {
  const delay = Promise.withResolvers<() => void>();
  const clock: Clock = {
    ...systemClock,
    setTimer: (ms, callback) => {
      if (ms !== DELAY_SECONDS * 1000) return systemClock.setTimer(ms, callback);
      delay.resolve(callback);
      return { cancel: () => {} };
    },
  };
  const server = await startServer({ clock, config: { shutdownDelaySeconds: DELAY_SECONDS } });
  const { ca, admin, port } = server;
  const socket = connect({ host: '127.0.0.1', port, ca: ca.certPem, cert: admin.certPem, key: admin.keyPem });
  const answer = text(socket);
  const head = [
    'POST /api/v1/namespaces/default/configmaps HTTP/1.1',
    'Host: x',
    'Content-Type: application/json',
    `Content-Length: ${BODY.length}`,
    'Expect: 100-continue',
  ];
  const continued = new Promise((resolve) => socket.once('data', resolve));
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await continued;
  socket.write(BODY.slice(0, 5));
  assert.equal((await server.call('GET', '/readyz')).code, 200);
  const stopped = server.server.stop();
  const ready = await server.call('GET', '/readyz?verbose');
  assert.equal(ready.code, 500);
  assert.match(ready.text, /\[-\]shutdown failed: process is shutting down/);
  assert.equal((await server.call('GET', '/livez')).code, 200);
  (await delay.promise)();
  // Waits until new connections are rejected.
  while (
    await server.call('GET', '/version').then(
      () => true,
      () => false,
    )
  );
  socket.write(BODY.slice(5));
  assert.match(await answer, /HTTP\/1\.1 201 Created[\s\S]*"name":"late"/);
  await stopped;
  await server.stop();
});

test('events expire after the configured time, or up to a minute later because events share a lease', async () => {
  const memory = createMemoryStore();
  const granted: number[] = [];
  const grantLease = (seconds: number): Promise<string> => {
    granted.push(seconds);
    return memory.grantLease(seconds);
  };
  const store = new Proxy(memory, {
    get: (target, name) => {
      const member: unknown = name === 'grantLease' ? grantLease : Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const server = await startServer({ store, config: { eventTtlSeconds: 77 } });
  try {
    granted.length = 0;
    const made = await server.call('POST', '/api/v1/namespaces/default/events', {
      body: { metadata: { name: 'e' }, involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' } },
    });
    assert.equal(made.code, 201, made.text);
    assert.ok(granted.includes(77 + 60), `${granted}`);
  } finally {
    await server.stop();
  }
});

test('sends CORS and HSTS headers to browsers', async () => {
  const browsers = { allowedOrigins: ['//good\\.test(:|$)'], transportSecurity: 'max-age=7; preload' };
  const server = await startServer({ config: { browsers } });
  try {
    const from = (origin: string) => ({ headers: { origin } });
    const allowed = await server.call('GET', '/api/v1/namespaces', from('https://good.test:8443'));
    assert.deepEqual(
      [
        allowed.code,
        allowed.headers['access-control-allow-origin'],
        allowed.headers['access-control-allow-credentials'],
        allowed.headers['strict-transport-security'],
      ],
      [200, 'https://good.test:8443', 'true', 'max-age=7; preload'],
    );
    const other = await server.call('GET', '/api/v1/namespaces', from('https://good.test.evil'));
    assert.deepEqual([other.code, other.headers['access-control-allow-origin']], [200, undefined]);
    // A preflight request, which has no credentials.
    const requested = await server.call('OPTIONS', '/api/v1/namespaces', { ...from('http://good.test'), as: null });
    assert.deepEqual(
      [requested.code, requested.headers['access-control-allow-methods']?.includes('PATCH')],
      [204, true],
    );
    const refused = await server.call('OPTIONS', '/api/v1/namespaces', { ...from('http://evil.test'), as: null });
    assert.deepEqual([refused.code, refused.headers['access-control-allow-origin']], [401, undefined]);
  } finally {
    await server.stop();
  }
});
