/** A commit that a full disk rolls back. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type CommitBody, pack, unpack } from '../../../src/store/disk/packed-entries.ts';
import { EntryKind, type StoredEntry } from '../../../src/store/disk/port.ts';
import { StoreFile } from '../../../src/store/disk/store-file.ts';

const run = promisify(execFile);

const batch = (...entries: StoredEntry[]): CommitBody => ({ entries: pack(entries), discards: [] });
const revision = (index: number, term: number): StoredEntry => ({
  index,
  term,
  kind: EntryKind.revision,
  revision: index,
  lease: 0n,
  body: Buffer.from(`events of term ${term}`),
});
const noop = (index: number, term: number, bytes = 0): StoredEntry => ({
  index,
  term,
  kind: EntryKind.noop,
  revision: 0,
  lease: 0n,
  body: Buffer.alloc(bytes, 'x'),
});
const positions = (file: StoreFile, from: number): string[] =>
  unpack(file.entries(from, 1 << 20)).map(({ index, term }) => `${index}/${term}`);

describe('commit on a full disk', { skip: process.getuid?.() !== 0 }, () => {
  let disk = '';
  before(async () => {
    disk = await mkdtemp(join(tmpdir(), 'hyperedge-rolled-back-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]);
  });
  after(async () => {
    await run('umount', ['-l', disk]);
    await rm(disk, { recursive: true, force: true });
  });

  it('removes the overwritten tail of the log when the same batch is committed again', () => {
    const file = StoreFile.open(disk, undefined, true);
    const old = Array.from({ length: 20 }, (_, i) => revision(i + 1, 1));
    file.commit([batch(...old)], 1);
    assert.throws(() => file.commit([batch(noop(10, 2)), batch(noop(11, 2, 8 << 20))], 3), { code: 'SQLITE_FULL' });
    assert.equal(positions(file, 10).length, 11, 'the log is unchanged');
    file.commit([batch(noop(10, 2))], 2);
    assert.deepEqual(positions(file, 9), ['9/1', '10/2']);
    file.commit([batch({ ...revision(11, 2), revision: 10 })], 3);
    file.close();
    const again = StoreFile.open(disk, undefined, true);
    assert.deepEqual(positions(again, 9), ['9/1', '10/2', '11/2']);
    assert.deepEqual(
      unpack(again.rows(8, 100)).map(({ index, term, revision: at }) => [index, term, at]),
      [
        [9, 1, 9],
        [11, 2, 10],
      ],
    );
    again.close();
  });
});
