import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, test } from 'node:test';
import { CodedError } from '../../../src/base/errors.ts';
import { RemoteSnapshots } from '../../../src/host/remote/snapshots.ts';
import { openAfterFailingStat } from '../../support/failing-stat.ts';

const NAME = 'etcd-42-20260102T030405Z.db';
let directory: string;
let saved: PromiseWithResolvers<string>;
let snapshots: RemoteSnapshots;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-remote-'));
  saved = Promise.withResolvers();
  snapshots = new RemoteSnapshots({
    directory,
    schedule: async () => ({ enabled: true, every: '6h', keep: 8, directory: '/mnt/backup' }),
    save: (signal) => {
      signal.addEventListener('abort', () => saved.reject(new Error('ended')));
      return saved.promise;
    },
  });
  await writeFile(join(directory, NAME), 'content');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const failsWith = (code: string) => (error: unknown) => error instanceof CodedError && error.code === code;

test('lists saved snapshots without partial files, directories and links, newest first', async () => {
  await writeFile(join(directory, 'etcd-50-20260202T030405Z.db'), 'newer one');
  await writeFile(join(directory, '.snapshot-1-0123abcd.part'), 'partial');
  await writeFile(join(directory, '.hidden.db'), '');
  await mkdir(join(directory, 'directory.db'));
  await symlink('/etc/shadow', join(directory, 'link.db'));
  const report = await snapshots.report();
  assert.deepEqual(report, {
    directory,
    every: '6h',
    keep: 8,
    scheduledDirectory: '/mnt/backup',
    isSaving: false,
    snapshots: [
      { name: 'etcd-50-20260202T030405Z.db', revision: 50, takenAt: '2026-02-02T03:04:05.000Z', bytes: 9 },
      { name: NAME, revision: 42, takenAt: '2026-01-02T03:04:05.000Z', bytes: 7 },
    ],
  });
  assert.equal(await snapshots.savedBytes(), 7);
});

test('reads only snapshots that are listed, and no file outside of the directory', async () => {
  await writeFile(join(directory, '../he-outside.db'), 'secret');
  await symlink(join(directory, NAME), join(directory, 'link.db'));
  try {
    for (const name of ['../he-outside.db', `./${NAME}`, join(directory, NAME), 'link.db', 'missing.db', '', '..'])
      await assert.rejects(snapshots.open(name), failsWith('not-found'), name);
  } finally {
    await rm(join(directory, '../he-outside.db'));
  }
  const opened = await snapshots.open(NAME);
  await rm(join(directory, NAME));
  assert.equal(opened.bytes, 7);
  assert.equal((await buffer(opened.content)).toString(), 'content');
  opened.close();
});

test('closes a snapshot file that cannot be inspected, and serves the next download', async () => {
  const refused = () => assert.rejects(snapshots.open(NAME), failsWith('not-found'));
  assert.equal(await openAfterFailingStat(join(directory, NAME), refused), 0);
  const next = await snapshots.open(NAME);
  next.content.destroy();
  next.close();
});

test('serves one snapshot download at a time, and the next download after its end', async () => {
  const first = await snapshots.open(NAME);
  await assert.rejects(snapshots.open(NAME), failsWith('busy'));
  first.content.destroy();
  first.close();
  const next = await snapshots.open(NAME);
  next.content.destroy();
  next.close();
});

test('saves one snapshot at a time, and cancels the snapshot when the host stops', async () => {
  const first = snapshots.save();
  await assert.rejects(snapshots.save(), failsWith('busy'));
  assert.equal((await snapshots.report()).isSaving, true);
  saved.resolve('{"file":"/x.db","revision":43}');
  assert.deepEqual(await first, { file: '/x.db', revision: 43 });
  assert.equal((await snapshots.report()).isSaving, false);
  saved = Promise.withResolvers();
  const second = assert.rejects(snapshots.save(), /ended/);
  await snapshots.stop();
  await second;
});
