import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { storeRevision } from '../../../src/base/brand.ts';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import {
  decodeWatchResponse,
  type WatchResponse,
  writeWatchCancel,
  writeWatchCreate,
  writeWatchProgress,
} from '../../../src/store/core/messages/watch.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import type { StoreLog } from '../../../src/store/disk/port.ts';
import { prefixEnd, type Revision, type Store, StoreError } from '../../../src/store/port.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { recorder } from '../../conformance/store.ts';
import {
  type Certificates,
  clock,
  connect,
  isInstalled,
  makeCertificates,
  type Process,
  remove,
  startHere,
  startProcess,
  temporaryDirectory,
} from '../harness.ts';

const run = promisify(execFile);
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const coded = (code: string) => (error: unknown) => error instanceof StoreError && error.code === code;
const put = async (
  store: Store,
  key: string,
  value = 'v',
  durability: 'durable' | 'relaxed' | 'heartbeat' = 'durable',
): Promise<Revision> =>
  (await store.commit({ guards: [], puts: [{ key, value: Buffer.from(value) }], durability })).revision;

let root = '';
let certificates: Certificates;
before(async () => {
  root = await temporaryDirectory();
  certificates = await makeCertificates(root);
});
after(() => remove(root));
const fresh = (): Promise<string> => mkdtemp(join(root, 'data-'));

async function killed(process: Process): Promise<void> {
  process.child.kill('SIGKILL');
  await process.exited;
}

describe('store as a separate process', () => {
  it('kill -9 loses no acknowledged durable write and reverts no visible revision', async () => {
    const data = await fresh();
    const journal = new Map<string, { value: string; revision: Revision }>();
    let highest = 0;
    let writes = 0;
    for (let round = 0; round < 20; round += 1) {
      const etcd = await startProcess(data, certificates);
      const store = connect(etcd.endpoint, certificates, { requestTimeoutMs: 2000 });
      const { revision, kvs } = await store.range('/k/', prefixEnd('/k/'));
      const found = new Map(kvs.map((kv) => [kv.key, kv]));
      assert.ok(revision >= highest, `round ${round}: at revision ${revision} after showing ${highest}`);
      for (const [key, { value, revision: at }] of journal) {
        const kv = found.get(key);
        assert.ok(kv !== undefined && kv.modRevision >= at, `round ${round}: ${key} of revision ${at} is lost`);
        if (kv.modRevision === at) assert.equal(Buffer.from(kv.value).toString(), value);
      }
      let stopped = false;
      const writer = async (id: number): Promise<void> => {
        for (let i = 0; !stopped; i += 1) {
          const key = `/k/${id}-${i % 5}`;
          const value = `${round}-${i}`;
          const relaxed = id === 7;
          try {
            const at = await put(store, relaxed ? '/relaxed' : key, value, relaxed ? 'relaxed' : 'durable');
            if (!relaxed) journal.set(key, { value, revision: at });
            highest = Math.max(highest, at);
            writes += 1;
          } catch (error) {
            assert.ok(stopped && error instanceof StoreError, String(error));
          }
        }
      };
      const writers = Array.from({ length: 8 }, (_, id) => writer(id));
      await new Promise((resolve) => setTimeout(resolve, 5 + ((round * 37) % 60)));
      // On a busy machine some rounds would end before the first write.
      while (writes < round * 26) await new Promise((resolve) => setTimeout(resolve, 5));
      stopped = true;
      await killed(etcd);
      await store.close();
      await Promise.all(writers);
    }
  });

  it('rejects a second process on the same data directory and names the first one', async () => {
    const data = await fresh();
    const first = await startProcess(data, certificates);
    try {
      await assert.rejects(startProcess(data, certificates), new RegExp(`in use by process ${first.child.pid}`));
      const store = connect(first.endpoint, certificates);
      await put(store, 'a');
      await store.close();
    } finally {
      await killed(first);
    }
    const next = await startProcess(data, certificates);
    next.child.kill('SIGTERM');
    assert.equal(await next.exited, 0);
  });

  it('clients that have read relaxed writes lost in a crash must list again', async () => {
    const data = await fresh();
    let etcd = await startProcess(data, certificates);
    const port = Number(new URL(etcd.endpoint).port);
    const store = connect(etcd.endpoint, certificates);
    let seen = 0;
    // The relaxed write is sometimes written before the crash, so several rounds may be necessary.
    for (let round = 0; round < 10; round += 1) {
      await put(store, 'a', 'kept');
      await put(store, 'a', 'first', 'relaxed');
      seen = await put(store, 'a', 'shown', 'relaxed');
      await killed(etcd);
      etcd = await startProcess(data, certificates, port);
      const { kv } = await store.get('a');
      if ((kv?.modRevision ?? 0) < seen) break;
    }
    const { kv, revision } = await store.get('a');
    const there = kv?.modRevision ?? 0;
    assert.ok(there < seen && seen < revision, `${there} ${seen} ${revision}`);
    // The results are the same after another restart, because the files contain all state on which they depend.
    for (const restarted of [false, true]) {
      if (restarted) {
        await killed(etcd);
        etcd = await startProcess(data, certificates, port);
      }
      const misled = recorder();
      store.watch('a', prefixEnd('a'), storeRevision(seen + 1), misled.handler);
      await misled.until(() => misled.errors.length > 0, 'a refusal');
      assert.ok(coded('compacted')(misled.errors[0]), String(misled.errors[0]));
      const right = [recorder(), recorder()] as const;
      store.watch('a', prefixEnd('a'), storeRevision(there + 1), right[0].handler);
      store.watch('a', prefixEnd('a'), storeRevision(revision + 1), right[1].handler);
      await put(store, 'a', 'next');
      for (const each of right) await each.until(() => each.events.length > 0, 'an event');
      assert.deepEqual([right[0].errors, right[1].errors], [[], []]);
    }
    await store.close();
    await killed(etcd);
  });

  it('writes heartbeats to disk together with the next other write', async () => {
    const data = await fresh();
    let etcd = await startProcess(data, certificates);
    const port = Number(new URL(etcd.endpoint).port);
    const store = connect(etcd.endpoint, certificates);
    const restarted = async (): Promise<void> => {
      await killed(etcd);
      etcd = await startProcess(data, certificates, port);
    };
    const stored = async (key: string) => Buffer.from((await store.get(key)).kv?.value ?? []).toString();
    await put(store, 'lease', 'held');
    // The first relaxed write waits for the mark below which relaxed writes become visible.
    await put(store, 'lease', 'renewed', 'heartbeat');
    const seen = await put(store, 'lease', 'renewed again', 'heartbeat');
    assert.equal(await stored('lease'), 'renewed again');
    await sleep(1_500);
    await restarted();
    assert.equal(await stored('lease'), 'renewed');
    assert.ok((await store.get('lease')).revision > seen);
    for (const durability of ['relaxed', 'durable'] as const) {
      await put(store, 'lease', 'first', 'heartbeat');
      await put(store, 'lease', `before ${durability}`, 'heartbeat');
      await put(store, 'other', durability, durability);
      if (durability === 'relaxed') await sleep(1_500);
      await restarted();
      assert.deepEqual([await stored('lease'), await stored('other')], [`before ${durability}`, durability]);
    }
    await store.close();
    await killed(etcd);
  });

  it('reports the listen address if it is already in use', async () => {
    const first = await startHere(await fresh(), certificates);
    const port = Number(new URL(first.endpoint).port);
    await assert.rejects(startHere(await fresh(), certificates, {}, port), (error) => {
      return (
        error instanceof CodedError && error.code === 'address-in-use' && error.message.includes(`127.0.0.1:${port}`)
      );
    });
    await first.server.stop();
  });

  it('a client resumes its watches after a restart of the store without lost or duplicate events', async () => {
    const data = await fresh();
    let etcd = await startProcess(data, certificates);
    const port = Number(new URL(etcd.endpoint).port);
    const store = connect(etcd.endpoint, certificates);
    const watched = recorder();
    const watch = store.watch('/w/', prefixEnd('/w/'), storeRevision(2), watched.handler);
    const wanted: Revision[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 5; i += 1) wanted.push(await put(store, `/w/${i}`, `${round}`));
      if (round === 1) await watched.until(() => watched.events.length >= 8, 'some events');
      await killed(etcd);
      etcd = await startProcess(data, certificates, port);
    }
    wanted.push(await put(store, '/w/last'));
    await watched.until(() => watched.events.length >= wanted.length, 'all events');
    assert.deepEqual(
      watched.events.map((event) => event.kv.modRevision),
      wanted,
    );
    watch.requestProgress();
    await watched.until(() => watched.progress.length > 0, 'progress');
    assert.deepEqual(watched.errors, []);
    await store.close();
    await killed(etcd);
  });
});

describe('store in the test process', () => {
  it('a regular stop keeps relaxed writes and leaves no gap in the revisions', async () => {
    const data = await fresh();
    const first = await startHere(data, certificates);
    const store = connect(first.endpoint, certificates);
    const revision = await put(store, 'a', '1', 'relaxed');
    const last = await put(store, 'a', '2', 'relaxed');
    assert.equal(last, revision + 1);
    await store.close();
    await first.server.stop();
    const second = await startHere(data, certificates);
    const again = connect(second.endpoint, certificates);
    const { kv, revision: now } = await again.get('a');
    assert.equal(Buffer.from(kv?.value ?? []).toString(), '2');
    assert.equal(now, last);
    await again.close();
    await second.server.stop();
  });

  it('keeps leases and their keys over a restart of the store', async () => {
    const data = await fresh();
    const first = await startHere(data, certificates);
    const store = connect(first.endpoint, certificates);
    const lease = await store.grantLease(2);
    await store.commit({ guards: [], puts: [{ key: 'leased', value: Buffer.from('v'), lease }] });
    await store.close();
    await first.server.stop();
    const second = await startHere(data, certificates);
    const again = connect(second.endpoint, certificates);
    assert.ok((await again.get('leased')).kv);
    const watched = recorder();
    again.watch('leased', 'leased\0', storeRevision((await again.get('leased')).revision + 1), watched.handler);
    await watched.until(() => watched.events.some((event) => event.type === 'delete'), 'the expiry');
    await again.close();
    await second.server.stop();
  });

  it('a full range read larger than the cache does not evict cached values', async () => {
    const directory = await fresh();
    const log = createSqliteLog({ directory, log: silentLog });
    const reads: number[] = [];
    const storage: StoreLog = new Proxy(log, {
      get(target, name) {
        const member = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        if (name !== 'read') return member.bind(target);
        return (revisions: readonly number[]) => {
          reads.push(revisions.length);
          return target.read(revisions);
        };
      },
    });
    const { server, endpoint } = await startHere(directory, undefined, { storage, cacheBytes: 200 << 10 });
    const store = connect(endpoint, undefined);
    try {
      const value = (key: string): string => key.padEnd(1024, '.');
      const keys = Array.from({ length: 400 }, (_, i) => `/k/${1000 + i}`);
      for (const key of keys) await put(store, key, value(key));
      const everything = async (): Promise<void> => {
        for (let start = '/k/'; ; ) {
          const { kvs, more } = await store.range(start, prefixEnd('/k/'), { limit: 100 });
          for (const kv of kvs) assert.equal(Buffer.from(kv.value).toString(), value(kv.key));
          if (!more) break;
          start = `${kvs.at(-1)?.key}\0`;
        }
      };
      for (let round = 0; round < 2; round += 1) {
        reads.length = 0;
        await everything();
        const sum = reads.reduce((total, count) => total + count, 0);
        assert.ok(sum > 150 && sum < 250, `round ${round}: ${sum} of 400 rows were read, where half of them fit`);
      }
      // A value that is read individually is likely to be read again.
      reads.length = 0;
      for (let round = 0; round < 3; round += 1) await store.get(keys[7] as string);
      assert.deepEqual(reads, [1]);
    } finally {
      await store.close();
      await server.stop();
    }
  });

  it('repeats a read if the value was overwritten and compacted during the read', async () => {
    const directory = await fresh();
    const log = createSqliteLog({ directory, log: silentLog });
    let gone = 0;
    const storage: StoreLog = new Proxy(log, {
      get(target, name) {
        const member = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        if (name !== 'read') return member.bind(target);
        return async (revisions: readonly number[]) => {
          if (gone === 0) return target.read(revisions);
          gone -= 1;
          return revisions.map(() => undefined);
        };
      },
    });
    const { server, endpoint } = await startHere(directory, undefined, { storage, cacheBytes: 50 << 10 });
    const store = connect(endpoint, undefined);
    try {
      const keys = Array.from({ length: 100 }, (_, i) => `/k/${100 + i}`);
      const revisions: number[] = [];
      for (const key of keys) revisions.push(await put(store, key, key.padEnd(1024, '.')));
      gone = 1;
      assert.equal((await store.get(keys[0] as string)).kv?.modRevision, revisions[0]);
      assert.equal(gone, 0);
      gone = 2;
      // A failed guard returns the current value.
      const guards = [{ key: keys[1] as string, modRevision: storeRevision(1) }];
      const refused = await store.commit({ guards, puts: [{ key: keys[1] as string, value: Buffer.from('x') }] });
      assert.ok(!refused.committed && refused.current[0]?.modRevision === revisions[1]);
      assert.equal(gone, 0);
      // A value that is always missing is not retried forever.
      gone = Number.POSITIVE_INFINITY;
      await assert.rejects(store.get(keys[2] as string), coded('compacted'));
    } finally {
      await store.close();
      await server.stop();
    }
  });

  it('reports a full disk, keeps serving reads, and accepts writes again when space is free', {
    skip: process.getuid?.() !== 0,
  }, async () => {
    const mount = await fresh();
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', mount]);
    try {
      const etcd = await startHere(mount, certificates);
      const store = connect(etcd.endpoint, certificates);
      const before = await put(store, 'small', 'kept');
      const lease = await store.grantLease(60);
      const filler = join(mount, 'filler');
      await writeFile(filler, Buffer.alloc(4 << 20)).catch(() => {});
      const big = 'x'.repeat(60_000);
      let stored = 0;
      await assert.rejects(
        async () => {
          for (;;) {
            await store.commit({ guards: [], puts: [{ key: `big/${stored}`, value: Buffer.from(big), lease }] });
            stored += 1;
          }
        },
        (error) => coded('no-space')(error) && (error as Error).message === 'etcdserver: mvcc: database space exceeded',
      );
      // Concurrent writes are rejected individually and leave no data.
      const refused = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => put(store, `never/${i}`, big)));
      assert.ok(refused.every((result) => result.status === 'rejected' && coded('no-space')(result.reason)));
      const { kv, revision } = await store.get('small');
      assert.equal(kv?.modRevision, before);
      assert.equal(revision, before + stored);
      assert.equal((await store.range('never/', prefixEnd('never/'))).count, 0);
      assert.equal((await store.range('big/', prefixEnd('big/'))).count, stored);
      await rm(filler);
      const next = await put(store, 'small', 'changed');
      assert.equal(next, before + stored + 1);
      await store.close();
      await etcd.server.stop();
      assert.deepEqual(etcd.fatal, []);
      const again = await startHere(mount, certificates);
      const reader = connect(again.endpoint, certificates);
      assert.equal(Buffer.from((await reader.get('small')).kv?.value ?? []).toString(), 'changed');
      await reader.close();
      await again.server.stop();
    } finally {
      await run('umount', [mount]);
    }
  });

  it('rejects clients without a certificate or with a certificate of another CA', async () => {
    const etcd = await startHere(await fresh(), certificates);
    const foreign = await makeCertificates(await fresh());
    for (const client of [undefined, foreign.client]) {
      const store = connect(etcd.endpoint, undefined, { ca: certificates.ca, ...client, requestTimeoutMs: 300 });
      await assert.rejects(store.get('a'), coded('unavailable'));
      await store.close();
    }
    await etcd.server.stop();
  });

  it('rejects requests that exceed the size limit', async () => {
    const etcd = await startHere(await fresh(), certificates);
    const store = connect(etcd.endpoint, certificates);
    for (const size of [1_600_000, 3_000_000]) {
      await assert.rejects(put(store, 'a', 'x'.repeat(size)), coded('too-large'));
    }
    await put(store, 'a', 'x'.repeat(1_500_000));
    await store.close();
    await etcd.server.stop();
  });

  it('serves health, version and metrics over HTTP/1.1 and HTTP/2', async () => {
    const etcd = await startHere(await fresh(), certificates);
    const file = (name: string): string => join(root, name);
    const curl = async (version: string, path: string): Promise<string> => {
      const tls = ['--cacert', file('ca.crt'), '--cert', file('client.crt'), '--key', file('client.key')];
      return (await run('curl', ['-sS', '-w', ' %{http_code}', version, ...tls, `${etcd.endpoint}${path}`])).stdout;
    };
    for (const version of ['--http1.1', '--http2']) {
      assert.equal(await curl(version, '/health'), '{"health":"true","reason":""} 200');
      assert.equal(await curl(version, '/readyz'), 'ok\n 200');
      assert.match(await curl(version, '/readyz?verbose'), /^\[\+\]linearizable_read ok$/m);
      assert.match(await curl(version, '/version'), /"etcdserver":"3\.\d+\.\d+"/);
      assert.match(await curl(version, '/metrics'), /^etcd_server_has_leader 1$/m);
      assert.match(await curl(version, '/nothing'), / 404$/);
    }
    await etcd.server.stop();
  });
});

interface RawWatch {
  readonly responses: WatchResponse[];
  send(write: (writer: Writer) => Writer): void;
  until(condition: (responses: WatchResponse[]) => boolean): Promise<void>;
  close(): void;
}

function rawWatch(endpoint: string): RawWatch {
  const channel = new Channel({
    endpoints: [endpoint],
    ca: certificates.ca,
    ...certificates.client,
    log: silentLog,
    clock,
  });
  const responses: WatchResponse[] = [];
  let wake = (): void => {};
  const stream = channel.stream('/etcdserverpb.Watch/Watch', {
    message: (message) => {
      responses.push(decodeWatchResponse(message));
      wake();
    },
    ended: () => wake(),
  });
  return {
    responses,
    send: (write) => stream.send(write(new Writer()).finish()),
    until: async (condition) => {
      const deadline = performance.now() + 5000;
      while (!condition(responses)) {
        assert.ok(
          performance.now() < deadline,
          `timed out with ${JSON.stringify(responses, (_, v) => (typeof v === 'bigint' ? `${v}` : v))}`,
        );
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, 100);
        });
      }
    },
    close: () => channel.close(),
  };
}

describe('watch API', () => {
  let store: Store;
  let endpoint = '';
  let stop: () => Promise<void>;
  before(async () => {
    const etcd = await startHere(await fresh(), certificates);
    endpoint = etcd.endpoint;
    store = connect(endpoint, certificates);
    stop = async () => {
      await store.close();
      await etcd.server.stop();
    };
  });
  after(() => stop());

  it('a watch stream filters events, assigns IDs, rejects duplicate IDs and empty ranges, and confirms cancellation', async () => {
    const watch = rawWatch(endpoint);
    const start = (await store.get('f')).revision + 1;
    watch.send((out) => writeWatchCreate(out, { key: 'f', startRevision: start, noPut: true }));
    watch.send((out) =>
      writeWatchCreate(out, { key: 'f', startRevision: start, noDelete: true, watchId: 5, prevKv: true }),
    );
    watch.send((out) => writeWatchCreate(out, { key: 'f', watchId: 5 }));
    watch.send((out) => writeWatchCreate(out, { key: 'f', end: 'a' }));
    await watch.until((all) => all.length === 4);
    assert.deepEqual(
      watch.responses.map((r) => [r.watchId, r.created, r.canceled]),
      [
        [0, true, false],
        [5, true, false],
        [-1, true, true],
        [-1, true, true],
      ],
    );
    assert.match(watch.responses[2]?.cancelReason ?? '', /duplicate watch ID/);
    await put(store, 'f', '1');
    await put(store, 'f', '2');
    await store.commit({ guards: [], deletes: ['f'] });
    await watch.until((all) => all.filter((r) => r.events.length > 0).length === 3);
    const events = watch.responses.flatMap((r) =>
      r.events.map((e) => [r.watchId, e.type, e.kv.value.toString(), e.previous?.value.toString()]),
    );
    assert.deepEqual(
      events.filter((e) => e[0] === 5),
      [
        [5, 0, '1', undefined],
        [5, 0, '2', '1'],
      ],
    );
    assert.deepEqual(
      events.filter((e) => e[0] === 0),
      [[0, 1, '', undefined]],
    );
    watch.send((out) => writeWatchCancel(out, 5));
    await watch.until((all) => all.some((r) => r.watchId === 5 && r.canceled));
    watch.close();
  });

  it('a watch splits large responses into fragments on request', async () => {
    const watch = rawWatch(endpoint);
    const first = await put(store, 'g/0', 'x'.repeat(1_200_000));
    for (let i = 1; i < 4; i += 1) await put(store, `g/${i}`, 'x'.repeat(1_200_000));
    watch.send((out) => writeWatchCreate(out, { key: 'g/', end: 'g0', startRevision: first, fragment: true }));
    await watch.until((all) => all.reduce((sum, r) => sum + r.events.length, 0) === 4);
    const pieces = watch.responses.filter((r) => r.events.length > 0);
    assert.deepEqual(
      pieces.map((r) => r.fragment),
      [true, true, true, false],
    );
    watch.close();
  });

  it('reports watch progress only when every watch of the stream is up to date', async () => {
    const watch = rawWatch(endpoint);
    const first = await put(store, 'p/0');
    for (let i = 1; i < 50; i += 1) await put(store, `p/${i}`);
    watch.send((out) => writeWatchCreate(out, { key: 'p/', end: 'p0', startRevision: first }));
    watch.send((out) => writeWatchProgress(out));
    await watch.until((all) => all.some((r) => r.watchId === -1));
    const at = watch.responses.findIndex((r) => r.watchId === -1);
    assert.equal(
      watch.responses.slice(0, at).reduce((sum, r) => sum + r.events.length, 0),
      50,
    );
    watch.close();
  });

  it('delivers all events in order to many watches, and progress only after the events it covers', async () => {
    const watch = rawWatch(endpoint);
    const kinds = [{}, { noPut: true }, { noDelete: true }, { prevKv: true }, { key: 'm/3', end: '' }];
    const WATCHES = 300;
    for (let i = 0; i < WATCHES; i += 1)
      watch.send((out) => writeWatchCreate(out, { key: 'm/', end: 'm0', watchId: i + 1, ...kinds[i % kinds.length] }));
    await watch.until((all) => all.length === WATCHES);
    const written: Array<{ key: string; type: number; revision: number }> = [];
    const write = async (i: number): Promise<void> => {
      const key = `m/${i % 5}`;
      const type = i % 7 === 6 ? 1 : 0;
      const result =
        type === 0 ? await put(store, key, `${i}`) : (await store.commit({ guards: [], deletes: [key] })).revision;
      written.push({ key, type, revision: result });
    };
    for (let i = 0; i < 5; i += 1) await write(i);
    // Progress is requested at every moment of a write.
    let writing = 60;
    const asking = (async () => {
      for (let i = 0; writing > 0; i += 1) {
        watch.send((out) => writeWatchProgress(out));
        // A watch that is created and cancelled receives no event.
        watch.send((out) =>
          i % 2 === 0 ? writeWatchCreate(out, { key: 'n/', end: 'n0', watchId: 1000 }) : writeWatchCancel(out, 1000),
        );
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (; writing > 0; writing -= 1) await write(writing + 4);
    await asking;
    watch.send((out) => writeWatchProgress(out));
    const last = written.at(-1)?.revision ?? 0;
    await watch.until((all) => all.some((r) => r.watchId === -1 && r.revision >= last));
    const expected = (id: number): typeof written =>
      written.filter(({ key, type }) => {
        const kind = (id - 1) % kinds.length;
        return kind === 1 ? type === 1 : kind === 2 ? type === 0 : kind === 4 ? key === 'm/3' : true;
      });
    const heard = new Map<number, typeof written>();
    for (const { watchId, revision, events } of watch.responses) {
      const own = heard.get(watchId) ?? [];
      heard.set(watchId, own);
      for (const { type, kv } of events) own.push({ key: kv.key, type, revision: kv.modRevision });
      if (watchId !== -1) continue;
      for (let id = 1; id <= WATCHES; id += 1) {
        const due = expected(id).filter((event) => event.revision <= revision);
        assert.equal(heard.get(id)?.length, due.length, `watch ${id} at progress of ${revision}`);
      }
    }
    for (let id = 1; id <= WATCHES; id += 1) assert.deepEqual(heard.get(id), expected(id), `watch ${id}`);
    watch.close();
  });

  it('a watch client that does not read does not block other clients, and its memory is limited', async () => {
    const { host, port } = new URL(endpoint);
    assert.ok(host);
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(port),
      ca: certificates.ca,
      ...certificates.client,
      ALPNProtocols: ['h2'],
    });
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    const { encodeHeaders } = await import('../../../src/wire/http2/hpack.ts');
    const { PREFACE, frame, headersFrames, settingsFrame } = await import('../../../src/wire/http2/http2-frames.ts');
    const headers = encodeHeaders([
      { name: ':method', value: 'POST' },
      { name: ':scheme', value: 'https' },
      { name: ':path', value: '/etcdserverpb.Watch/Watch' },
      { name: ':authority', value: 'x' },
      { name: 'content-type', value: 'application/grpc' },
    ]);
    const request = writeWatchCreate(new Writer(), { key: 's/', end: 's0', startRevision: 1 }).finish();
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(request.length, 1);
    socket.write(
      Buffer.concat([
        PREFACE,
        settingsFrame([]),
        headersFrames(1, headers, { endStream: false }),
        frame(0, 0, 1, Buffer.concat([prefix, request])),
      ]),
    );
    socket.pause();
    const start = (await store.get('s/')).revision + 1;
    let seen = 0;
    const all = Promise.withResolvers<void>();
    const handler = {
      events: (events: readonly unknown[]) => {
        seen += events.length;
        if (seen === 300) all.resolve();
      },
      progress: () => {},
      closed: all.reject,
    };
    const watch = store.watch('s/', 's0', storeRevision(start), handler);
    const before = process.memoryUsage().arrayBuffers;
    const value = 'x'.repeat(200_000);
    for (let i = 0; i < 300; i += 1) await put(store, `s/${i % 3}`, value);
    await all.promise;
    // On a busy machine, buffers of events that were just sent are released some turns later.
    let grown = 0;
    for (let round = 0; round < 50; round += 1) {
      gc();
      grown = process.memoryUsage().arrayBuffers - before;
      if (grown < 45 << 20) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.ok(grown < 45 << 20, `${grown} bytes more for 60 MB of unread events`);
    watch.cancel();
    socket.destroy();
  });
});

describe("etcd's own client", async () => {
  const installed = await isInstalled('/usr/bin/etcdctl');
  it('etcdctl key-value, lease, watch and maintenance commands work with this store', {
    skip: !installed,
  }, async () => {
    const etcd = await startHere(await fresh(), certificates);
    const file = (name: string): string => join(root, name);
    const flags = [
      '--endpoints',
      etcd.endpoint,
      '--cacert',
      file('ca.crt'),
      '--cert',
      file('client.crt'),
      '--key',
      file('client.key'),
    ];
    const env = { ...process.env, ETCDCTL_API: '3' };
    const ctl = async (...args: string[]): Promise<string> =>
      (await run('etcdctl', [...flags, ...args], { env, timeout: 10_000 })).stdout;
    assert.equal(await ctl('put', 'a', '1'), 'OK\n');
    assert.equal(await ctl('put', 'a', '2', '--prev-kv'), 'OK\na\n1\n');
    assert.equal(await ctl('get', 'a', '--print-value-only'), '2\n');
    assert.equal(await ctl('get', 'a', '--rev', '2', '--print-value-only'), '1\n');
    await ctl('put', 'b', '3');
    assert.equal(await ctl('get', '', '--prefix', '--keys-only', '--order', 'DESCEND'), 'b\n\na\n\n');
    const txn = spawn('etcdctl', [...flags, 'txn'], { env });
    txn.stdin.end('mod("a") > "0"\nvalue("b") = "3"\n\nput c 9\nget a\n\nget b\n\n');
    let out = '';
    for await (const piece of txn.stdout) out += piece;
    assert.equal(out, 'SUCCESS\n\nOK\n\na\n2\n');
    assert.equal(await ctl('del', 'a', 'c', '--prev-kv'), '2\na\n2\nb\n3\n');
    const lease = (await ctl('lease', 'grant', '60')).split(' ')[1] ?? '';
    await ctl('put', 'leased', 'v', `--lease=${lease}`);
    assert.match(
      await ctl('lease', 'timetolive', lease, '--keys'),
      /granted with TTL\(60s\).*attached keys\(\[leased\]\)/,
    );
    assert.match(await ctl('lease', 'list'), new RegExp(lease));
    assert.match(await ctl('lease', 'keep-alive', '--once', lease), /keepalived with TTL\(60\)/);
    await ctl('lease', 'revoke', lease);
    assert.equal(await ctl('get', 'leased'), '');
    const watch = spawn('etcdctl', [...flags, 'watch', '--rev', '2', '--prefix', '--prev-kv', ''], { env });
    let seen = '';
    await new Promise<void>((resolve) => {
      watch.stdout.on('data', (piece) => {
        seen += piece;
        if (seen.includes('DELETE\nleased\nv\n')) resolve();
      });
    });
    watch.kill('SIGKILL');
    assert.match(seen, /^PUT\na\n1\nPUT\na\n1\na\n2\nPUT\nb\n3\n/);
    assert.match(await ctl('member', 'list'), /started, test/);
    assert.match(await ctl('endpoint', 'status'), /3\.\d+\.\d+, .*true/);
    await ctl('endpoint', 'health');
    assert.match(await ctl('endpoint', 'hashkv'), /, \d+\n$/);
    assert.match(await ctl('compaction', '5', '--physical'), /compacted revision 5/);
    await assert.rejects(ctl('get', 'a', '--rev', '2'), /required revision has been compacted/);
    assert.match(await ctl('defrag'), /Finished/);
    await ctl('snapshot', 'save', join(await fresh(), 'snapshot.db'));
    assert.match(await ctl('lock', 'mutex', 'echo', 'held'), /held/);
    await etcd.server.stop();
  });
});
