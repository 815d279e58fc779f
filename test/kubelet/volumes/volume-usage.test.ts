import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { VolumeUsages, type VolumeUsagesOptions } from '../../../src/kubelet/volumes/usage.ts';
import { MemoryApi } from '../memory-api.ts';

test('reports a full volume without removing a condition that another client sets meanwhile', async () => {
  const api = new MemoryApi();
  const client = api.client();
  const put = (...types: string[]): void => {
    const conditions = types.map((type) => ({ type, status: 'True' }));
    api.put(resources.persistentVolumeClaims, { metadata: { name: 'c', namespace: 'ns' }, status: { conditions } });
  };
  const conditions = () => {
    const claim = api.get(resources.persistentVolumeClaims, 'ns/c');
    return claim?.status?.conditions?.map(({ type }) => type).sort();
  };
  put();
  let used = 10;
  /** Conditions that another client sets after the kubelet has read the claim. */
  let meanwhile: string[] = [];
  const record = { kind: 'local', uid: 'u', volume: 'v', name: 'pv', claim: 'ns/c', path: '/p', limitBytes: 10 };
  const usages = new VolumeUsages({
    claims: {
      claim: async () => {
        const found = await client.resource(resources.persistentVolumeClaims).get('c', 'ns');
        put(...meanwhile);
        return found;
      },
    },
    records: { all: async () => [record] },
    plugins: { isMeasured: () => false },
    host: {
      foreignFileSystem: async () => ({ capacityBytes: 100, availableBytes: 50, inodes: 9, inodesFree: 8 }),
    },
    trees: { usage: async () => new Map([['/p', used]]) },
    ...{ log: silentLog, nowMs: () => 0, pod: () => undefined },
  } as unknown as VolumeUsagesOptions);
  usages.connect(client);

  meanwhile = ['FileSystemResizePending'];
  await usages.measure();
  assert.deepEqual(conditions(), ['FileSystemResizePending', 'hyperedge.dev/VolumeFull']);
  used = 1;
  meanwhile = ['Resizing', 'hyperedge.dev/VolumeFull'];
  await usages.measure();
  assert.deepEqual(conditions(), ['Resizing']);
});
