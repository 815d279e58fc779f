/** Status of the Node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { schemaOfType } from '../../../src/api/schema/index.ts';
import { DEFAULT_KUBELET_CONFIG } from '../../../src/kubelet/index.ts';
import { nodeStatus } from '../../../src/kubelet/node/node-status.ts';

test('appends conditions of the host to the conditions of the kubelet and updates them', () => {
  const more = { type: 'StoreRestored', status: 'True', reason: 'R', message: 'm' } as const;
  const at = (nowMs: number, previous: NonNullable<ReturnType<typeof nodeStatus>['conditions']>, again = more) =>
    nodeStatus({
      config: { ...DEFAULT_KUBELET_CONFIG, nodeName: 'n', nodeIps: ['10.0.0.1'] } as never,
      info: { hostname: 'n', cpus: 1, memoryBytes: 1 << 30 } as never,
      pressures: [],
      disk: { capacityBytes: 100, availableBytes: 90, inodes: 0, inodesFree: 0 },
      runtimeVersion: 'x://1',
      features: { recursiveReadOnlyMounts: true, selinux: false },
      images: [],
      port: 10250,
      notReady: undefined,
      more: [again],
      previous,
      nowMs,
    }).conditions ?? [];
  const first = at(1000, []);
  assert.deepEqual(
    first.map(({ type }) => type),
    ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready', 'StoreRestored'],
  );
  assert.equal(at(5000, first).at(-1)?.lastTransitionTime, '1970-01-01T00:00:01Z');
  const changed = at(9000, first, { ...more, status: 'False' } as never).at(-1);
  assert.deepEqual([changed?.status, changed?.lastTransitionTime], ['False', '1970-01-01T00:00:09Z']);
});

test('detects no change in fields that the API omits or defaults, such as zero sizes and runtime features', () => {
  const image = (name: string, sizeBytes: number) => ({ id: name, repoTags: [name], repoDigests: [], sizeBytes });
  const status = nodeStatus({
    config: { ...DEFAULT_KUBELET_CONFIG, nodeName: 'n', nodeIps: ['10.0.0.1'] } as never,
    info: { hostname: 'n', cpus: 1, memoryBytes: 1 << 30 } as never,
    pressures: [],
    disk: { capacityBytes: 100, availableBytes: 90, inodes: 0, inodesFree: 0 },
    runtimeVersion: 'x://1',
    features: { recursiveReadOnlyMounts: true, selinux: false },
    images: [image('empty', 0), image('full', 7)],
    port: 10250,
    notReady: undefined,
    more: [],
    previous: [],
    nowMs: 0,
  });
  assert.deepEqual(status.images, [{ names: ['full'], sizeBytes: 7 }, { names: ['empty'] }]);
  const read = structuredClone(status) as unknown as Record<string, unknown>;
  const schema = schemaOfType('io.k8s.api.core.v1.NodeStatus');
  assert.ok(schema !== undefined);
  assert.deepEqual(pruneAndCheck(schema, read).unknownFields, []);
  assert.deepEqual(read['images'], status.images);
  assert.deepEqual(read['features'], { supplementalGroupsPolicy: true });
  assert.deepEqual(read['runtimeHandlers'], [
    { name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: false } },
  ]);
});
