/** The node enforces exclusive use of fixtures, independent of scheduling. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { fixtureDevices } from '../../../src/kubelet/devices/fixture-slices.ts';
import { Fixtures } from '../../../src/kubelet/devices/fixtures.ts';
import { DeviceManager } from '../../../src/kubelet/devices/manager.ts';
import type { Fixture } from '../../../src/rigs/fixtures-port.ts';

const RESOURCE = 'rig.hyperedge.dev/Board_1';
const board = {
  ...({ name: 'Board_1', type: 'serial', attributes: {} } as const),
  node: { hostPath: '/dev/ttyUSB0', containerPath: '/dev/ttyUSB0' },
};
const container = { name: 'main', resources: { limits: { [RESOURCE]: '1' }, requests: { [RESOURCE]: '1' } } };
const pod = (name: string): Pod =>
  ({ metadata: { name, namespace: 'default', uid: name }, spec: { containers: [container] } }) as never;
const claim = (name: string) => ({ namespace: 'default', name, uid: toUid(name) });
const result = { request: 'r', driver: 'rig.hyperedge.dev', pool: 'n', device: 'board-1' };

async function lab(found: readonly Fixture[] = [board]) {
  const manager = new DeviceManager({
    clock,
    log: silentLog,
    directory: '/nowhere',
    onChanged: () => {},
    warn: () => {},
    sockets: {} as never,
    checkpoint: { read: async () => undefined, write: async () => {} },
  });
  const fixtures = new Fixtures({
    manager,
    clock,
    log: silentLog,
    onChanged: () => {},
    onUnplugged: () => {},
    podsOfClaim: () => [],
    scanner: { scan: async () => found, watch: () => ({ close: () => {} }) },
  });
  await fixtures.start();
  return { manager, fixtures };
}

test('assigns a fixture to one claim, and as an extended resource to a pod after the claim is released', async () => {
  const { manager, fixtures } = await lab();
  try {
    assert.deepEqual(fixtures.prepare(claim('one'), result).env, [{ name: 'RIG_BOARD_1', value: '/dev/ttyUSB0' }]);
    assert.throws(() => fixtures.prepare(claim('two'), result), /fixture Board_1 is in use by claim default\/one/);
    assert.deepEqual(manager.amounts().get(RESOURCE), [1, 0]);
    assert.equal(manager.rejection(pod('p'), [])?.reason, 'UnexpectedAdmissionError');
    await assert.rejects(manager.allocate(pod('p'), container as unknown as Container), /Requested: 1, Available: 0/);
    fixtures.unprepare(claim('one'));
    assert.equal(manager.rejection(pod('p'), []), undefined);
    await manager.allocate(pod('p'), container as unknown as Container);
    assert.equal(manager.rejection(pod('q'), [pod('p')])?.reason, 'UnexpectedAdmissionError');
    assert.throws(() => fixtures.prepare(claim('two'), result), /fixture Board_1 is in use by pod p/);
    assert.equal(fixtures.states()[0]?.inUse, true);
  } finally {
    fixtures.stop();
  }
});

test('admin access to a fixture does not wait for its holder and does not take the fixture', async () => {
  const { manager, fixtures } = await lab();
  try {
    await manager.allocate(pod('p'), container as unknown as Container);
    assert.equal(fixtures.prepare(claim('admin'), { ...result, adminAccess: true }).devices.length, 1);
    manager.release(toUid('p'));
    fixtures.prepare(claim('one'), result);
    fixtures.unprepare(claim('admin'));
    assert.throws(() => fixtures.prepare(claim('two'), result), /in use by claim default\/one/);
  } finally {
    fixtures.stop();
  }
});

test('prepares the fixture in the ResourceSlice when several fixtures have the same device name', async () => {
  const at = (name: string, path: string): Fixture => ({
    name,
    type: 'serial',
    attributes: {},
    node: { hostPath: path, containerPath: path },
  });
  const { fixtures } = await lab([at('board.1', '/dev/ttyUSB0'), at('BOARD.1', '/dev/ttyUSB1')]);
  try {
    const [described] = fixtureDevices(fixtures.states());
    assert.deepEqual(described?.attributes?.['path'], { string: '/dev/ttyUSB1' });
    const { devices } = fixtures.prepare(claim('one'), result);
    assert.match(JSON.stringify(devices), /ttyUSB1/);
    assert.doesNotMatch(JSON.stringify(devices), /ttyUSB0/);
  } finally {
    fixtures.stop();
  }
});
