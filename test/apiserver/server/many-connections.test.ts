/** Many clients that connect at the same time, as after a restart of the API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { startServer, type TestServer } from '../harness.ts';

const CLIENTS = 300;

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** Resolves when the handshake is complete, with the reason if it fails. */
function secured(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(''));
    socket.once('error', (error) => resolve(error.message));
    socket.once('close', () => resolve('closed'));
  });
}

/** Resolves with the status line of a watch, or with the reason if it fails. */
function watchOn(socket: TLSSocket, token: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (received.includes('\r\n')) resolve(received.slice(0, received.indexOf('\r\n')));
    });
    socket.once('error', (error) => resolve(error.message));
    socket.once('close', () => resolve('closed'));
    const path = '/api/v1/namespaces/default/configmaps?watch=true';
    socket.write(`GET ${path} HTTP/1.1\r\nHost: kubernetes\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  });
}

const counted = (answers: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
};

test('serves 300 concurrent connections of one client, with a watch by token on each', async () => {
  const { hostname, port } = new URL(server.url);
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  await server.call('POST', accounts, { body: { metadata: { name: 'watcher' } } });
  const { body } = await server.call<{ status: { token: string } }>('POST', `${accounts}/watcher/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  });
  const rights = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
  await server.call('POST', rights, {
    body: {
      metadata: { name: 'watcher' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'watcher', namespace: 'default' }],
    },
  });
  const options = { host: hostname, port: Number(port), ca: server.ca.certPem, servername: '' };
  const sockets = Array.from({ length: CLIENTS }, () => connect(options));
  try {
    assert.deepEqual(counted(await Promise.all(sockets.map(secured))), { '': CLIENTS });
    const answers = await Promise.all(sockets.map((socket) => watchOn(socket, body.status.token)));
    assert.deepEqual(counted(answers), { 'HTTP/1.1 200 OK': CLIENTS });
    assert.ok(sockets.every(({ destroyed }) => !destroyed));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
