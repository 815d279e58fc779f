/** Partial files of interrupted snapshot saves. */
import assert from 'node:assert/strict';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { storeFiles } from '../../../src/host/store/store-files.ts';
import { saveSnapshot } from '../../../src/store/administration/snapshots.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { type ClusterMember, cluster } from '../cluster-harness.ts';
import { clock, remove, temporaryDirectory } from '../harness.ts';

it('snapshot save reports progress and the size of the snapshot', { timeout: 60_000 }, async () => {
  const directory = await temporaryDirectory();
  const [one] = (await cluster(directory, 1)) as [ClusterMember];
  await one.start();
  const admin = createEtcdAdmin({ endpoints: [one.endpoint], log: silentLog, clock });
  try {
    const seen: (readonly [number, number])[] = [];
    const file = join(directory, 'a.db');
    await saveSnapshot(admin, { file }, storeFiles, clock.nowMs(), (done, total) => seen.push([done, total]));
    const { size } = await stat(file);
    assert.deepEqual(seen.at(-1), [size, size]);
    const DIGEST = 32;
    assert.ok(seen.every(([done, total]) => done <= total && total >= size - DIGEST && total <= size));
  } finally {
    admin.close();
    await one.stop();
    await remove(directory);
  }
});

it('deletes the partial file of a killed snapshot save, but not that of a running one', {
  timeout: 60_000,
}, async () => {
  const directory = await temporaryDirectory();
  const [one] = (await cluster(directory, 1)) as [ClusterMember];
  await one.start();
  const admin = createEtcdAdmin({ endpoints: [one.endpoint], log: silentLog, clock });
  try {
    const [old, fresh] = ['.snapshot-4711-00ab12cd.part', '.snapshot-4712-00ab12cd.part'];
    for (const name of [old, fresh]) await writeFile(join(directory, name), 'x');
    const past = clock.nowMs() / 1000 - 7200;
    await utimes(join(directory, old), past, past);
    await saveSnapshot(admin, { file: join(directory, 'a.db') }, storeFiles, clock.nowMs());
    assert.deepEqual((await readdir(directory)).sort(), [fresh, 'a.db', 'm0']);
  } finally {
    admin.close();
    await one.stop();
    await remove(directory);
  }
});
