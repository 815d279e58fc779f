import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { httpProbe } from '../../../../../src/openshift/operators/cluster-operators/io/index.ts';
import { createAuthority } from '../../../../client/certificates.ts';

test('an HTTP probe reuses its connection and accepts only a server certificate with the configured name', async () => {
  const authority = createAuthority('test-ca');
  const server = createServer(authority.issue('server', { server: true }), (_, response) => response.end('ok'));
  let handshakes = 0;
  server.on('secureConnection', () => {
    handshakes += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const ca = async (): Promise<string> => authority.cert;
    const probe = httpProbe({ url, ca });
    for (let round = 0; round < 3; round++) {
      await probe(AbortSignal.timeout(100));
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    assert.equal(handshakes, 1);
    const other = httpProbe({ url, ca, identity: '10.1.2.3' });
    await assert.rejects(other(AbortSignal.timeout(1_000)), /ERR_TLS_CERT_ALTNAME_INVALID/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
