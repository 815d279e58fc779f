/** Refusals of requests whose body is not read, over connections that are closed after the response. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendRefusal } from '../../../src/kubelet/server/http-error.ts';
import { systemClock } from '../../client/clocks.ts';

const BODY = Buffer.alloc(32 << 20);
const READ_AFTER_MS = 200;
const UPLOADS = 5;

describe('refusals of the kubelet', () => {
  let server: Server;
  before(async () => {
    server = createServer((incoming, response) =>
      incoming.once('data', () => {
        incoming.pause();
        sendRefusal(incoming, response, 429, 'another archive is being uploaded', systemClock);
      }),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Sends a body without a pause, and reads only after a while, as a busy proxy. */
  const upload = async (): Promise<string> => {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${BODY.length}\r\n\r\n`);
    socket.write(BODY);
    await sleep(READ_AFTER_MS);
    if (socket.destroyed) return 'closed without a response';
    return text(socket).catch((error: unknown) => String(error));
  };

  it('reach a client that still sends its body', async () => {
    for (let each = 0; each < UPLOADS; each++)
      assert.match(await upload(), /^HTTP\/1.1 429 .*another archive is being uploaded\n$/s, `upload ${each}`);
  });
});
