/** Volumes restricted to one pod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VolumePluginsOptions } from '../../../src/kubelet/volumes/plugins.ts';
import { VolumePlugins } from '../../../src/kubelet/volumes/plugins.ts';
import type { MountRecord } from '../../../src/kubelet/volumes/records.ts';
import type { VolumeRequest } from '../../../src/kubelet/volumes/request.ts';
import { nfs } from '../../../src/kubelet/volumes/types/nfs.ts';

function lab(...accessModes: string[]) {
  const records = new Map<string, MountRecord>();
  const persistent = { metadata: { name: 'pv' }, spec: { accessModes, nfs: { server: 's', path: '/' } } };
  const plugins = new VolumePlugins({
    claims: { resolve: async () => ({ persistent, claim: { metadata: { name: 'c', namespace: 'ns' } } }) },
    records: { get: async (uid: string) => records.get(uid), all: async () => [...records.values()] },
    mounts: { isMountPoint: async () => true },
    types: new Map([
      [
        nfs,
        {
          setUp: async ({ pod, volume }: VolumeRequest) => {
            await new Promise((resolve) => setTimeout(resolve, 5));
            const uid = pod.metadata?.uid ?? '';
            const own = { kind: 'nfs', uid, volume: volume.name, name: 'pv', block: false, path: '/', claim: 'ns/c' };
            records.set(uid, own as MountRecord);
          },
        },
      ],
    ]),
  } as unknown as VolumePluginsOptions);
  const volume = { name: 'v', persistentVolumeClaim: { claimName: 'c' } };
  const setUp = (uid: string): Promise<void> => plugins.setUp({ metadata: { uid } }, volume);
  return { setUp, records };
}

test('does not set up a ReadWriteOncePod volume for a second pod at the same time', async () => {
  const { setUp, records } = lab('ReadWriteOncePod');
  const results = await Promise.allSettled([setUp('a'), setUp('b')]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  await assert.rejects(setUp('b'), /uses the ReadWriteOncePod access mode and is already in use by another pod/);
  records.delete('a');
  await setUp('b');
  await setUp('b');
});

test('shares volumes with other access modes between the pods of a node', async () => {
  const { setUp, records } = lab('ReadWriteOnce');
  await Promise.all([setUp('a'), setUp('b')]);
  assert.equal(records.size, 2);
});
