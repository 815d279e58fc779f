import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { createLog } from '../../../src/base/log.ts';
import { openDiskReserve } from '../../../src/host/run/disk-reserve.ts';

const run = promisify(execFile);

it('reserves disk space while there is enough, and releases the reserve at a start on a full disk', async () => {
  const disk = await mkdtemp(join(tmpdir(), 'reserve-'));
  await run('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', disk]);
  const lines: string[] = [];
  const log = createLog({ component: 'disk', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: Date.now });
  const timers: (() => void)[] = [];
  const clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    setTimer: (_: number, callback: () => void) => {
      timers.push(callback);
      return { cancel: () => {} };
    },
  };
  const file = join(disk, 'lib/reserve');
  const size = (): Promise<number> =>
    stat(file).then(
      (found) => found.size,
      () => 0,
    );
  const check = async (test: () => Promise<boolean>): Promise<void> => {
    timers.shift()?.();
    for (let tries = 0; tries < 100 && !(await test()); tries += 1) await new Promise((done) => setTimeout(done, 20));
    assert.ok(await test());
  };
  try {
    const reserve = await openDiskReserve(file, clock, log);
    await writeFile(join(disk, 'used'), Buffer.alloc(28 << 20));
    const stop = reserve.keep();
    await check(async () => timers.length === 1);
    assert.equal(await size(), 0, 'not from the last room');
    await rm(join(disk, 'used'));
    await check(async () => (await size()) === 1 << 20);
    stop();

    await openDiskReserve(file, clock, log);
    assert.equal(await size(), 1 << 20, 'kept while there is room');
    await writeFile(join(disk, 'used'), Buffer.alloc(31 << 20)).catch(() => {});
    await openDiskReserve(file, clock, log);
    assert.equal(await size(), 0);
    assert.match(lines.join('\n'), /disk is full; reserve released/);
  } finally {
    await run('umount', ['-l', disk]);
    await rm(disk, { recursive: true, force: true });
  }
});
