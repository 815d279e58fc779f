/** Space that the store reserves in its own files for a full disk, while other programs take all released space. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { silentLog } from '../../../src/base/log.ts';
import { encodePutEvent } from '../../../src/store/core/messages/event.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { EntryKind, type StoredEntry } from '../../../src/store/disk/port.ts';
import { StoreError } from '../../../src/store/port.ts';
import { connect, startHere } from '../harness.ts';

const run = promisify(execFile);
const MI = 1 << 20;

function entry(revision: number, bytes: number): StoredEntry {
  const body = encodePutEvent({
    key: `k${revision}`,
    createRevision: revision,
    modRevision: revision,
    version: 1,
    value: Buffer.alloc(bytes, 'x'),
    lease: 0n,
  }).field;
  return { index: revision, term: 1, kind: EntryKind.revision, revision, lease: 0n, body };
}

/** Fills all free space. */
function fill(path: string): void {
  for (let piece = MI; piece >= 512; piece /= 2) {
    try {
      for (;;) appendFileSync(path, Buffer.alloc(piece, 1));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
}

describe('store on a disk that another program fills', { skip: process.getuid?.() !== 0 }, () => {
  let disk = '';
  before(async () => {
    disk = await mkdtemp(join(tmpdir(), 'hyperedge-reserve-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk]);
  });
  after(async () => {
    await run('umount', ['-l', disk]);
    await rm(disk, { recursive: true, force: true });
  });

  it('commits small batches from its reserve after the disk is full', async (context) => {
    const data = await mkdtemp(join(disk, 'log-'));
    const filler = join(disk, 'filler');
    const fatal: Error[] = [];
    const open = () => createSqliteLog({ directory: data, log: silentLog });
    const log = open();
    context.after(() => log.close());
    await log.open((error) => fatal.push(error));
    let revision = 1;
    const commit = (): Promise<{ readonly full: boolean }> => {
      revision += 1;
      return log.commit({ entries: [entry(revision, 2_000)], discards: [] });
    };
    assert.equal((await commit()).full, false);
    // The disk is checked once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const { bytes } = await log.size();
    assert.ok(bytes < 100_000, `${bytes} bytes: what is set aside does not count`);
    fill(filler);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    for (let i = 0; i < 700; i += 1) {
      assert.equal((await commit()).full, true);
      if (i % 20 === 0) fill(filler);
    }
    assert.equal(await log.recoverSpace(), false);
    rmSync(filler);
    assert.equal(await log.recoverSpace(), true);
    assert.equal((await commit()).full, false);
    await log.close();
    assert.deepEqual(fatal, []);
    const again = open();
    await again.open((error) => assert.fail(error));
    let last = 0;
    await again.load(Number.MAX_SAFE_INTEGER, (rows) => {
      last = rows.at(-1)?.revision ?? last;
    });
    assert.equal(last, revision);
    await again.close();
  });

  it('on a full disk, accepts deletes, compaction, leases and writes that request the reserve, and rejects other writes', async () => {
    const etcd = await startHere(await mkdtemp(join(disk, 'etcd-')), undefined);
    const store = connect(etcd.endpoint, undefined);
    const filler = join(disk, 'filler');
    const put = (key: string, bytes: number, reserve = false) =>
      store.commit({ guards: [], puts: [{ key, value: Buffer.alloc(bytes, 'x') }], reserve });
    const isFull = (error: unknown): boolean => error instanceof StoreError && error.code === 'no-space';
    try {
      const lease = await store.grantLease(60);
      for (let i = 0; i < 20; i += 1) await put(`k/${i}`, 1_000);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      fill(filler);
      await assert.rejects(async () => {
        for (;;) {
          await put('again', 10);
          fill(filler);
        }
      }, isFull);
      const { revision } = await put('k/0', 2_000, true);
      await store.commit({ guards: [], deletes: ['k/1'] });
      assert.equal(await store.keepLease(lease), true);
      await store.compact(revision);
      fill(filler);
      await assert.rejects(put('k/0', 2_000), isFull);
      await assert.rejects(put('large', 100_000, true), isFull, 'one object must not use up the reserve');
      let used = 0;
      await assert.rejects(async () => {
        for (;;) {
          await put('k/0', 20_000, true);
          used += 1;
          fill(filler);
        }
      }, isFull);
      assert.ok(used > 5 && used < 100, `${used} writes of 20 KB`);
      // Commits that only delete are always accepted.
      for (let i = 2; i < 20; i += 1) await store.commit({ guards: [], deletes: [`k/${i}`] });
      rmSync(filler);
      await put('k/0', 10);
      assert.deepEqual(etcd.fatal, []);
    } finally {
      await store.close();
      await etcd.server.stop();
    }
  });
});
