import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readPages } from '../../../src/apiserver/watch-cache/pages.ts';
import { type RangeOptions, type RangeResult, type Store, StoreError } from '../../../src/store/port.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';

const PREFIX = '/registry/';
const keyOf = (n: number): string => `${PREFIX}things/${String(n).padStart(5, '0')}`;

async function filled(count: number): Promise<Store> {
  const store = createMemoryStore();
  await store.commit({ guards: [], puts: [{ key: '/other', value: Buffer.from('x') }] });
  const puts = Array.from({ length: count }, (_, n) => ({ key: keyOf(n), value: Buffer.from(String(n)) }));
  await store.commit({ guards: [], puts });
  return store;
}

function watched(store: Store, range: Store['range']): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'range') return range;
      const member = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return member.bind(target);
    },
  });
}

it('reads all keys at the same revision although keys are written meanwhile', async () => {
  for (const count of [0, 1, 999, 1000, 1001, 2500]) {
    const store = await filled(count);
    let pages = 0;
    const disturbed = watched(
      store,
      async (start: string, end: string, options?: RangeOptions): Promise<RangeResult> => {
        const page = await store.range(start, end, options);
        pages += 1;
        await store.commit({
          guards: [],
          puts: [{ key: keyOf(count + pages), value: Buffer.from('late') }],
          deletes: [keyOf(count - 1)],
        });
        return page;
      },
    );
    const { revision: expected } = await store.range(PREFIX, '/registry0');
    const keys: string[] = [];
    const revision = await readPages(disturbed, PREFIX, (kvs) => keys.push(...kvs.map(({ key }) => key)));
    assert.equal(revision, expected);
    assert.deepEqual(
      keys,
      Array.from({ length: count }, (_, n) => keyOf(n)),
    );
    await store.close();
  }
});

it('requests the next page during the processing of the current page', async () => {
  const store = await filled(2500);
  const order: string[] = [];
  let requested = 0;
  const noted = watched(store, (start: string, end: string, options?: RangeOptions) => {
    requested += 1;
    const page = requested;
    // Requests are sent when the turn of the event loop ends.
    setImmediate(() => order.push(`${page} left`));
    return store.range(start, end, options);
  });
  let used = 0;
  await readPages(noted, PREFIX, () => {
    used += 1;
    order.push(`${used} taken over`);
  });
  assert.deepEqual(
    order.filter((step) => step !== '1 left'),
    ['2 left', '1 taken over', '3 left', '2 taken over', '3 taken over'],
  );
  await store.close();
});

it('reading all keys rejects with an error of the store or of the processing', async () => {
  const store = await filled(2500);
  const failing = watched(store, (start: string, end: string, options?: RangeOptions) =>
    start === PREFIX ? store.range(start, end, options) : Promise.reject(new StoreError('compacted', 'compacted')),
  );
  let used = 0;
  await assert.rejects(
    readPages(failing, PREFIX, () => {
      used += 1;
    }),
    (error) => error instanceof StoreError && error.code === 'compacted',
  );
  assert.equal(used, 1);
  // The pending page also fails, without an unhandled rejection.
  await assert.rejects(
    readPages(failing, PREFIX, () => {
      throw new RangeError('no room');
    }),
    RangeError,
  );
  await store.close();
});
