import assert from 'node:assert/strict';
import { it } from 'node:test';
import { storeRevision } from '../../../../src/base/brand.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { createSqliteLog } from '../../../../src/store/disk/index.ts';
import type { StoreLog } from '../../../../src/store/disk/port.ts';
import { StoreError } from '../../../../src/store/port.ts';
import { connect, remove, startHere, temporaryDirectory } from '../../harness.ts';

const RESERVE_BYTES = 10_000;

it('transactions whose guards fail do not use up the reserve of a full disk', async () => {
  const directory = await temporaryDirectory();
  let full = false;
  const disk = {
    commit: (batch: Parameters<StoreLog['commit']>[0]) => log.commit(batch).then(() => ({ full })),
    reserveBytes: () => RESERVE_BYTES,
    recoverSpace: async () => false,
  };
  const log = createSqliteLog({ directory, log: silentLog });
  const storage: StoreLog = new Proxy(log, {
    get: (target, name) => {
      const own: unknown = Reflect.get(disk, name);
      return own ?? (Reflect.get(target, name) as (...args: unknown[]) => unknown).bind(target);
    },
  });
  const { server, endpoint } = await startHere(directory, undefined, { storage });
  const store = connect(endpoint, undefined);
  try {
    const put = (bytes: number, modRevision?: number, reserve = true) => {
      const guards = modRevision === undefined ? [] : [{ key: 'k', modRevision: storeRevision(modRevision) }];
      return store.commit({ guards, puts: [{ key: 'k', value: Buffer.alloc(bytes) }], reserve });
    };
    full = true;
    await put(10);
    await assert.rejects(
      put(10, undefined, false),
      (error) => error instanceof StoreError && error.code === 'no-space',
    );
    for (let conflicts = 0; conflicts < 20; conflicts += 1) assert.equal((await put(4_000, 1)).committed, false);
    for (let writes = 0; writes < 2; writes += 1) assert.equal((await put(4_000)).committed, true);
    await assert.rejects(put(4_000), (error) => error instanceof StoreError && error.code === 'no-space');
  } finally {
    await store.close();
    await server.stop();
    await remove(directory);
  }
});
