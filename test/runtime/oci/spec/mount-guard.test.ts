import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkMounts, isMountSafe } from '../../../../src/runtime/oci/spec/mount-guard.ts';
import { mergeMounts, podMount, systemMounts } from '../../../../src/runtime/oci/spec/mounts.ts';

describe('volumes mounted over kernel file systems', () => {
  let directory = '';
  let rootfs = '';
  let volume = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mount-guard-'));
    rootfs = join(directory, 'rootfs');
    volume = join(directory, 'volume');
    for (const name of ['dev', 'proc', 'sys', 'data']) await mkdir(join(rootfs, name), { recursive: true });
    await mkdir(join(volume, 'plain'), { recursive: true });
    await symlink('/dev', join(rootfs, 'absolute'));
    await symlink('data/../absolute/pts', join(rootfs, 'relative'));
    await symlink('loop', join(rootfs, 'loop'));
    await symlink('/proc', join(volume, 'planted'));
    await symlink('../../../../../sys', join(volume, 'climbing'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const mount = (containerPath: string, hostPath = volume) =>
    ({ hostPath, containerPath, readOnly: false, propagation: 'private' }) as const;
  const check = (...mounts: ReturnType<typeof mount>[]) => checkMounts(rootfs, mounts, 'runc 1.1.5');
  const refuses = (destination: string, ...mounts: ReturnType<typeof mount>[]) =>
    assert.rejects(check(...mounts), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'create-failed');
      assert.match(error.message, new RegExp(`takes the place of ${destination}[^,]*, which runc 1.1.5 does not`));
      return true;
    });

  for (const path of [
    '/dev',
    '/dev/',
    '//dev/.',
    '/data/../dev',
    '/dev/null',
    '/dev/pts',
    '/dev/pts/0',
    '/dev/console',
  ])
    it(`rejects a volume mounted at ${path}`, () => refuses('/dev', mount(path)));
  for (const path of ['/proc', '/proc/self', '/proc/sys/kernel'])
    it(`rejects a volume mounted at ${path}`, () => refuses('/proc', mount(path)));
  for (const path of ['/sys', '/sys/fs/cgroup', '/sys/firmware'])
    it(`rejects a volume mounted at ${path}`, () => refuses('/sys', mount(path)));
  it('rejects a volume mounted at the root of the container', () => refuses('/', mount('/')));

  it('resolves symbolic links of the image and of volumes before it checks a mount path', async () => {
    await refuses('/dev', mount('/absolute'));
    await refuses('/dev/pts', mount('/relative'));
    await refuses('/proc', mount('/vol'), mount('/vol/planted'));
    await refuses('/sys', mount('/vol/climbing'), mount('/vol'));
    await assert.rejects(check(mount('/loop')), /too many levels of symbolic links/);
  });

  it('allows mounts that do not replace files that runc writes', async () => {
    await check(mount('/data'), mount('/vol'), mount('/vol/plain'), mount('/vol/plain/new'), mount('/development'));
    await check(mount('/dev/shm'), mount('/dev/termination-log'), mount('/dev/mine'), mount('/dev/mqueue'));
    await check(mount('/dev', '/dev'), mount('/sys', '/sys'), mount('/dev/null', '/dev/null'), mount('/proc', '/proc'));
    await refuses('/dev/null', mount('/dev/null', '/dev/zero'));
    await refuses('/dev', mount('/dev', '/dev/shm'));
  });

  it('rejects an image whose /dev, /proc or /sys is a symbolic link', async () => {
    await rm(join(rootfs, 'sys'), { recursive: true });
    await symlink('/data', join(rootfs, 'sys'));
    await assert.rejects(check(), /the image's \/sys is a symbolic link/);
    await unlink(join(rootfs, 'sys'));
    await check();
  });

  it('orders mounts of kernel file systems after mounts that a symbolic link could redirect below them', () => {
    const order = mergeMounts(
      systemMounts({ shm: '/shm', writableSys: false }),
      ['/a/b/c/d', '/dev/shm', '/vol'].map((path) => podMount(mount(path))),
    ).map(({ destination }) => destination);
    assert.deepEqual(order.slice(0, 2), ['/vol', '/a/b/c/d']);
    assert.deepEqual(order.slice(2, 5).toSorted(), ['/dev', '/proc', '/sys']);
    assert.ok(order.includes('/dev/shm'));
  });

  it('recognizes the versions of runc that restrict mounts over /proc', () => {
    const safe = [
      '1.2.8',
      '1.2.9',
      '1.3.3',
      '1.3.10',
      '1.4.0',
      '1.4.0-rc.3',
      '1.4.1',
      '1.5.0-rc.1',
      '2.0.0',
      '1.3.3-0ubuntu1',
    ];
    const affected = [
      '1.0.0',
      '1.1.5+ds1',
      '1.1.15',
      '1.2.7',
      '1.2.8-rc.1',
      '1.3.0',
      '1.3.2',
      '1.3.0-rc.2',
      '1.4.0-rc.2',
    ];
    for (const version of safe) assert.equal(isMountSafe(`runc version ${version}\nspec: 1.2.0`), true, version);
    for (const version of affected) assert.equal(isMountSafe(`runc version ${version}\nspec: 1.2.0`), false, version);
    assert.equal(isMountSafe('crun version 1.25\ncommit: x'), false);
    assert.equal(isMountSafe(''), false);
  });
});
