/** A host whose data directories are symbolic links, as on a Raspberry Pi with an SSD beside its SD card. */
import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually, run } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

let appliance: Appliance;
let disk: string;
let link: string;

before(
  async () => {
    disk = await mkdtemp(join(tmpdir(), 'he-disk-'));
    appliance = await Appliance.create();
    link = join(appliance.root, 'var/lib/origin');
    await mkdir(join(disk, 'origin'));
    await mkdir(join(disk, 'volumes'));
    await mkdir(join(appliance.root, 'var/lib'), { recursive: true });
    await symlink(join(disk, 'origin'), link);
    await symlink(join(disk, 'volumes'), join(disk, 'origin/openshift.local.volumes'));
    await appliance.start();
    await importHelloImage(appliance, disk);
  },
  { timeout: 120_000 },
);
after(async () => {
  await appliance.stop();
  for (const mount of await mounts()) await run('umount', ['-l', mount]);
  await rm(disk, { recursive: true, force: true });
});

/** Mount points on the disk and below the root. */
async function mounts(): Promise<string[]> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '');
  return points.filter((point) => [disk, appliance.root].some((each) => point.startsWith(`${each}/`))).reverse();
}

test('deletes all mounts of a deleted pod in directories behind symbolic links', { timeout: 240_000 }, async () => {
  await appliance.must(['apply', '-f', '-'], {
    input: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'linked' },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'c',
            image: helloImage,
            command: ['/bin/sleep', '1000'],
            volumeMounts: [{ name: 'm', mountPath: '/m' }],
          },
        ],
        volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }],
      },
    }),
  });
  await appliance.must(['wait', '--for=condition=Ready', 'pod/linked', '--timeout=120s'], { timeoutMs: 130_000 });
  const uid = await appliance.must(['get', 'pod', 'linked', '-o', 'jsonpath={.metadata.uid}']);
  const before = await mounts();
  assert.ok(before.some((point) => point.startsWith(join(disk, 'volumes/pods', uid))));
  await appliance.must(['delete', 'pod', 'linked'], { timeoutMs: 60_000 });
  await eventually('volume directory removed', 30_000, async () =>
    (await readdir(join(disk, 'volumes/pods'))).includes(uid) ? undefined : true,
  );
  assert.deepEqual(
    (await mounts()).filter((point) => point.includes(uid)),
    [],
  );
});

test('unmounts everything on reset and keeps the data and the links', { timeout: 180_000 }, async () => {
  const ran = await appliance.hyperedge(['reset', '--force', '--root', appliance.root], { timeoutMs: 150_000 });
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.deepEqual(await mounts(), []);
  const [, kept = ''] = /the data is kept in (\S+)/.exec(ran.stdout) ?? [];
  assert.ok((await readdir(join(kept, 'var/lib/origin'))).includes('openshift.local.etcd'), ran.stdout);
  assert.ok((await lstat(link)).isSymbolicLink());
  assert.deepEqual(await readdir(join(disk, 'origin')), ['openshift.local.volumes']);
  assert.deepEqual(await readdir(join(disk, 'volumes')), []);
});
