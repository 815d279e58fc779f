/** A single master loses power while its disk is full and another program takes all freed space. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Appliance, eventually, run } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

const DISK_BYTES = 192 << 20;

interface SmallDisk {
  readonly root: string;
  readonly scratch: string;
  unmount(): Promise<void>;
}

async function must(file: string, args: readonly string[]): Promise<void> {
  const ran = await run(file, args);
  assert.equal(ran.code, 0, `${file} ${args.join(' ')}: ${ran.stderr}`);
}

async function ext4Disk(): Promise<SmallDisk> {
  const scratch = await mkdtemp(join(tmpdir(), 'he-full-'));
  const [image, root] = [join(scratch, 'disk'), join(scratch, 'root')];
  await must('truncate', ['-s', String(DISK_BYTES), image]);
  await must('mkfs.ext4', ['-q', '-F', image]);
  await mkdir(root);
  await must('mount', ['-o', 'loop', image, root]);
  return {
    root,
    scratch,
    unmount: async () => {
      await run('umount', ['-l', root]);
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** Takes all free space of the file system as long as it runs. */
const fill = (root: string): ChildProcess =>
  spawn('sh', ['-c', `while :; do cat /dev/zero >>'${join(root, 'filler')}'; sleep 0.01; done`], { stdio: 'ignore' });

const mountRun = async (root: string): Promise<void> => {
  await mkdir(join(root, 'run'), { recursive: true });
  await must('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=755', 'tmpfs', join(root, 'run')]);
};

const pod = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: helloImage, imagePullPolicy: 'Never', command: ['/bin/sleep', '1000'] }],
    },
  });

const refusesWrites = (appliance: Appliance): Promise<true> =>
  eventually('ordinary writes are refused', 30_000, async () =>
    (await appliance.kubectl(['create', 'configmap', `more-${performance.now()}`])).code === 0 ? undefined : true,
  );

const acceptsWrites = (appliance: Appliance): Promise<true> =>
  eventually('writes are accepted again', 60_000, async () =>
    (await appliance.kubectl(['create', 'configmap', `later-${performance.now()}`])).code === 0 ? true : undefined,
  );

test('starts the control plane on a full disk after power cuts, and accepts deletions', async () => {
  const disk = await ext4Disk();
  await mountRun(disk.root);
  const appliance = await Appliance.create({ root: disk.root });
  let filler: ChildProcess | undefined;
  try {
    await appliance.start();
    await importHelloImage(appliance, disk.scratch);
    for (const name of ['kept', 'first', 'second']) await appliance.must(['create', 'cm', name, '--from-literal=k=v']);
    await appliance.must(['create', '-f', '-'], { input: pod('worker') });
    await appliance.must(['wait', '--for=condition=Ready', 'pod/worker', '--timeout=30s']);
    filler = fill(disk.root);
    await refusesWrites(appliance);
    for (const name of ['first', 'second']) {
      await appliance.powerCut();
      await mountRun(disk.root);
      await appliance.start();
      assert.equal((await statfs(disk.root)).bavail, 0, 'the disk is full');
      await appliance.must(['delete', 'cm', name, '--timeout=15s']);
      assert.equal(await appliance.must(['get', 'cm', 'kept', '-o', 'jsonpath={.data.k}']), 'v');
    }
    await appliance.must(['delete', 'pod', 'worker', '--timeout=30s']);
    const logs = await appliance.kubectl(['-n', 'kube-system', 'get', 'pods', '-o', 'name']);
    assert.match(logs.stdout, /master-api/);

    filler.kill('SIGKILL');
    await rm(join(disk.root, 'filler'));
    await acceptsWrites(appliance);
  } catch (error) {
    throw new Error(`${String(error)}\n${appliance.output.slice(-6_000)}`);
  } finally {
    filler?.kill('SIGKILL');
    await appliance.stop();
    await disk.unmount();
  }
});

test('starts from the disk reserve if the root is a single full file system', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-reserve-'));
  await must('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', root]);
  const appliance = await Appliance.create({ root });
  try {
    await appliance.start();
    await appliance.must(['create', 'cm', 'removed', '--from-literal=k=v']);
    await eventually('the disk reserve is written', 60_000, async () =>
      (await stat(join(root, 'var/lib/origin/disk-reserve'))).size > 0 ? true : undefined,
    );
    await run('dd', ['if=/dev/zero', `of=${join(root, 'filler')}`, 'bs=1M']);
    await refusesWrites(appliance);
    await appliance.powerCut();
    await run('dd', ['if=/dev/zero', `of=${join(root, 'more')}`, 'bs=4k']);
    await appliance.start();
    assert.match(appliance.output, /disk is full; reserve released/);
    await appliance.must(['delete', 'cm', 'removed', '--timeout=15s']);
  } catch (error) {
    throw new Error(`${String(error)}\n${appliance.output.slice(-6_000)}`);
  } finally {
    await appliance.stop();
    await run('umount', ['-l', root]);
    await rm(root, { recursive: true, force: true });
  }
});
