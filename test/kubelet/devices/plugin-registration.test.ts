/** Registration of CSI drivers, device plug-ins and DRA drivers in one directory, over real sockets. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AllocationResult } from '../../../src/api/devices/types.ts';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName, toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { ClaimManager } from '../../../src/kubelet/devices/claims.ts';
import { DraPlugins } from '../../../src/kubelet/devices/dra-plugins.ts';
import type { DeviceEndpoint } from '../../../src/kubelet/devices/endpoint.ts';
import { DeviceManager } from '../../../src/kubelet/devices/manager.ts';
import { SliceWiping } from '../../../src/kubelet/devices/slice-wiping.ts';
import { createFileWatch } from '../../../src/kubelet/io/host-facts/watch.ts';
import { createRegistrationSockets } from '../../../src/kubelet/io/plugins/plugin-registration.ts';
import { createPluginSockets } from '../../../src/kubelet/io/plugins/plugin-sockets.ts';
import { type PluginHandler, PluginRegistrations } from '../../../src/kubelet/plugins/registrations.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { openChannel } from '../../../src/wire/grpc/plugin-calls.ts';
import type { RpcListener } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { eventually } from '../../e2e/harness.ts';
import { MemoryApi } from '../memory-api.ts';

const EMPTY = Buffer.alloc(0);
const options = { clock, log: silentLog };
type Answer = (message: Uint8Array) => Buffer;

/** `called` receives the full names of the called methods. */
async function serve(
  path: string,
  methods: Readonly<Record<string, Answer>>,
  called: string[],
  list?: Buffer,
): Promise<RpcListener> {
  const listener = createRpcListener({ host: '', port: 0, path, log: silentLog });
  await listener.listen({
    hasService: () => true,
    unary: (method) => {
      called.push(method);
      const answer = methods[method.slice(method.lastIndexOf('/') + 1)];
      return answer === undefined ? undefined : (message, call) => call.reply(answer(message));
    },
    stream: () => (call) => {
      if (list !== undefined) call.send(list);
      return { message: () => {}, ended: () => {}, closed: () => {}, drained: () => {} };
    },
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  });
  return listener;
}

async function lab() {
  const directory = await mkdtemp(join(tmpdir(), 'reg-'));
  const registry = join(directory, 'plugins_registry');
  await mkdir(registry);
  const sockets = createPluginSockets(options);
  const changes: string[] = [];
  const csi: PluginHandler = {
    register: async ({ name, socket }) => void changes.push(`+${name} ${socket}`),
    deregister: async ({ name }) => void changes.push(`-${name}`),
  };
  const devices = new DeviceManager({
    sockets,
    clock,
    log: silentLog,
    directory,
    onChanged: () => {},
    warn: () => {},
    checkpoint: { read: async () => undefined, write: async () => {} },
  });
  const dra = new DraPlugins({ sockets, log: silentLog, onChanged: () => {} });
  const registrations = new PluginRegistrations({
    directory: registry,
    fileWatch: createFileWatch(),
    clock,
    log: silentLog,
    sockets: createRegistrationSockets(options),
    handlers: new Map([
      ['CSIPlugin', csi],
      ['DevicePlugin', devices],
      ['DRAPlugin', dra],
    ]),
  });
  registrations.start();
  const listeners: RpcListener[] = [];
  const notified = new Map<string, string>();
  const called: string[] = [];
  return {
    directory,
    registry,
    changes,
    called,
    devices,
    dra,
    notified,
    sockets,
    async plugIn(type: string, name: string, versions: string, methods: Record<string, Answer>, list?: Buffer) {
      const path = join(registry, `${name.replaceAll('/', '-')}-${listeners.length}.sock`);
      const NotifyRegistrationStatus = (message: Uint8Array): Buffer => {
        const reader = new Reader(message);
        let error = '';
        for (let field = reader.field(); field !== 0; field = reader.field()) {
          if (field === 2) error = reader.string();
          else reader.skip();
        }
        notified.set(path, error);
        return EMPTY;
      };
      const info = new Writer(128).string(1, type).string(2, name);
      for (const version of versions.split(' ')) info.string(4, version);
      const about = info.finish();
      const answers = { ...methods, GetInfo: () => about, NotifyRegistrationStatus };
      listeners.push(await serve(path, answers, called, list));
      return path;
    },
    answer: (path: string) => eventually(`answer to ${path}`, 5_000, () => notified.get(path)),
    async stop() {
      registrations.stop();
      dra.stop();
      await devices.stop();
      for (const listener of listeners) await listener.close(0);
      await rm(directory, { recursive: true });
    },
  };
}

const pod = {
  metadata: { name: 'p', namespace: 'default', uid: 'pod-1' },
  spec: {
    containers: [{ name: 'main', image: 'i', resources: { claims: [{ name: 'gpu' }] } }],
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }],
  },
} as unknown as Pod;

/** Driver that prepares every claim with these devices. */
function driver(...devices: readonly Buffer[]): Record<string, Answer> {
  const answer = (inner: Buffer): Answer => {
    return (message) => {
      const request = new Reader(message);
      request.field();
      const claim = new Reader(request.bytes());
      let uid = '';
      for (let field = claim.field(); field !== 0; field = claim.field()) {
        if (field === 2) uid = claim.string();
        else claim.skip();
      }
      return new Writer(64).message(1, new Writer(64).string(1, uid).message(2, inner).finish()).finish();
    };
  };
  const prepared = new Writer(64);
  for (const device of devices) prepared.message(1, device);
  return { NodePrepareResources: answer(prepared.finish()), NodeUnprepareResources: answer(EMPTY) };
}

function claimManager(dra: DraPlugins, shareIDs: readonly string[]): ClaimManager {
  const result = { request: 'gpu', driver: 'gpu.example.com', pool: 'n', device: 'gpu-0' };
  return managerOf(
    dra,
    shareIDs.map((shareID) => ({ ...result, shareID })),
  );
}

function managerOf(dra: DraPlugins, results: AllocationResult[]): ClaimManager {
  const api = new MemoryApi();
  api.put(resources.resourceClaims, {
    metadata: { name: 'shared', namespace: 'default', uid: 'claim-1' },
    spec: {},
    status: {
      allocation: { devices: { results } },
      reservedFor: [{ resource: 'pods', name: 'p', uid: 'pod-1' }],
    },
  });
  const manager = new ClaimManager({
    plugins: dra,
    drivers: new Map(),
    cdi: { read: async () => [] },
    log: silentLog,
    checkpoint: { read: async () => undefined, write: async () => {} },
  });
  manager.connect(api.client());
  return manager;
}

test('passes each type of plug-in to its handler, and removes the plug-in with its socket', async () => {
  const it = await lab();
  try {
    const csi = await it.plugIn('CSIPlugin', 'disk.example.com', '1.0.0', {});
    const board = new Writer(32).string(1, 'a').string(2, 'Healthy').finish();
    const list = new Writer(32).message(1, board).finish();
    const methods = { GetDevicePluginOptions: () => EMPTY };
    const device = await it.plugIn('DevicePlugin', 'example.com/board', 'v1beta1', methods, list);
    const dra = await it.plugIn('DRAPlugin', 'gpu.example.com', 'v1.DRAPlugin', {});
    for (const path of [csi, device, dra]) assert.equal(await it.answer(path), '');
    const amounts = () => it.devices.amounts().get('example.com/board')?.join('/');
    await eventually('the board', 5_000, () => (amounts() === '1/1' ? true : undefined));
    assert.ok(it.dra.plugin('gpu.example.com') !== undefined);
    for (const path of [csi, device, dra]) await unlink(path);
    await eventually('the end of the driver', 5_000, () =>
      it.dra.plugin('gpu.example.com') === undefined ? true : undefined,
    );
    await eventually('the end of the board', 5_000, () => (amounts() === '1/0' ? true : undefined));
    assert.deepEqual(it.changes, [`+disk.example.com ${csi}`, '-disk.example.com']);
  } finally {
    await it.stop();
  }
});

test('notifies a rejected plug-in of the reason', async () => {
  const it = await lab();
  try {
    const old = await it.plugIn('DRAPlugin', 'gpu.example.com', 'v1alpha3.Node', {});
    assert.match(await it.answer(old), /none of the services \["v1alpha3.Node"\] is supported/);
    const named = await it.plugIn('DRAPlugin', 'Gpu_Driver', 'v1.DRAPlugin', {});
    assert.match(await it.answer(named), /"Gpu_Driver" is not a DNS subdomain/);
    const cpu = await it.plugIn('DevicePlugin', 'cpu', 'v1beta1', {});
    assert.match(await it.answer(cpu), /ResourceName "cpu" is invalid/);
    const alpha = await it.plugIn('DevicePlugin', 'example.com/board', 'v1alpha', {});
    assert.match(await it.answer(alpha), /v1beta1, is not among plugin supported versions \["v1alpha"\]/);
    const rig = await it.plugIn('DRAPlugin', 'rig.hyperedge.dev', 'v1.DRAPlugin', {});
    assert.match(await it.answer(rig), /reserved for the fixtures of this node/);
    const fixture = await it.plugIn('DevicePlugin', 'rig.hyperedge.dev/board', 'v1beta1', {});
    assert.match(await it.answer(fixture), /reserved for the fixtures of this node/);
    assert.equal(it.devices.amounts().size, 0);
  } finally {
    await it.stop();
  }
});

test('uses the newer of two plug-ins of a driver, and the older plug-in after the newer one is removed', async () => {
  const it = await lab();
  try {
    await it.answer(await it.plugIn('DRAPlugin', 'gpu.example.com', 'v1.DRAPlugin', {}));
    const older = it.dra.plugin('gpu.example.com');
    const second = await it.plugIn('DRAPlugin', 'gpu.example.com', 'v1.DRAPlugin', {});
    await it.answer(second);
    assert.notEqual(it.dra.plugin('gpu.example.com'), older);
    await unlink(second);
    await eventually('the older object', 5_000, () => (it.dra.plugin('gpu.example.com') === older ? true : undefined));
  } finally {
    await it.stop();
  }
});

test('prepares device shares through the driver and shows the shares in the pod-resources API', async () => {
  const it = await lab();
  const share = (id: string) =>
    new Writer(64).string(1, 'gpu').string(2, 'n').string(3, 'gpu-0').string(5, id).finish();
  try {
    const methods = driver(share('first'), share('second'));
    await it.answer(await it.plugIn('DRAPlugin', 'gpu.example.com', 'v1.DRAPlugin', methods));
    const container = pod.spec?.containers[0] as Container;
    await assert.rejects(
      claimManager(it.dra, ['first']).editsFor(pod, container),
      /driver gpu.example.com: device n\/gpu-0 was not allocated to the claim/,
    );
    const manager = claimManager(it.dra, ['first', 'second']);
    await manager.editsFor(pod, container);
    const dynamic = manager.heldBy(pod, container);
    assert.deepEqual(
      dynamic.map(({ shareId }) => shareId),
      ['first', 'second'],
    );
    const socket = join(it.directory, 'pod-resources.sock');
    const list = () => [{ name: 'p', namespace: 'default', containers: [{ name: 'main', devices: [], dynamic }] }];
    const served = await it.sockets.servePodResources(socket, { list, allocatable: () => [] });
    const channel = openChannel(socket, clock, silentLog);
    const answer = await channel.unary('/v1.PodResourcesLister/List', EMPTY, 2_000);
    channel.close();
    await served.close();
    for (const id of ['first', 'second']) assert.ok(answer.includes(new Writer(16).string(5, id).finish()));
    await manager.release(toUid('pod-1'));
    assert.deepEqual(manager.heldBy(pod, container), []);
  } finally {
    await it.stop();
  }
});

test('gives extended resources of a claim to the mapped containers with a v1beta1 driver', async () => {
  const it = await lab();
  const prepared = (request: string, device: string) =>
    new Writer(64).string(1, request).string(2, 'n').string(3, device).finish();
  try {
    const methods = driver(prepared('container-0-request-0', 'gpu-0'), prepared('container-1-request-0', 'gpu-1'));
    const versions = 'v2.DRAPlugin v1beta1.DRAPlugin v1.DRAPlugin';
    assert.equal(await it.answer(await it.plugIn('DRAPlugin', 'gpu.example.com', versions, methods)), '');
    const containers = ['a', 'b', 'c'].map((name) => ({
      name,
      image: 'i',
      resources: name === 'c' ? {} : { requests: { 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '1' } },
    }));
    const requestMappings = ['a', 'b'].map((containerName, index) => {
      return { containerName, resourceName: 'example.com/gpu', requestName: `container-${index}-request-0` };
    });
    const extended = {
      metadata: { name: 'p', namespace: 'default', uid: 'pod-1' },
      spec: { containers },
      status: { extendedResourceClaimStatus: { resourceClaimName: 'shared', requestMappings } },
    } as Pod;
    const manager = managerOf(
      it.dra,
      ['gpu-0', 'gpu-1'].map((device, index) => {
        return { request: `container-${index}-request-0`, driver: 'gpu.example.com', pool: 'n', device };
      }),
    );
    const held: string[] = [];
    for (const container of containers) {
      await manager.editsFor(extended, container);
      held.push(
        manager
          .heldBy(extended, container)
          .map(({ device }) => device)
          .join(),
      );
    }
    assert.deepEqual(held, ['gpu-0', 'gpu-1', '']);
    assert.ok(it.called.includes('/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources'));
    // A device plug-in for the same resource is not used.
    it.devices.publish('example.com/gpu', [], { stop: () => {} } as DeviceEndpoint);
    assert.equal(it.devices.rejection(extended, []), undefined);
    assert.deepEqual(await it.devices.allocate(extended, containers[0] as Container), []);
    const plain = { ...extended, status: {} };
    assert.match(it.devices.rejection(plain, [])?.message ?? '', /Requested: 2, Available: 0/);
  } finally {
    await it.stop();
  }
});

test('deletes the slices of a missing driver on this node only', async () => {
  const api = new MemoryApi();
  for (const [name, nodeName, owner] of [
    ['here', 'n', 'gone.example.com'],
    ['kept', 'n', 'gpu.example.com'],
    ['other', 'm', 'gone.example.com'],
  ] as const)
    api.put(resources.resourceSlices, { metadata: { name }, spec: { nodeName, driver: owner } });
  const due: (() => void)[] = [];
  const wiping = new SliceWiping({
    nodeName: toNodeName('n'),
    log: silentLog,
    isPresent: (name) => name === 'gpu.example.com',
    clock: {
      ...clock,
      setTimer: (_, run) => {
        due.push(run);
        return { cancel: () => {} };
      },
    },
  });
  wiping.connect(api.client());
  wiping.changed();
  assert.equal(due.length, 1);
  due[0]?.();
  await eventually('the slice to be deleted', 5_000, () =>
    api.get(resources.resourceSlices, 'here') === undefined ? true : undefined,
  );
  assert.ok(api.get(resources.resourceSlices, 'kept') !== undefined);
  assert.ok(api.get(resources.resourceSlices, 'other') !== undefined);
});

test('registers a plug-in at a path that exceeds the length of a socket address', async () => {
  const { registry, changes, plugIn, stop } = await lab();
  try {
    const near = await plugIn('CSIPlugin', 'far.example.com', '1.0.0', {});
    await eventually('the plug-in to be registered', 5_000, () => (changes.length === 1 ? true : undefined));
    const far = join(registry, `${'x'.repeat(72)}-reg.sock`);
    assert.ok(far.length > 107);
    await rename(near, far);
    await eventually('the plug-in at its other path', 5_000, () => (changes.length === 3 ? true : undefined));
    assert.deepEqual(changes.slice(1), ['-far.example.com', `+far.example.com ${far}`]);
  } finally {
    await stop();
  }
});
