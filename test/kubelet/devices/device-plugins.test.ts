/** Device plug-ins over real sockets: registration, allocation, health and invalid data. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import type { DeviceEndpoint } from '../../../src/kubelet/devices/endpoint.ts';
import { DeviceManager } from '../../../src/kubelet/devices/manager.ts';
import type { AllocateAnswer } from '../../../src/kubelet/devices/port.ts';
import { createPluginSockets } from '../../../src/kubelet/io/plugins/plugin-sockets.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { openChannel } from '../../../src/wire/grpc/plugin-calls.ts';
import type { RpcService, StreamCall, UnaryCall } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { eventually } from '../../e2e/harness.ts';

const RESOURCE = 'vendor.example/board';
const device = (id: string, health = 'Healthy', node?: number): Buffer => {
  const writer = new Writer(64).string(1, id).string(2, health);
  if (node !== undefined) writer.message(3, new Writer(16).message(1, new Writer(16).int(1, node).finish()).finish());
  return writer.finish();
};
const listOf = (devices: readonly Buffer[]): Buffer => {
  const writer = new Writer(64);
  for (const each of devices) writer.message(1, each);
  return writer.finish();
};
const podOf = (name: string, count: number, resource = RESOURCE): Pod => ({
  metadata: { name, namespace: 'default', uid: `uid-${name}` },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'i',
        resources: { limits: { [resource]: String(count) }, requests: { [resource]: String(count) } },
      },
    ],
  },
});

async function lab() {
  const directory = await mkdtemp(join(tmpdir(), 'dp-'));
  const files = { content: undefined as string | undefined };
  const warnings: string[] = [];
  const create = (): DeviceManager =>
    new DeviceManager({
      sockets: createPluginSockets({ clock: systemClock, log: silentLog }),
      checkpoint: {
        read: async () => files.content,
        write: async (content) => {
          files.content = content;
        },
      },
      directory,
      clock: systemClock,
      log: silentLog,
      onChanged: () => {},
      warn: (_, message) => void warnings.push(message),
    });
  const manager = create();
  await manager.start();
  let watching: StreamCall | undefined;
  let first = listOf([device('a', 'Healthy', 0), device('b')]);
  let allocations = 0;
  const allocate = (message: Uint8Array, call: UnaryCall): void => {
    allocations += 1;
    const request = new Reader(message);
    request.field();
    const inner = new Reader(request.bytes());
    inner.field();
    const path1 = `/dev/board-${inner.string()}`;
    const node = new Writer(64).string(1, path1).string(2, '/dev/null').string(3, 'rw').finish();
    const env = new Writer(64).string(1, 'BOARD').string(2, path1).finish();
    call.reply(new Writer(64).message(1, new Writer(64).message(1, env).message(3, node).finish()).finish());
  };
  const service: RpcService = {
    hasService: () => true,
    unary: (path) => (path.endsWith('/Allocate') ? allocate : undefined),
    stream: () => (call) => {
      watching = call;
      call.send(first);
      return { message: () => {}, ended: () => {}, closed: () => {}, drained: () => {} };
    },
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  };
  const listener = createRpcListener({ host: '', port: 0, path: join(directory, 'board.sock'), log: silentLog });
  await listener.listen(service);
  const channel = openChannel(join(directory, 'kubelet.sock'), systemClock, silentLog);
  const register = (version = 'v1beta1', endpoint = 'board.sock', resource = RESOURCE): Promise<Buffer> =>
    channel.unary(
      '/v1beta1.Registration/Register',
      new Writer(64).string(1, version).string(2, endpoint).string(3, resource).finish(),
      2_000,
    );
  return {
    manager,
    create,
    files,
    warnings,
    register,
    lists: (devices: readonly Buffer[]) => {
      first = listOf(devices);
      watching?.send(first);
    },
    allocations: () => allocations,
    amounts: (capacity: number, allocatable: number) =>
      eventually(`${capacity}/${allocatable}`, 5_000, () =>
        JSON.stringify(manager.amounts().get(RESOURCE)) === JSON.stringify([capacity, allocatable]) ? true : undefined,
      ),
    async stop() {
      channel.close();
      await manager.stop();
      await listener.close(0);
      await rm(directory, { recursive: true });
    },
  };
}

test('allocates a registered device to one container and keeps the allocation across a restart', async () => {
  const it = await lab();
  try {
    await it.register();
    await it.amounts(2, 2);
    const pod = podOf('one', 1);
    const [held] = await it.manager.allocate(pod, pod.spec?.containers[0] as never);
    assert.deepEqual(held?.ids, ['a']);
    assert.deepEqual(held?.edits.devices, [
      { containerPath: '/dev/board-a', hostPath: '/dev/null', permissions: 'rw' },
    ]);
    assert.deepEqual(held?.edits.env, [{ name: 'BOARD', value: '/dev/board-a' }]);
    assert.deepEqual(it.manager.heldBy(toUid('uid-one'), 'main'), [{ resource: RESOURCE, ids: ['a'], numaNodes: [0] }]);
    const second = it.manager.rejection(podOf('two', 2), [pod]);
    assert.equal(second?.reason, 'UnexpectedAdmissionError');
    assert.match(second.message, /Requested: 2, Available: 1, which is unexpected/);
    assert.equal(it.manager.rejection(podOf('two', 1), [pod]), undefined);
    await it.manager.allocate(pod, pod.spec?.containers[0] as never);
    assert.equal(it.allocations(), 1);
    it.lists([device('a', 'Unhealthy'), device('b', 'Unhealthy')]);
    await it.amounts(2, 0);
    await it.manager.stop();
    const later = it.create();
    await later.start();
    assert.equal(later.holder(RESOURCE, 'a'), 'uid-one');
    assert.deepEqual(later.amounts().get(RESOURCE), [0, 0]);
    later.retain(new Set());
    assert.equal(later.holder(RESOURCE, 'a'), undefined);
    await later.stop();
  } finally {
    await it.stop();
  }
});

test('rejects registrations with another version, without an extended resource or with a foreign socket', async () => {
  const it = await lab();
  try {
    await assert.rejects(it.register('v1alpha'), /requested API version "v1alpha" is not supported/);
    await assert.rejects(it.register('v1beta1', '../x.sock'), /endpoint "..\/x.sock" is invalid/);
    await assert.rejects(it.register('v1beta1', 'board.sock', 'cpu'), /ResourceName "cpu" is invalid/);
    await assert.rejects(it.register('v1beta1', 'board.sock', 'rig.hyperedge.dev/b'), /reserved for the fixtures/);
    assert.equal(it.manager.amounts().size, 0);
  } finally {
    await it.stop();
  }
});

for (const [what, devices, problem] of [
  ['the same device twice', [device('a'), device('a')], /device "a" is listed twice/],
  ['a negative NUMA node', [device('a', 'Healthy', -1)], /NUMA node -1 is out of range/],
  ['an empty ID', [device('')], /is empty, too long or not printable/],
  ['5000 devices', Array.from({ length: 5000 }, (_, i) => device(`d${i}`)), /5000 devices are listed, more than 4096/],
] as const) {
  test(`rejects a plug-in that lists ${what} and removes its devices from allocatable`, async () => {
    const it = await lab();
    try {
      await it.register();
      await it.amounts(2, 2);
      it.lists(devices);
      await it.amounts(2, 0);
      assert.match(it.warnings[0] ?? '', problem);
    } finally {
      await it.stop();
    }
  });
}

test('allocates devices of other resources while a plug-in does not respond', async () => {
  const it = await lab();
  try {
    const hanging = Promise.withResolvers<AllocateAnswer>();
    const answer = { env: new Map(), mounts: [], devices: [], annotations: new Map(), cdiDevices: [] };
    const endpoint = (allocate: () => Promise<AllocateAnswer>): DeviceEndpoint => ({
      preStartRequired: false,
      choose: async (available, size) => available.slice(0, size),
      allocate,
      preStart: async () => {},
      stop: () => {},
    });
    const [listed] = [{ id: 'a', health: 'Healthy', numaNodes: [] }];
    it.manager.publish(
      'vendor.example/hangs',
      [listed],
      endpoint(() => hanging.promise),
    );
    it.manager.publish(
      RESOURCE,
      [listed],
      endpoint(async () => answer),
    );
    const hangs = podOf('hangs', 1, 'vendor.example/hangs');
    const works = podOf('works', 1);
    const containerOf = ({ spec }: Pod): Container => spec?.containers[0] ?? assert.fail();
    const waiting = it.manager.allocate(hangs, containerOf(hangs));
    const [allocation] = await it.manager.allocate(works, containerOf(works));
    assert.deepEqual(allocation?.ids, ['a']);
    hanging.resolve(answer);
    assert.equal((await waiting).length, 1);
    assert.match(it.files.content ?? '', /uid-works[\s\S]*uid-hangs/);
  } finally {
    await it.stop();
  }
});
