/** A kind that is added to a running cache has all stored objects, and its watches miss no event. */

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { WatchCache } from '../../../src/apiserver/watch-cache/watch-cache.ts';
import { storeRevision } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import type { Store } from '../../../src/store/port.ts';
import { createMemoryStore, type MemoryStore } from '../../conformance/memory-store.ts';

const ROOT = '/registry/lab.example.com/';
const value = (n: number): Uint8Array =>
  Buffer.from(`{"apiVersion":"lab.example.com/v1","kind":"Rig","metadata":{"name":"x"},"n":${n}}`);

let store: MemoryStore;
let cache: WatchCache;
before(async () => {
  store = createMemoryStore();
  // Range reads are slow, and their result is older than concurrent writes.
  const slow: Store = new Proxy(store, {
    get(target, name, receiver) {
      if (name === 'watch') {
        // Events are late but in order, so some from before a read arrive after it.
        return (...[from, to, revision, observer]: Parameters<Store['watch']>) => {
          let last: Promise<void> = Promise.resolve();
          const later = (work: () => void): void => {
            last = last.then(() => new Promise((resolve) => setTimeout(resolve, 1))).then(work);
          };
          return target.watch(from, to, revision, {
            events: (events, upTo) => later(() => observer.events(events, upTo)),
            progress: (upTo) => later(() => observer.progress(upTo)),
            closed: (error) => later(() => observer.closed(error)),
          });
        };
      }
      if (name !== 'range') {
        const member = Reflect.get(target, name, receiver) as unknown;
        return typeof member === 'function' ? member.bind(target) : member;
      }
      return async (...args: Parameters<Store['range']>) => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
        const page = await target.range(...args);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
        return page;
      };
    },
  });
  cache = new WatchCache({ store: slow, clock, log: silentLog, soleWriter: () => false }, []);
  await cache.start();
});
after(async () => {
  cache.stop();
  await store.close();
});

async function change(key: string, n: number): Promise<void> {
  const { kv } = await store.get(key);
  const guards = [{ key, modRevision: kv?.modRevision ?? storeRevision(0) }];
  if (kv !== undefined && n % 3 === 0) await store.commit({ guards, puts: [], deletes: [key] });
  else await store.commit({ guards, puts: [{ key, value: value(n) }], deletes: [] });
}

it('the watch cache contains all objects although keys are written and deleted during the initial load', async () => {
  for (let round = 0; round < 40; round++) {
    const prefix = `${ROOT}rigs${round}/`;
    const keys = Array.from({ length: 12 }, (_, index) => `${prefix}ns/r${index}`);
    let n = 0;
    const next = (): Promise<void> => change(keys[Math.floor(Math.random() * keys.length)] as string, ++n);
    for (let index = 0; index < 10; index++) await next();
    let writing = true;
    const writer = (async () => {
      while (writing) {
        await next();
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const options = { prefix, namespaced: true, fieldReaders: {} };
    const [kind, same] = await Promise.all([cache.addKind(options), cache.addKind(options)]);
    assert.equal(kind, same);
    const joinedAt = kind.lastChange;
    // The state that a watch builds from the list and later events.
    const seen = new Map(kind.list(undefined).map((object) => [object.key, object.revision]));
    const unsubscribe = kind.subscribe(
      {
        deliver(batch) {
          for (const event of batch.events) {
            assert.ok(event.revision > joinedAt, 'what the reading had is no news');
            if (event.type === 'DELETED') seen.delete(event.object.key);
            else seen.set(event.object.key, event.revision);
          }
        },
        reset: () => assert.fail('the watch was ended'),
      },
      cache.revision,
      cache.revision,
    );
    for (let index = 0; index < 5; index++) await new Promise((resolve) => setTimeout(resolve, 1));
    writing = false;
    await writer;
    const { kvs, revision } = await store.range(prefix, `${prefix.slice(0, -1)}0`, {});
    await cache.waitFor(revision);
    const expected = kvs.map((each) => [each.key.slice(prefix.length), each.modRevision]);
    assert.deepEqual(
      kind.list(undefined).map((object) => [object.key, object.revision]),
      expected,
      `round ${round}`,
    );
    assert.deepEqual([...seen].sort(), expected.sort(), `round ${round}: the watcher`);
    unsubscribe();
  }
});
