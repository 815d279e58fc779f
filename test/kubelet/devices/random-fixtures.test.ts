/** USB device that returns with a different serial number each time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { Fixtures } from '../../../src/kubelet/devices/fixtures.ts';
import { DeviceManager } from '../../../src/kubelet/devices/manager.ts';
import { MAX_RESOURCES } from '../../../src/kubelet/devices/validate-plugin.ts';
import { keepForeignResources } from '../../../src/kubelet/node/foreign-resources.ts';
import type { Fixture } from '../../../src/rigs/fixtures-port.ts';
import { eventually } from '../lab.ts';

const serial = (name: string): Fixture => ({
  name,
  type: 'serial',
  attributes: {},
  node: { hostPath: `/dev/${name}`, containerPath: `/dev/${name}` },
});

test('fixtures use no capacity of other plug-ins, and claimed devices are kept after random changes', async () => {
  const manager = new DeviceManager({
    clock,
    log,
    directory: '/nowhere',
    onChanged: () => {},
    warn: () => {},
    sockets: {} as never,
    checkpoint: { read: async () => undefined, write: async () => {} },
  });
  let found = [serial('board'), serial('claimed')];
  let scans = 0;
  let scan = (): void => {};
  const fixtures = new Fixtures({
    manager,
    clock,
    log,
    onChanged: () => {},
    onUnplugged: () => {},
    podsOfClaim: () => [],
    scanner: {
      scan: async () => {
        scans += 1;
        return found;
      },
      watch: (listener) => {
        scan = listener;
        return { close: () => {} };
      },
    },
  });
  await fixtures.start();
  fixtures.prepare(
    { namespace: 'default', name: 'c', uid: toUid('c') },
    { request: 'r', driver: 'rig.hyperedge.dev', pool: 'n', device: 'claimed' },
  );
  for (let i = 0; i < 300; i += 1) {
    found = [serial('board'), serial(`a-${i}`)];
    const before = scans;
    scan();
    await eventually('a scan', async () => (scans > before ? true : undefined));
  }
  const names = fixtures.states().map(({ fixture }) => fixture.name);
  assert.ok(names.length < 64, `${names.length} fixtures`);
  for (const name of ['board', 'claimed', 'a-299', 'a-298']) assert.ok(names.includes(name), name);
  assert.ok(manager.amounts().size < MAX_RESOURCES / 2, `${manager.amounts().size} resources`);
  fixtures.stop();
});

test('removes stale fixture resources of the appliance instead of preserving them as patched capacity', () => {
  const stored = {
    capacity: { cpu: '4', 'rig.hyperedge.dev/a-1': '1' },
    allocatable: { 'rig.hyperedge.dev/a-1': '0' },
  };
  const own = { capacity: { cpu: '4' }, allocatable: { cpu: '4' } };
  assert.deepEqual(keepForeignResources(own, stored), { status: own, gone: ['rig.hyperedge.dev/a-1'] });
});
