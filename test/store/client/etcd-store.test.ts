/** The store's client when the member that it uses fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { createEtcdStore } from '../../../src/store/client/etcd-store.ts';
import { StoreError } from '../../../src/store/port.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import type { RpcListener, RpcService, UnaryCall } from '../../../src/wire/grpc/port.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { clock } from '../harness.ts';

const answer = (): Buffer => {
  const out = new Writer(64);
  const mark = out.begin(1);
  return out.int(3, 7).end(mark).finish();
};

interface Member {
  readonly listener: RpcListener;
  readonly endpoint: string;
  readonly calls: string[];
}

async function member(serve: (call: UnaryCall, listener: RpcListener) => void): Promise<Member> {
  const listener = createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog });
  const calls: string[] = [];
  const service: RpcService = {
    hasService: () => true,
    unary: (path) => (_message, call) => {
      calls.push(path.split('/').at(-1) ?? '');
      serve(call, listener);
    },
    stream: () => undefined,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  };
  const { port } = await listener.listen(service);
  return { listener, endpoint: `http://127.0.0.1:${port}`, calls };
}

test('retries a failed read on another member, but not a write with an unknown outcome', async (t) => {
  for (const kind of ['read', 'write'] as const) {
    // Closes the connection before it responds.
    const first = await member((_call, listener) => void listener.close(0));
    const second = await member((call) => call.reply(answer()));
    const store = createEtcdStore({ endpoints: [first.endpoint, second.endpoint], clock, log: silentLog });
    t.after(async () => {
      await store.close();
      await second.listener.close(0);
    });
    if (kind === 'read') {
      const { revision } = await store.get('/a');
      assert.equal(revision, 7);
      assert.deepEqual([first.calls, second.calls], [['Range'], ['Range']]);
    } else {
      const put = store.commit({ guards: [], puts: [{ key: '/a', value: Buffer.from('1') }] });
      await assert.rejects(put, (error) => error instanceof StoreError && error.code === 'unavailable');
      assert.deepEqual([first.calls, second.calls], [['Put'], []]);
    }
  }
});

test('a member that shuts down completes its calls, and new calls use another member', async (t) => {
  let held: UnaryCall | undefined;
  const first = await member((call) => {
    held = call;
  });
  const second = await member((call) => call.reply(answer()));
  const store = createEtcdStore({ endpoints: [first.endpoint, second.endpoint], clock, log: silentLog });
  t.after(async () => {
    await store.close();
    await first.listener.close(0);
    await second.listener.close(0);
  });
  const commit = (): Promise<unknown> => store.commit({ guards: [], puts: [{ key: '/a', value: Buffer.from('1') }] });
  const early = commit();
  while (held === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  const drained = first.listener.drain(5_000);
  let isDrained = false;
  void drained.then(() => {
    isDrained = true;
  });
  await commit();
  assert.equal(isDrained, false, 'a call is in progress');
  held.reply(answer());
  await early;
  await drained;
  assert.deepEqual([first.calls, second.calls], [['Put'], ['Put']]);
});
