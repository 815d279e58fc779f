import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { pathsBelow } from '../../../src/host/config/paths.ts';
import type { Settings } from '../../../src/host/config/settings.ts';
import { placeMountDropIns, removeMountDropIns } from '../../../src/host/install/mount-drop-in.ts';

const UNIT = 'etc/systemd/system/hyperedge.service';
const DROP_INS = ['hyperedge.service', 'hyperedge-update-guard.service'].map(
  (unit) => `etc/systemd/system/${unit}.d/20-data.conf`,
);
let root = '';
let settings: Settings;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-mounts-'));
  await mkdir(join(root, 'etc/systemd/system'), { recursive: true });
  const paths = pathsBelow(root);
  settings = { root, paths } as Settings;
  await writeFile(
    join(root, UNIT),
    `[Unit]\nRequiresMountsFor=${join(root, 'etc')} ${join(root, 'usr')} ${join(root, 'var')}\n`,
  );
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('RequiresMountsFor in the shipped unit lists the default directories', async () => {
  const unit = await readFile(new URL('../../../systemd/hyperedge.service', import.meta.url), 'utf8');
  const named = /^RequiresMountsFor=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? [];
  for (const path of ['/var/lib/origin', '/etc/origin', '/etc/etcd', '/var/log']) assert.ok(named.includes(path), path);
  const paths = pathsBelow('/');
  for (const path of [
    paths.etcdData,
    paths.updateRecord,
    paths.images,
    paths.podLogs,
    paths.etcdConfig,
    paths.executables,
  ])
    assert.ok(
      named.some((each) => path === each || path.startsWith(`${each}/`)),
      path,
    );
});

test('writes no drop-in for data in the default directories, and removes an old drop-in', async () => {
  assert.equal(await placeMountDropIns(settings), false);
  for (const file of DROP_INS) {
    await mkdir(join(root, file, '..'), { recursive: true });
    await writeFile(join(root, file), 'from before');
  }
  assert.equal(await placeMountDropIns(settings), true);
  for (const file of DROP_INS) await assert.rejects(readFile(join(root, file)), { code: 'ENOENT' });
});

test('the drop-in lists data behind links and a configured snapshot directory, even if they are not mounted', async () => {
  const disk = join(root, 'mnt/big "disk" 100%');
  await mkdir(join(root, 'var/lib'), { recursive: true });
  await symlink(join(disk, 'origin'), join(root, 'var/lib/origin'));
  await mkdir(join(root, 'etc/origin/node'), { recursive: true });
  await writeFile(
    settings.paths.snapshotSchedule,
    `apiVersion: hyperedge.dev/v1\nkind: SnapshotSchedule\nenabled: true\nevery: 1h\nkeep: 3\ndirectory: ${join(root, 'mnt/backup')}\n`,
  );
  assert.equal(await placeMountDropIns(settings), true);
  assert.equal(await placeMountDropIns(settings), false);
  const text = await readFile(join(root, DROP_INS[0] ?? ''), 'utf8');
  assert.match(text, /^\[Unit\]\nRequiresMountsFor=/m);
  assert.ok(text.includes(`"${root}/mnt/big \\"disk\\" 100%%/origin/openshift.local.etcd"`), text);
  assert.ok(text.includes(`${root}/mnt/backup`), text);
  const removed = await removeMountDropIns(root);
  assert.deepEqual(
    removed,
    DROP_INS.map((file) => join(root, file)),
  );
  assert.deepEqual(await removeMountDropIns(root), []);
});

test('systemd accepts the drop-in', async (t) => {
  const run = promisify(execFile);
  if (
    await run('systemd-analyze', ['--version']).then(
      () => false,
      () => true,
    )
  )
    return t.skip('no systemd-analyze');
  await mkdir(join(root, 'var/lib'), { recursive: true });
  await symlink('/mnt/some disk/origin', join(root, 'var/lib/origin'));
  await placeMountDropIns(settings);
  await writeFile(join(root, UNIT), '[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n');
  const { stderr } = await run('systemd-analyze', ['verify', join(root, UNIT)], {
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${join(root, 'etc/systemd/system')}:` },
  });
  assert.doesNotMatch(stderr, /20-data\.conf|RequiresMountsFor/);
});
