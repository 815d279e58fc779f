/** The time-out of connections to kubelets, --kubelet-timeout. */
import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { it } from 'node:test';
import { startServer } from '../harness.ts';

it('a request to a kubelet that does not respond fails after the configured time', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined).resume();
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const server = await startServer({ config: { kubeletTimeoutMs: 20 } });
  try {
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: (silent.address() as AddressInfo).port } },
    };
    await server.call('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' }, status } });
    const PODS = '/api/v1/namespaces/default/pods';
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] };
    await server.call('POST', PODS, { body: { metadata: { name: 'p' }, spec } });
    const { code, body } = await server.call('GET', `${PODS}/p/log`);
    assert.ok(code >= 500, String(code));
    assert.match(String(body['message']), /did not answer within 20 ms/);
  } finally {
    await server.stop();
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
});
