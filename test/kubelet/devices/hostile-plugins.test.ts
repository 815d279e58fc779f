/** Plug-ins that register with invalid names, endpoints or identities, or do not respond. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName, toUid } from '../../../src/base/brand.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { ClaimManager } from '../../../src/kubelet/devices/claims.ts';
import type { PreparedDevice } from '../../../src/kubelet/devices/port.ts';
import type { PluginInfo, RegistrationSockets } from '../../../src/kubelet/plugins/port.ts';
import { PluginRegistrations } from '../../../src/kubelet/plugins/registrations.ts';
import { CsiDrivers } from '../../../src/kubelet/volumes/csi/drivers.ts';
import type { CsiNode, CsiNodeInfo } from '../../../src/kubelet/volumes/csi/port.ts';
import { eventually } from '../../e2e/harness.ts';
import { MemoryApi } from '../memory-api.ts';

const GOOD: PluginInfo = { type: 'CSIPlugin', name: 'csi.example.com', endpoint: '/run/c.sock', versions: ['1.0.0'] };

test('registers other plug-ins while a socket hangs, and rejects invalid responses', async () => {
  const answers: Readonly<Record<string, Partial<PluginInfo> | undefined>> = {
    '/r/00-silent': undefined,
    '/r/01-name': { name: 'a\nb' },
    '/r/02-name': { name: '' },
    '/r/03-name': { name: 'x'.repeat(1 << 20) },
    '/r/04-endpoint': { endpoint: '../../etc/passwd' },
    '/r/05-endpoint': { endpoint: '/run/a\nb.sock' },
    '/r/06-endpoint': { endpoint: `/${'x'.repeat(1 << 20)}` },
    '/r/07-versions': { versions: Array.from({ length: 65 }, () => '1.0.0') },
    '/r/08-versions': { versions: ['1'.repeat(1 << 20)] },
    '/r/09-good': {},
  };
  const notified = new Map<string, string>();
  const sockets: RegistrationSockets = {
    list: async () => new Map(Object.keys(answers).map((path) => [path, '1'])),
    info: (path) => {
      const answer = answers[path];
      return answer === undefined ? new Promise(() => {}) : Promise.resolve({ ...GOOD, ...answer });
    },
    notify: async (path, error) => void notified.set(path, error),
  };
  const registered: string[] = [];
  const registrations = new PluginRegistrations({
    directory: '/r',
    sockets,
    clock,
    log,
    fileWatch: { watch: () => ({ close: () => {} }) },
    handlers: new Map([
      ['CSIPlugin', { register: async ({ name }) => void registered.push(name), deregister: async () => {} }],
    ]),
  });
  registrations.start();
  await eventually('notification of all other members', 2_000, () => (notified.size === 9 ? true : undefined));
  registrations.stop();
  assert.deepEqual(registered, ['csi.example.com']);
  assert.equal(notified.get('/r/09-good'), '');
  for (const [path, error] of notified) {
    if (path === '/r/09-good') continue;
    assert.match(error, /^(plug-in name|endpoint|more than)/, path);
    assert.ok(error.length < 400, `${path}: ${error.length} characters`);
  }
});

test('does not poll continuously a socket that fails once and then hangs', async () => {
  let lists = 0;
  let requested = 0;
  const registrations = new PluginRegistrations({
    directory: '/r',
    clock,
    log,
    fileWatch: { watch: () => ({ close: () => {} }) },
    handlers: new Map(),
    sockets: {
      list: async () => {
        lists += 1;
        return new Map([['/r/a', '1']]);
      },
      info: () => {
        requested += 1;
        return requested === 1 ? Promise.reject(new Error('no')) : new Promise(() => {});
      },
      notify: async () => {},
    },
  });
  registrations.start();
  await eventually('the second call', 3_000, () => (requested === 2 ? true : undefined));
  await new Promise((resolve) => setTimeout(resolve, 300));
  registrations.stop();
  assert.ok(lists < 10, `${lists} lists`);
});

test('deregisters the earlier name of a plug-in that creates its socket again with another name', async () => {
  let [stamp, name] = ['1', 'a.example.com'];
  let scan = (): void => {};
  const changes: string[] = [];
  const registrations = new PluginRegistrations({
    directory: '/r',
    clock,
    log,
    fileWatch: {
      watch: (_directory, changed) => {
        scan = changed;
        return { close: () => {} };
      },
    },
    handlers: new Map([
      [
        'CSIPlugin',
        {
          register: async (plugin) => void changes.push(`+${plugin.name}`),
          deregister: async (plugin) => void changes.push(`-${plugin.name}`),
        },
      ],
    ]),
    sockets: {
      list: async () => new Map(stamp === '' ? [] : [['/r/a', stamp]]),
      info: async () => ({ ...GOOD, name }),
      notify: async () => {},
    },
  });
  const becomes = (expected: string): Promise<true> =>
    eventually(expected, 2_000, () => (changes.join(' ') === expected ? true : undefined));
  registrations.start();
  try {
    await becomes('+a.example.com');
    stamp = '2';
    scan();
    await becomes('+a.example.com +a.example.com');
    [stamp, name] = ['3', 'b.example.com'];
    scan();
    await becomes('+a.example.com +a.example.com -a.example.com +b.example.com');
    stamp = '';
    scan();
    await becomes('+a.example.com +a.example.com -a.example.com +b.example.com -b.example.com');
  } finally {
    registrations.stop();
  }
});

function lab() {
  const api = new MemoryApi();
  api.put(resources.nodes, {
    metadata: {
      name: 'n1',
      uid: 'u',
      labels: { 'kubernetes.io/hostname': 'n1', 'node-role.kubernetes.io/worker': '' },
    },
  });
  const infos = new Map<string, CsiNodeInfo>();
  const drivers = new CsiDrivers({
    nodeName: toNodeName('n1'),
    log,
    onRegistered: () => {},
    connect: (socket) =>
      ({
        capabilities: async () => new Set(),
        info: async () => infos.get(socket) ?? { nodeId: 'id', maxVolumes: 0, topology: {} },
      }) as unknown as CsiNode,
  });
  drivers.connect(api.client());
  const register = (info: Partial<CsiNodeInfo>, name = 'csi.example.com', socket = '/run/c.sock'): Promise<void> => {
    infos.set(socket, { nodeId: 'id', maxVolumes: 0, topology: {}, ...info });
    return drivers.register({ ...GOOD, name, endpoint: socket, socket });
  };
  const node = async () => (await api.client().resource(resources.nodes).get('n1')).metadata;
  return { api, drivers, register, node };
}

test('rejects a CSI driver that changes a node label or exceeds name and identity limits', async () => {
  const { register, node, api } = lab();
  await assert.rejects(
    register({ topology: { 'kubernetes.io/hostname': 'other' } }),
    /detected topology value collision: driver reported "kubernetes.io\/hostname":"other" but existing label is .*"n1"/,
  );
  await assert.rejects(register({ topology: { 'bad key!': 'x' } }), /topology segment/);
  await assert.rejects(register({ topology: { 'a.example/b': 'x\ny' } }), /topology segment/);
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`a.example/${i}`, 'x']));
  await assert.rejects(register({ topology: many }), /40 topology segments/);
  await assert.rejects(register({ nodeId: 'x'.repeat(257) }), /node ID/);
  await assert.rejects(register({ nodeId: '' }), /node ID/);
  for (const name of ['../../x', '__proto__', 'a b', 'x'.repeat(64)])
    await assert.rejects(register({}, name), /CSI driver name/);
  assert.deepEqual((await node())?.labels, { 'kubernetes.io/hostname': 'n1', 'node-role.kubernetes.io/worker': '' });
  await register({ maxVolumes: Number.MAX_SAFE_INTEGER, topology: { 'a.example/zone': 'z1' } });
  assert.equal((await node())?.labels?.['a.example/zone'], 'z1');
  const csiNode = await api.client().resource(resources.csiNodes).get('n1');
  assert.deepEqual(
    csiNode.spec.drivers.map(({ name, allocatable }) => [name, allocatable?.count]),
    [['csi.example.com', 0x7fff_ffff]],
  );
});

test('keeps the identities of drivers that register concurrently, and ignores removal of an older socket', async () => {
  const { register, node, drivers, api } = lab();
  const names = Array.from({ length: 6 }, (_, i) => `csi-${i}.example.com`);
  await Promise.all(names.map((name) => register({ nodeId: `id of ${name}` }, name, `/run/${name}.sock`)));
  const ids: unknown = JSON.parse((await node())?.annotations?.['csi.volume.kubernetes.io/nodeid'] ?? '{}');
  assert.deepEqual(ids, Object.fromEntries(names.map((name) => [name, `id of ${name}`])));
  await drivers.deregister({ ...GOOD, name: 'csi-0.example.com', socket: '/run/of-an-impostor.sock' });
  assert.equal(drivers.get('csi-0.example.com').name, 'csi-0.example.com');
  await drivers.deregister({ ...GOOD, name: 'csi-0.example.com', socket: '/run/csi-0.example.com.sock' });
  assert.throws(() => drivers.get('csi-0.example.com'), /not found/);
  assert.equal((await api.client().resource(resources.csiNodes).get('n1')).spec.drivers.length, 5);
});

test('prepares the claims of other drivers while a DRA driver does not respond', async () => {
  const api = new MemoryApi();
  const prepare = new Map<string, () => Promise<readonly PreparedDevice[]>>();
  const podWith = (driver: string, pool: string): { readonly pod: Pod; readonly container: Container } => {
    const name = `claim-${pool}`;
    const results = [{ request: 'r', driver, pool, device: 'd' }];
    const reservedFor = [{ resource: 'pods', name: pool, uid: pool }];
    api.put(resources.resourceClaims, {
      metadata: { name, namespace: 'default', uid: name },
      spec: {},
      status: { allocation: { devices: { results } }, reservedFor },
    });
    const container = { name: 'main', image: 'i', resources: { claims: [{ name: 'c' }] } };
    const spec = { containers: [container], resourceClaims: [{ name: 'c', resourceClaimName: name }] };
    return { pod: { metadata: { name: pool, namespace: 'default', uid: pool }, spec }, container };
  };
  let written = '';
  const unprepared: string[] = [];
  const claims = new ClaimManager({
    plugins: {
      plugin: (driver) => ({
        prepare: prepare.get(driver) ?? assert.fail(),
        unprepare: async ({ name }) => void unprepared.push(name),
        close: () => {},
      }),
    },
    drivers: new Map(),
    cdi: { read: async () => [] },
    log,
    checkpoint: {
      read: async () => undefined,
      write: async (content) => {
        written = content;
      },
    },
  });
  claims.connect(api.client());
  const hanging = Promise.withResolvers<readonly PreparedDevice[]>();
  prepare.set('hangs.example.com', () => hanging.promise);
  prepare.set('works.example.com', async () => [{ requests: ['r'], pool: 'b', device: 'd', cdiDevices: [] }]);
  const first = podWith('hangs.example.com', 'a');
  const second = podWith('works.example.com', 'b');
  const waiting = claims.editsFor(first.pod, first.container);
  await claims.editsFor(second.pod, second.container);
  assert.equal(claims.heldBy(second.pod, second.container).length, 1);
  await claims.release(toUid('b'));
  assert.deepEqual(unprepared, ['claim-b']);
  hanging.resolve([{ requests: ['r'], pool: 'a', device: 'd', cdiDevices: [] }]);
  await waiting;
  assert.match(written, /claim-a/);
  assert.doesNotMatch(written, /claim-b/);
  await claims.retain(new Set());
  assert.deepEqual(unprepared, ['claim-b', 'claim-a']);
});
