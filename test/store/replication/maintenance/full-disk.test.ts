import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import type { StoreLog } from '../../../../src/store/disk/port.ts';
import type { Engine } from '../../../../src/store/replication/engine.ts';
import { FullDisk } from '../../../../src/store/replication/maintenance/full-disk.ts';

for (const { name, recoverSpace, room, full } of [
  { name: 'with free disk space', recoverSpace: async () => true, room: true, full: false },
  { name: 'with a used up disk reserve', recoverSpace: async () => false, room: false, full: true },
  {
    name: 'with a closed store',
    recoverSpace: () => Promise.reject(new Error('closed')),
    room: false,
    full: false,
  },
])
  test(`reports whether a member ${name} may become leader`, async () => {
    const engine = {
      full: false,
      diskFull(now: boolean) {
        this.full = now;
      },
    };
    const disk = new FullDisk({
      engine: engine as unknown as Engine,
      storage: { recoverSpace } as unknown as StoreLog,
      log: silentLog,
      querySpace: async () => {},
    });
    assert.equal(await disk.hasRoom(), room);
    assert.equal(engine.full, full);
  });
