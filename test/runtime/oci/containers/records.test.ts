import assert from 'node:assert/strict';
import { type FileHandle, mkdir, mkdtemp, open, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { ContainerTable } from '../../../../src/runtime/oci/containers/container-table.ts';
import { type ContainerRecord, makePaths, runtimePaths } from '../../../../src/runtime/oci/containers/records.ts';

it('flushes only the first record of a container and its directory to disk', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'records-'));
  const flushed: string[] = [];
  const handle = await open(directory);
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { sync } = prototype;
  context.mock.method(prototype, 'sync', async function (this: FileHandle) {
    flushed.push(await readlink(`/proc/self/fd/${this.fd}`));
    return sync.call(this);
  });
  try {
    const paths = runtimePaths(directory, join(directory, 'run'));
    await makePaths(paths);
    const table = new ContainerTable(paths);
    const record = { id: 'c', startedAtMs: 0, finishedAtMs: 0 } as ContainerRecord;
    await mkdir(table.bundle('c'));
    await table.save(record);
    const file = join(table.bundle('c'), 'record.json');
    assert.deepEqual(flushed, [file, table.bundle('c')]);
    await table.save({ ...record, startedAtMs: 5 });
    assert.equal(flushed.length, 2);
    assert.equal(JSON.parse(await readFile(file, 'utf8')).startedAtMs, 5);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

it('counts only missing and damaged records as interrupted creations, never unreadable ones', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'records-'));
  try {
    const paths = runtimePaths(directory, join(directory, 'run'));
    await makePaths(paths);
    for (const id of ['absent', 'torn', 'empty', 'unreadable']) await mkdir(join(paths.containers, id));
    await writeFile(join(paths.containers, 'torn/record.json'), '{"id":"torn","sand');
    await writeFile(join(paths.containers, 'empty/record.json'), '');
    assert.deepEqual([...(await new ContainerTable(paths).load())].sort(), ['absent', 'empty', 'torn', 'unreadable']);
    // A read of the first page of this file fails with EIO, as on a damaged disk.
    await symlink('/proc/self/mem', join(paths.containers, 'unreadable/record.json'));
    await assert.rejects(new ContainerTable(paths).load(), {
      code: 'unreadable',
      message: /unreadable\/record\.json: cannot be read: EIO: .*; check the disk/,
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
