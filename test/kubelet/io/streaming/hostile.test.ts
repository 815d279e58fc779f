/** Malformed WebSocket frames at every point of a session. An error without a listener fails these tests. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { type PodServer, startPodServer } from './pod-server.ts';

const POD = '/api/v1/namespaces/default/pods/p';
/** Reserved bits, no mask, an endless length, a close of one byte, an unknown opcode. */
const FRAMES = ['ffff00000000', '82050102030405', '82ffffffffffffffffff00000000', '88810000000001', '838000000000'];
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io', 'SPDY/3.1+portforward.k8s.io'];

describe('hostile streaming clients', { timeout: 60_000 }, () => {
  let server: PodServer;
  before(async () => {
    server = await startPodServer();
  });
  after(() => server.stop());

  /** Resolves when the server has closed the connection. */
  const talk = (first: Buffer, then: Buffer): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false }, () => {
        socket.write(first);
        if (then.length > 0) setTimeout(() => socket.write(then), 20);
      });
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(text));
    });
  const greeting = (path: string, protocol: string): Buffer =>
    Buffer.from(
      `GET ${POD}/${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    );

  for (const path of ['exec?command=cat&stdin=1&stdout=1', 'portforward?ports=1', 'portforward'])
    it(`closes only the connection with a malformed frame: ${path}`, async () => {
      const talks = FRAMES.flatMap((hex) =>
        PROTOCOLS.flatMap((protocol) => {
          const bad = Buffer.from(hex, 'hex');
          const hello = greeting(path, protocol);
          // The malformed frame is sent together with the handshake, and after it.
          return [talk(Buffer.concat([hello, bad]), Buffer.alloc(0)), talk(hello, bad)];
        }),
      );
      for (const text of await Promise.all(talks)) assert.match(text, /^(?:$|HTTP\/1\.1 (?:101|400) )/);
      assert.match(
        await talk(Buffer.from('GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), bytes()),
        /200/,
      );
    });
});

const bytes = (): Buffer => Buffer.alloc(0);
