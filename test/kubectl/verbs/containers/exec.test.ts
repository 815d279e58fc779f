/** `exec` against a server that sends the channels of a process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { REMOTE_CHANNEL } from '../../../../src/client/remote-command.ts';
import type { Session } from '../../../../src/kubectl/session.ts';
import { connectTerminal } from '../../../../src/kubectl/verbs/containers/exec.ts';

test('exec preserves the bytes of stdout and stderr, also if a message ends within a character', async () => {
  const sent = Buffer.concat([Buffer.from('ошибка: файл не найден\n'), Buffer.of(0xff, 0x00)]);
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'v5.channel.k8s.io' });
  server.on('connection', (socket) => {
    for (const byte of sent)
      for (const channel of [REMOTE_CHANNEL.stdout, REMOTE_CHANNEL.stderr]) socket.send(Buffer.of(channel, byte));
    socket.send(Buffer.concat([Buffer.of(REMOTE_CHANNEL.error), Buffer.from('{"status":"Success"}')]));
    socket.close();
  });
  await once(server, 'listening');
  const received: { out: Buffer[]; err: Buffer[] } = { out: [], err: [] };
  const session = {
    context: {
      signal: new AbortController().signal,
      io: {
        out: (bytes: Uint8Array) => void received.out.push(Buffer.from(bytes)),
        err: (bytes: Uint8Array) => void received.err.push(Buffer.from(bytes)),
        drained: () => undefined,
        isInputTerminal: false,
      },
    },
    connection: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credentials: () => ({}) },
    resource: async () => ({ group: '', version: 'v1', plural: 'pods', namespaced: true }),
  } as unknown as Session;
  try {
    const pod = { metadata: { namespace: 'shop', name: 'web' } };
    const code = await connectTerminal(session, pod, 'exec', { container: 'c', stdin: false, tty: false });
    assert.equal(code, 0);
    assert.deepEqual(Buffer.concat(received.out), sent);
    assert.deepEqual(Buffer.concat(received.err), sent);
  } finally {
    server.close();
  }
});
