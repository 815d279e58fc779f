import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeWatchCreate } from '../../../src/store/core/messages/watch.ts';
import { MessageReader, messagePrefix } from '../../../src/wire/grpc/messages.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { remove, startHere, temporaryDirectory } from '../harness.ts';

const REQUESTS = 200_000;
const RECEIVED = /^grpc_server_msg_received_total\{.*grpc_method="Watch".*\} (\d+)$/m;

it('pauses watch requests while the client does not read the responses, and then continues', async () => {
  const data = await temporaryDirectory();
  const { server, endpoint } = await startHere(data, undefined);
  const session = connectHttp2(endpoint);
  const received = async (): Promise<number> =>
    Number(RECEIVED.exec(await (await fetch(`${endpoint}/metrics`)).text())?.[1] ?? 0);
  try {
    const path = '/etcdserverpb.Watch/Watch';
    const request = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
    // The range is empty, so each request has one response and creates no watch.
    const message = writeWatchCreate(new Writer(32), { key: 'b', end: 'a' }).finish();
    const one = Buffer.concat([messagePrefix(message.length), message]);
    request.write(Buffer.concat(Array.from({ length: REQUESTS }, () => one)));
    let count = await received();
    for (let before = -1; count === 0 || count > before; count = await received()) {
      before = count;
      await sleep(500);
    }
    assert.ok(count < REQUESTS / 2, `${count} requests were read`);
    const reader = new MessageReader(1 << 20);
    let responses = 0;
    request.on('data', (bytes: Buffer) =>
      reader.push(bytes, () => {
        responses += 1;
        if (responses === REQUESTS) request.close();
      }),
    );
    await once(request, 'close');
    assert.equal(responses, REQUESTS);
  } finally {
    session.destroy();
    await server.stop();
    await remove(data);
  }
});
