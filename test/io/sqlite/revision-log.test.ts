import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { encodePutEvent } from '../../../src/api/etcd/event.ts';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { LogBatch, LogRow, LogState, RevisionLog } from '../../../src/components/etcd/port.ts';
import { createSqliteLog } from '../../../src/io/sqlite/index.ts';

const run = promisify(execFile);
const coded = (code: string) => (error: unknown) => error instanceof CodedError && error.code === code;

const EMPTY: LogBatch = { rows: [], leasesGranted: [], leasesRevoked: [], discards: [] };

function event(key: string, revision: number, value: Uint8Array = Buffer.from('v')): Buffer {
  return encodePutEvent({ key, createRevision: revision, modRevision: revision, version: 1, value, lease: 0n }).field;
}

function row(revision: number, ...keys: string[]): LogRow {
  return { revision, events: Buffer.concat(keys.map((key) => event(key, revision))) };
}

interface Opened {
  readonly log: RevisionLog;
  readonly rows: LogRow[];
  readonly state: LogState;
  readonly fatal: Error[];
}

async function opened(directory: string): Promise<Opened> {
  const log = createSqliteLog({ directory, log: silentLog });
  const rows: LogRow[] = [];
  const fatal: Error[] = [];
  const load = (loaded: readonly LogRow[]): void => {
    for (const { revision, events } of loaded) rows.push({ revision, events: Buffer.from(events) });
  };
  const state = await log.open(load, (error) => fatal.push(error));
  return { log, rows, state, fatal };
}

describe('the log of revisions on SQLite', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hyperedge-log-'));
  });
  after(async () => {
    await rm(directory, { recursive: true, force: true });
  });
  const fresh = (): Promise<string> => mkdtemp(join(directory, 'data-'));

  it('gives back what was committed, in order, after it was opened again', async () => {
    const data = await fresh();
    const first = await opened(data);
    await first.log.commit({
      ...EMPTY,
      rows: [row(2, 'a'), row(3, 'b', 'c')],
      leasesGranted: [{ id: 1n << 62n, ttlSeconds: 5 }],
    });
    await first.log.commit({ ...EMPTY, rows: [row(4, 'd')], compacted: 3, reserved: 99 });
    await first.log.close();
    const second = await opened(data);
    assert.deepEqual(
      second.rows.map((r) => r.revision),
      [2, 3, 4],
    );
    assert.deepEqual(second.rows[1]?.events, row(3, 'b', 'c').events);
    assert.deepEqual(second.state.leases, [{ id: 1n << 62n, ttlSeconds: 5 }]);
    assert.deepEqual([second.state.compacted, second.state.reserved], [3, 99]);
    assert.equal(second.state.clusterId, first.state.clusterId);
    assert.notEqual(second.state.memberId, second.state.clusterId);
    await second.log.close();
  });

  it('loads more than fits in one piece', async () => {
    const data = await fresh();
    const first = await opened(data);
    const value = Buffer.alloc(100_000, 'x');
    const rows = Array.from({ length: 40 }, (_, i) => ({ revision: i + 2, events: event(`k${i}`, i + 2, value) }));
    await first.log.commit({ ...EMPTY, rows });
    await first.log.close();
    const second = await opened(data);
    assert.deepEqual(
      second.rows.map((r) => r.revision),
      rows.map((r) => r.revision),
    );
    await second.log.close();
  });

  it('discards whole rows and single events, and revokes leases', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await log.commit({
      ...EMPTY,
      rows: [row(2, 'a'), row(3, 'a', 'b'), row(4, 'c', 'd')],
      leasesGranted: [{ id: 7n, ttlSeconds: 9 }],
    });
    const discards = [{ revision: 2 }, { revision: 3, keys: ['a'] }, { revision: 4, keys: ['c', 'd'] }];
    await log.commit({ ...EMPTY, discards, leasesRevoked: [7n] });
    const [two, three, four] = await log.read([2, 3, 4]);
    assert.equal(two, undefined);
    assert.deepEqual(three && Buffer.from(three), event('b', 3));
    assert.equal(four, undefined);
    await log.close();
    const again = await opened(data);
    assert.deepEqual(again.state.leases, []);
    await again.log.close();
  });

  it('refuses a second opener and names the process that has it', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await assert.rejects(opened(data), (error) => {
      assert.ok(coded('in-use')(error));
      return (error as Error).message.includes(`process ${process.pid}`);
    });
    await log.commit({ ...EMPTY, rows: [row(2, 'a')] });
    await log.close();
    await (await opened(data)).log.close();
  });

  it('tells equal stores from different ones by their hash', async () => {
    const hashes: number[] = [];
    for (const keys of [
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'x'],
    ]) {
      const { log } = await opened(await fresh());
      await log.commit({ ...EMPTY, rows: keys.map((key, i) => row(i + 2, key)) });
      hashes.push(await log.hash(3), await log.hash(2));
      await log.close();
    }
    assert.equal(hashes[0], hashes[2]);
    assert.notEqual(hashes[0], hashes[4]);
    assert.equal(hashes[1], hashes[5]);
  });

  it('copies itself while it is written to', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await log.commit({ ...EMPTY, rows: [row(2, 'a')] });
    const { size, pieces } = await log.snapshot();
    const copy = join(await fresh(), 'revisions.db');
    const bytes: Uint8Array[] = [];
    for await (const piece of pieces) bytes.push(piece);
    await writeFile(copy, Buffer.concat(bytes));
    assert.equal(Buffer.concat(bytes).length, size);
    assert.deepEqual(
      (await readdir(data)).filter((name) => name.endsWith('.tmp')),
      [],
    );
    await log.close();
    const restored = await opened(join(copy, '..'));
    assert.deepEqual(
      restored.rows.map((r) => r.revision),
      [2],
    );
    await restored.log.close();
  });

  it('notices a flipped byte in a row and ends rather than serve it', async () => {
    const data = await fresh();
    const first = await opened(data);
    await first.log.commit({ ...EMPTY, rows: [{ revision: 2, events: event('k', 2, Buffer.alloc(9000, 'x')) }] });
    await first.log.defragment();
    await first.log.close();
    const file = await open(join(data, 'revisions.db'), 'r+');
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1 << 20), 0, 1 << 20, 0);
    await file.write('y', buffer.subarray(0, bytesRead).indexOf('xxxxxxxx') + 20);
    await file.close();
    await assert.rejects(opened(data), coded('corrupt'));
  });

  it('takes a torn last commit for what a power cut leaves, and refuses to forget the ones before it', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    for (let revision = 2; revision < 8; revision += 1) await log.commit({ ...EMPTY, rows: [row(revision, 'k')] });
    const wal = 'revisions.db-wal';
    for (const name of ['revisions.db', wal]) assert.equal((await stat(join(data, name))).mode & 0o777, 0o600);
    const bytes = await readFile(join(data, wal));
    const database = await readFile(join(data, 'revisions.db'));
    await log.close();
    const withLog = async (content: Buffer): Promise<string> => {
      const copy = await fresh();
      await writeFile(join(copy, 'revisions.db'), database);
      await writeFile(join(copy, wal), content);
      return copy;
    };
    const flipped = (at: number): Buffer => {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      return damaged;
    };
    const revisionsOf = async (copy: string): Promise<number[]> => {
      const found = await opened(copy);
      await found.log.close();
      return found.rows.map(({ revision }) => revision);
    };
    const frame = 24 + 4096;
    assert.deepEqual(await revisionsOf(await withLog(bytes)), [2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await revisionsOf(await withLog(bytes.subarray(0, bytes.length - 100))), [2, 3, 4, 5, 6]);
    assert.deepEqual(await revisionsOf(await withLog(flipped(bytes.length - frame + 200))), [2, 3, 4, 5, 6]);
    const damaged = await withLog(flipped(bytes.length - 3 * frame));
    let mend = 0;
    await assert.rejects(opened(damaged), (error: unknown) => {
      mend = Number(/revisions\.db-wal .*--size=(\d+)/.exec(String(error))?.[1]);
      return coded('corrupt')(error);
    });
    await truncate(join(damaged, wal), mend);
    const rest = await revisionsOf(damaged);
    assert.deepEqual(rest, [2, 3, 4, 5, 6, 7].slice(0, rest.length));
    assert.ok(rest.length > 0 && rest.length < 5);
    await assert.rejects(opened(await withLog(flipped(17))), coded('corrupt'));
  });

  it('refuses a file that is not a database', async () => {
    const data = await fresh();
    await writeFile(join(data, 'revisions.db'), 'this is not a database, whatever its name says'.repeat(100));
    await assert.rejects(opened(data), coded('corrupt'));
  });

  it('stays small under endless overwriting with compaction', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    const value = Buffer.alloc(20_000, 'x');
    for (let revision = 2; revision < 1002; revision += 10) {
      const rows = Array.from({ length: 10 }, (_, i) => ({
        revision: revision + i,
        events: event('k', revision + i, value),
      }));
      const discards = revision > 2 ? Array.from({ length: 10 }, (_, i) => ({ revision: revision - 10 + i })) : [];
      await log.commit({ ...EMPTY, rows, discards });
    }
    const { bytes } = await log.size();
    assert.ok(bytes < 2_000_000, `${bytes} bytes for 200,000 that live, after 20,000,000 written`);
    await log.close();
  });

  it('survives a full disk: refuses, keeps reading, goes on when there is room', {
    skip: process.getuid?.() !== 0,
  }, async () => {
    const mount = await fresh();
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', mount]);
    try {
      const filler = join(mount, 'filler');
      const { log, fatal } = await opened(mount);
      await log.commit({ ...EMPTY, rows: [row(2, 'a')] });
      await writeFile(filler, Buffer.alloc(4 << 20)).catch(() => {});
      const value = Buffer.alloc(50_000, 'x');
      let refusedAt = 0;
      for (let revision = 3; refusedAt === 0; revision += 1) {
        try {
          await log.commit({ ...EMPTY, rows: [{ revision, events: event('k', revision, value) }] });
        } catch (error) {
          assert.ok(coded('no-space')(error), String(error));
          refusedAt = revision;
        }
      }
      assert.deepEqual(Buffer.from((await log.read([2]))[0] ?? []), row(2, 'a').events);
      await rm(filler);
      await log.commit({ ...EMPTY, rows: [{ revision: refusedAt, events: event('k', refusedAt, value) }] });
      assert.deepEqual(fatal, []);
      await log.close();
      const again = await opened(mount);
      assert.equal(again.rows.at(-1)?.revision, refusedAt);
      await again.log.close();
    } finally {
      await run('umount', [mount]);
    }
  });
});
