import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MessageReader, messagePrefix } from '../../../src/wire/grpc/messages.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { connect, remove, startHere, temporaryDirectory } from '../harness.ts';

const PROCLAMATIONS = 40;
const EVENTS = /^etcd_debugging_mvcc_events_total (\d+)$/m;

it('pauses election events for an observer that does not read, and then sends all of them', async () => {
  const data = await temporaryDirectory();
  const { server, endpoint } = await startHere(data, undefined);
  const store = connect(endpoint, undefined);
  const session = connectHttp2(endpoint);
  const proclaim = (value: Buffer) => store.commit({ guards: [], puts: [{ key: 'election/1', value }] });
  try {
    await proclaim(Buffer.from('first'));
    const path = '/v3electionpb.Election/Observe';
    const request = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
    const message = new Writer(32).latin1(1, 'election').finish();
    request.write(Buffer.concat([messagePrefix(message.length), message]));
    await once(request, 'response');
    for (let count = 0; count < PROCLAMATIONS; count += 1) await proclaim(Buffer.alloc(1_000_000, count));
    await sleep(500);
    const sent = Number(EVENTS.exec(await (await fetch(`${endpoint}/metrics`)).text())?.[1]);
    assert.ok(sent > 0 && sent < PROCLAMATIONS / 2, `${sent} proclamations were sent`);
    const reader = new MessageReader(2 << 20);
    const received: number[] = [];
    request.on('data', (bytes: Buffer) =>
      reader.push(bytes, (response) => {
        received.push(response.at(-1) as number);
        if (received.length === PROCLAMATIONS + 1) request.close();
      }),
    );
    await once(request, 'close');
    const expected = Array.from({ length: PROCLAMATIONS }, (_, count) => count);
    assert.deepEqual(received.slice(1), expected);
  } finally {
    session.destroy();
    await store.close();
    await server.stop();
    await remove(data);
  }
});
