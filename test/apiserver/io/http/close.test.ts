import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:https';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/index.ts';

test('closing the server waits only for requests in flight', async () => {
  const ca = await createAuthority('ca', lifetimeFrom(Date.now(), 10));
  const pair = await issue(ca, {
    subject: { commonName: 's' },
    usages: ['server'],
    names: { dns: [], ips: ['127.0.0.1'] },
    validity: lifetimeFrom(Date.now(), 5),
  });
  let finish = (): void => {};
  const arrived = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const listener = await createHttp().listen({
    bindAddress: '127.0.0.1',
    port: 0,
    tls: { certificate: pair.certPem, key: pair.keyPem, clientAuthorities: [ca.certPem] },
    maxHeaderBytes: 16_384,
    headersTimeoutMs: 10_000,
    keepAliveTimeoutMs: 60_000,
    request: (incoming, response) => {
      if (incoming.url === '/slow') {
        finish();
        setTimeout(() => response.end('late'), 300);
      } else response.end('now');
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const options = { host: '127.0.0.1', port: listener.port, ca: ca.certPem };
  // One silent connection, one kept alive after a response, and one with a request in flight.
  const silent = connect(options);
  await once(silent, 'secureConnect');
  const { Agent } = await import('node:https');
  const agent = new Agent({ keepAlive: true });
  const get = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      request({ ...options, path, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      })
        .on('error', reject)
        .end();
    });
  assert.equal(await get('/fast'), 'now');
  const slow = get('/slow');
  await arrived;
  const began = performance.now();
  const gone = once(silent.resume(), 'close');
  await listener.close(10_000);
  assert.equal(await slow, 'late');
  await gone;
  const tookMs = performance.now() - began;
  assert.ok(tookMs > 200 && tookMs < 3_000, `${tookMs} ms`);
  agent.destroy();
});
