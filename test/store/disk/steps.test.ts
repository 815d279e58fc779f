/** Background work runs in steps so small that no commit waits long. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { encodePutEvent } from '../../../src/store/core/messages/event.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { pack } from '../../../src/store/disk/packed-entries.ts';
import { EntryKind, type LogBatch, type StoredEntry, type StoreLog } from '../../../src/store/disk/port.ts';
import { StoreFile } from '../../../src/store/disk/store-file.ts';
import { createEtcdServer } from '../../../src/store/index.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { clock } from '../harness.ts';

/** Size of a vacuum step including SQLite's internal pages, and the number of revisions that one commit may discard. */
const STEP_BYTES = (256 << 10) + 4 * 1024;
const STEP_REVISIONS = 500;
const REVISIONS = 2000;

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-steps-'));
});
after(() => rm(directory, { recursive: true, force: true }));
const fresh = (): Promise<string> => mkdtemp(join(directory, 'data-'));

function row(revision: number, bytes: number): StoredEntry {
  const value = Buffer.alloc(bytes, 'x');
  const { field } = encodePutEvent({
    key: 'k',
    createRevision: 2,
    modRevision: revision,
    version: 1,
    value,
    lease: 0n,
  });
  return { index: revision, term: 1, kind: EntryKind.revision, revision, lease: 0n, body: field };
}

it('vacuum releases at most 256 KiB per step until few free pages are left', async () => {
  const file = StoreFile.open(await fresh(), undefined, false);
  try {
    const rows = Array.from({ length: 400 }, (_, i) => row(i + 2, 50_000));
    file.commit([{ entries: pack(rows), discards: [] }], 1);
    file.commit([{ entries: pack([]), discards: rows.slice(1).map(({ revision }) => ({ revision })) }], 2);
    const full = file.space.size();
    assert.ok(full.bytes > 19_000_000 && full.inUseBytes < 1_000_000, JSON.stringify(full));
    let steps = 0;
    for (let was = full.bytes; file.space.vacuumStep({ all: false }); steps += 1) {
      const { bytes } = file.space.size();
      assert.ok(bytes < was && was - bytes <= STEP_BYTES, `${was - bytes} bytes in one step`);
      was = bytes;
    }
    assert.ok(steps > 50, `${steps} steps`);
    assert.ok(file.space.size().bytes < 6_000_000, `${file.space.size().bytes} bytes are left`);
  } finally {
    file.close();
  }
});

it('compaction deletes at most some hundred revisions per commit, and writes continue in between', async () => {
  const storage = createSqliteLog({ directory: await fresh(), log: silentLog });
  const batches: LogBatch[] = [];
  const watched: StoreLog = new Proxy(storage, {
    get: (target, name: keyof StoreLog) => {
      if (name !== 'commit') return target[name].bind(target);
      return (batch: LogBatch) => {
        batches.push(batch);
        return target.commit(batch);
      };
    },
  });
  const server = createEtcdServer({
    storage: watched,
    listener: createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog }),
    clock,
    log: silentLog,
    name: 'one',
    clientUrls: ['http://127.0.0.1:2379'],
    onFatal: (error) => assert.fail(error.message),
  });
  const { port } = await server.start();
  const client = new EtcdClient(`http://127.0.0.1:${port}`);
  try {
    const put = (i: number): Promise<unknown> => client.put({ key: `k${i % 10}`, value: `${i}` });
    for (let i = 0; i < REVISIONS; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => put(i + j)));
    batches.length = 0;
    const compacted = client.compact(REVISIONS - 10, true);
    await put(1);
    await compacted;
    const discarding = batches.map(({ discards }) => discards.length).filter((count) => count > 0);
    const all = discarding.reduce((sum, count) => sum + count, 0);
    assert.ok(all > REVISIONS - 50, `${all} revisions discarded`);
    assert.ok(Math.max(...discarding) <= STEP_REVISIONS, discarding.join());
  } finally {
    client.close();
    await server.stop();
  }
});
