/** Volumes of the embedded provisioner with real directories and mounts. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { PROVISIONED_BY } from '../../../src/api/volumes/binding.ts';
import { LOCAL_PROVISIONER } from '../../../src/api/volumes/local-provisioner.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { createVolumeTools } from '../../../src/kubelet/io/volume-tools/volume-tools.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import { MountRecords, type PlainMount } from '../../../src/kubelet/volumes/records.ts';
import type { VolumeRequest } from '../../../src/kubelet/volumes/request.ts';
import { isDurable } from '../../../src/kubelet/volumes/types/index.ts';
import { LocalVolumes } from '../../../src/kubelet/volumes/types/local.ts';

const run = promisify(execFile);
const mounts = createMounter();
let root: string;
let volumes: LocalVolumes;
let records: MountRecords;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-local-volumes-'));
  for (const name of ['disk', 'local-volumes']) await mkdir(join(root, name));
  const directories = new PodDirectories(
    { volumes: join(root, 'volumes'), localVolumes: join(root, 'local-volumes') } as never,
    {} as never,
  );
  const files = createKubeletFiles(mounts);
  const tools = createVolumeTools({ createdVolumes: join(root, 'etc/created'), log: silentLog });
  records = new MountRecords(directories, files.pods, tools, isDurable);
  volumes = new LocalVolumes({ records, directories, foreign: files.foreign, mounts, tools, log: silentLog });
});
afterEach(async () => {
  await mounts.unmountTree(root);
  await rm(root, { recursive: true, force: true });
});

const request = (uid: string, volumeMode = 'Filesystem'): VolumeRequest => ({
  pod: { metadata: { uid }, spec: { containers: [] } },
  volume: { name: 'data' },
  persistent: {
    metadata: { name: 'pvc-1', annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER } },
    spec: { capacity: { storage: '1Mi' }, volumeMode, local: { path: join(root, 'local-volumes/pvc-1') } },
  },
});
const pathOf = (uid: string): string => records.known(toUid(uid), 'data')?.path ?? '';
async function tearDown(uid: string): Promise<void> {
  await volumes.tearDown(records.known(toUid(uid), 'data') as PlainMount);
}
const mountDisk = () => run('mount', ['--bind', join(root, 'disk'), join(root, 'local-volumes')]);

test('a volume whose disk is not mounted is not replaced by an empty volume', async () => {
  await mountDisk();
  await volumes.setUp(request('first'));
  await writeFile(join(pathOf('first'), 'file'), 'data');
  await tearDown('first');
  await run('umount', [join(root, 'local-volumes')]);
  const missing = { code: 'volume-missing', message: /local-volumes\/pvc-1" does not exist.*mount its file system/ };
  await assert.rejects(volumes.setUp(request('second')), missing);
  await assert.rejects(access(join(root, 'local-volumes/pvc-1')));
  await mountDisk();
  await volumes.setUp(request('second'));
  assert.equal(await readFile(join(pathOf('second'), 'file'), 'utf8'), 'data');
});

test('a raw volume whose disk is not mounted is not replaced by an empty file', async () => {
  const file = join(root, 'local-volumes/pvc-1');
  await writeFile(file, 'data');
  // The file is of a release that kept no records.
  const tools = createVolumeTools({ createdVolumes: join(root, 'etc/created'), log: silentLog });
  await tools.createOnce(file, () => assert.fail('the file exists'));
  await rm(file);
  await assert.rejects(volumes.setUp(request('first', 'Block')), { code: 'volume-missing' });
  await assert.rejects(stat(file));
});

test('a volume is unmounted while the host has a file system below its directory, which stays mounted', async () => {
  await run('mount', ['-t', 'tmpfs', 'tmpfs', join(root, 'local-volumes')]);
  await run('mount', ['--make-shared', join(root, 'local-volumes')]);
  await volumes.setUp(request('first'));
  const inner = join(root, 'local-volumes/pvc-1/inner');
  await mkdir(inner);
  await run('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
  const path = pathOf('first');
  assert.ok(await mounts.isMountPoint(join(path, 'inner')), 'the mount has propagated');
  await tearDown('first');
  assert.equal(await mounts.isMountPoint(path), false);
  assert.ok(await mounts.isMountPoint(inner));
});

test('a file system that is mounted over the directory of a used volume stays mounted when the pod ends', async () => {
  await run('mount', ['-t', 'tmpfs', 'tmpfs', join(root, 'local-volumes')]);
  await run('mount', ['--make-shared', join(root, 'local-volumes')]);
  await volumes.setUp(request('first'));
  const directory = join(root, 'local-volumes/pvc-1');
  await run('mount', ['-t', 'tmpfs', 'tmpfs', directory]);
  await writeFile(join(directory, 'file'), 'data');
  const path = pathOf('first');
  assert.equal(await readFile(join(path, 'file'), 'utf8'), 'data', 'the mount has propagated');
  await tearDown('first');
  assert.equal(await mounts.isMountPoint(path), false);
  assert.equal(await readFile(join(directory, 'file'), 'utf8'), 'data');
});

test('mounts of a container reach the directory of a volume only with bidirectional propagation', async () => {
  await run('mount', ['-t', 'tmpfs', 'tmpfs', join(root, 'local-volumes')]);
  await run('mount', ['--make-shared', join(root, 'local-volumes')]);
  for (const mountPropagation of ['HostToContainer', 'Bidirectional']) {
    const given = request(mountPropagation);
    const container = { name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data', mountPropagation }] };
    await volumes.setUp({ ...given, pod: { ...given.pod, spec: { containers: [container] } } } as VolumeRequest);
    const inner = join(pathOf(mountPropagation), mountPropagation);
    await mkdir(inner);
    await run('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
    const onHost = join(root, 'local-volumes/pvc-1', mountPropagation);
    assert.equal(await mounts.isMountPoint(onHost), mountPropagation === 'Bidirectional');
    await tearDown(mountPropagation);
  }
});

test('refuses a provisioned volume outside of the directory of the own node', async () => {
  const own = join(root, 'local-volumes');
  // Another node has reported a directory in which a pod of this node has put a link.
  await symlink(join(root, 'disk'), join(root, 'pvc-1'));
  for (const path of [join(root, 'pvc-1'), `${own}/pvc-2`, `${own}/../pvc-1`, `${own}/pvc-1/`, own, ''])
    for (const volumeMode of ['Filesystem', 'Block'])
      for (const source of ['local', 'hostPath']) {
        const given = request('first');
        const spec = { capacity: { storage: '1Mi' }, volumeMode, [source]: { path } };
        await assert.rejects(
          volumes.setUp({ ...given, persistent: { ...given.persistent, spec } } as VolumeRequest),
          /is not in the directory of this node's local volumes/,
          path,
        );
      }
  assert.deepEqual(await records.all(), []);
});
