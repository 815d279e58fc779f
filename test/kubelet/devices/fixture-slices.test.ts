/** Ownership of the ResourceSlice for a node's fixtures. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceSlice } from '../../../src/api/devices/types.ts';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { FixtureSlices } from '../../../src/kubelet/devices/fixture-slices.ts';
import type { FixtureState } from '../../../src/kubelet/devices/fixtures.ts';
import { eventually, realClock } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const NAME = 'n-rig.hyperedge.dev';
const board: FixtureState = {
  fixture: { name: 'Board_1', type: 'serial', attributes: {} },
  plugged: true,
  inUse: false,
};

test('the ResourceSlice of fixtures is owned by the Node, also after the Node is re-created', async () => {
  const api = new MemoryApi();
  let node: Node | undefined;
  let states = [board];
  const slices = new FixtureSlices({
    nodeName: toNodeName('n'),
    clock: realClock,
    log: silentLog,
    states: () => states,
    node: () => node,
  });
  const slice = (): ResourceSlice | undefined => api.get(resources.resourceSlices, NAME);
  const ownedBy = (uid: string) =>
    eventually(`a slice of ${uid}`, async () =>
      slice()?.metadata?.ownerReferences?.[0]?.uid === uid ? slice() : undefined,
    );
  try {
    slices.connect(api.client());
    slices.nodeChanged();
    assert.equal(slice(), undefined);
    node = { metadata: { name: 'n', uid: 'first' } };
    slices.nodeChanged();
    const first = await ownedBy('first');
    assert.deepEqual(first?.metadata?.ownerReferences, [
      { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'first', controller: true },
    ]);
    assert.equal(first.spec?.devices?.[0]?.name, 'board-1');
    const requests = api.requests.length;
    slices.nodeChanged();
    slices.kick();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(api.requests.length, requests, 'nothing has changed');
    node = { metadata: { name: 'n', uid: 'second' } };
    slices.nodeChanged();
    await ownedBy('second');
    api.remove(resources.resourceSlices, NAME);
    states = [{ ...board, plugged: false }];
    slices.kick();
    const again = await ownedBy('second');
    assert.equal(again?.spec?.devices?.[0]?.taints?.[0]?.key, 'rig.hyperedge.dev/unplugged');
  } finally {
    slices.stop();
  }
});
