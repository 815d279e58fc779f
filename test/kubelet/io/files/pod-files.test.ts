/** Files that the kubelet replaces. */
import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { toUid } from '../../../../src/base/brand.ts';
import { podFiles } from '../../../../src/kubelet/io/files/pod-files.ts';
import { PodDirectories } from '../../../../src/kubelet/pods/directories.ts';
import { type MountRecord, MountRecords } from '../../../../src/kubelet/volumes/records.ts';
import { isDurable } from '../../../../src/kubelet/volumes/types/index.ts';

const common = { uid: toUid('u'), name: 'pv', path: '/p', block: false };
const records: MountRecord[] = [
  {
    ...common,
    kind: 'csi',
    volume: 'csi',
    driver: 'd',
    volumeId: 'h',
    staging: '/s',
    target: '/t',
    attachable: true,
    republish: false,
  },
  { ...common, kind: 'iscsi', volume: 'iscsi', portals: ['192.0.2.1'], iqn: 'iqn.x', staging: '/s' },
  { ...common, kind: 'nfs', volume: 'nfs' },
];

test('mount records of CSI drivers and iSCSI targets are flushed to disk with their directories', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-records-'));
  const handle = await open(root);
  const sync = mock.method(Object.getPrototypeOf(handle), 'sync');
  await handle.close();
  try {
    const directories = new PodDirectories({ volumes: join(root, 'volumes'), podLogs: '/logs' } as never, {} as never);
    const tools = { read: (path: string) => readFile(path, 'utf8'), removeFile: (path: string) => rm(path) };
    const flushed: number[] = [];
    for (const record of records) {
      const before = sync.mock.callCount();
      await new MountRecords(directories, podFiles, tools, isDurable).put(record);
      flushed.push(sync.mock.callCount() - before);
    }
    assert.ok((flushed[0] ?? 0) > 1 && (flushed[1] ?? 0) > 0 && flushed[2] === 0, flushed.join());
    const read = await new MountRecords(directories, podFiles, tools, isDurable).all();
    assert.deepEqual(read.map(({ volume }) => volume).sort(), ['csi', 'iscsi', 'nfs']);
  } finally {
    sync.mock.restore();
    await rm(root, { recursive: true });
  }
});
