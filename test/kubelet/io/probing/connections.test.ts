import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { probeNetwork } from '../../../../src/kubelet/io/probing/index.ts';
import { MAX_PROBE_OUTPUT_BYTES } from '../../../../src/kubelet/probes/port.ts';
import { createAuthority } from '../../../client/certificates.ts';

test('failed TCP probes name the refusing address; HTTP probes return redirects and truncated bodies', async () => {
  const agents: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    agents.push(request.headers['user-agent']);
    if (request.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.end('x'.repeat(10 * MAX_PROBE_OUTPUT_BYTES));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const get = (path: string, signal = AbortSignal.timeout(10_000)) =>
    probeNetwork.httpGet(new URL(path, `http://127.0.0.1:${port}`), { 'user-agent': 'kube-probe/1.36' }, signal);
  await probeNetwork.connect('127.0.0.1', port, 10_000);
  assert.deepEqual(await get('/moved'), { code: 302, location: '/elsewhere', body: '' });
  const { code, body } = await get('/');
  assert.deepEqual([code, body.length], [200, MAX_PROBE_OUTPUT_BYTES]);
  assert.deepEqual(agents, ['kube-probe/1.36', 'kube-probe/1.36']);
  await assert.rejects(get('/', AbortSignal.abort()), /context deadline exceeded/);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  await assert.rejects(probeNetwork.connect('127.0.0.1', port, 10_000), {
    message: new RegExp(`^dial tcp 127\\.0\\.0\\.1:${port}: connect ECONNREFUSED`),
  });
});

test('HTTPS probes resume the previous TLS session on new connections', async () => {
  const resumed: boolean[] = [];
  const server = createTlsServer(
    createAuthority('probing test').issue('server', { server: true }),
    (_request, response) => response.end('ok'),
  );
  server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(`https://127.0.0.1:${port}/healthz`);
  for (let count = 0; count < 3; count++) {
    const { code } = await probeNetwork.httpGet(url, { connection: 'close' }, AbortSignal.timeout(10_000));
    assert.equal(code, 200);
  }
  assert.deepEqual(resumed, [false, true, true]);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});
