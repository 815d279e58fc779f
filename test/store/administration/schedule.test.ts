import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLog, silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { takeInChild } from '../../../src/host/store/snapshot-child.ts';
import { storeFiles } from '../../../src/host/store/store-files.ts';
import { scheduleSnapshots } from '../../../src/store/administration/schedule.ts';
import { parseEvery, readSchedule } from '../../../src/store/config/snapshot-schedule.ts';
import { done, hyperedge } from '../../host/stores.ts';

const HOUR = 3_600_000;

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-schedule-'));
});
after(() => rm(directory, { recursive: true, force: true }));

/** Manual clock that runs one timer at a time. */
class Time implements Clock {
  now = Date.parse('2026-01-01T00:00:00Z');
  timers: Array<{ at: number; run: () => void }> = [];
  nowMs = (): number => this.now;
  monotonicMs = (): number => this.now;
  setTimer = (ms: number, run: () => void) => {
    const timer = { at: this.now + ms, run };
    this.timers.push(timer);
    return {
      cancel: () => {
        this.timers = this.timers.filter((each) => each !== timer);
      },
    };
  };

  /** Runs the next timer and resolves when the schedule has set another one. Returns the delay. */
  async next(): Promise<number> {
    await this.armed();
    const [timer] = this.timers.splice(0, 1);
    assert.ok(timer !== undefined);
    const passed = Math.max(0, timer.at - this.now);
    this.now += passed;
    timer.run();
    return passed;
  }

  async armed(): Promise<void> {
    while (this.timers.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    assert.equal(this.timers.length, 1, 'one timer, not several');
  }
}

const header = 'apiVersion: hyperedge.dev/v1\nkind: SnapshotSchedule\n';

async function place(name: string, every: string): Promise<{ file: string; own: string }> {
  const own = join(directory, name);
  await mkdir(own);
  const file = join(directory, `${name}.yaml`);
  await writeFile(file, `${header}every: ${every}\n`);
  return { file, own };
}

/** Creates an empty snapshot file, because only its name matters here. */
function leave(own: string, ms: number): Promise<void> {
  const stamp = `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
  return writeFile(join(own, `etcd-1-${stamp}.db`), '');
}

test('takes a missed snapshot one minute after the start, and then one per interval', async () => {
  const { file, own } = await place('missed', '6h');
  const clock = new Time();
  await leave(own, clock.now - 30 * HOUR);
  const used: number[] = [];
  const began = clock.now;
  const schedule = scheduleSnapshots({
    read: () => readSchedule(file, own),
    files: storeFiles,
    clock,
    log: silentLog,
    take: async () => {
      used.push((clock.now - began) / 60_000);
      if (used.length !== 3) await leave(own, clock.now);
      return 'unchanged';
    },
  });
  for (let i = 0; i < 4; i += 1) await clock.next();
  await clock.armed();
  // The third run found no change: it wrote no file and rescheduled normally.
  assert.deepEqual(used, [1, 361, 721, 1081]);
  await schedule.stop();
  assert.equal(clock.timers.length, 0);
});

test('waits for the rest of the interval, retries a failed snapshot after an hour, and takes none when disabled', async () => {
  const { file, own } = await place('waits', '6h');
  const clock = new Time();
  await leave(own, clock.now - 4 * HOUR);
  let tries = 0;
  const schedule = scheduleSnapshots({
    read: () => readSchedule(file, own),
    files: storeFiles,
    clock,
    log: silentLog,
    take: async () => {
      tries += 1;
      throw new Error('no store');
    },
  });
  assert.equal(await clock.next(), 2 * HOUR);
  assert.equal(await clock.next(), HOUR);
  await clock.armed();
  assert.equal(tries, 2);
  await writeFile(file, `${header}enabled: false\n`);
  await schedule.reload();
  await clock.next();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual([tries, clock.timers.length], [2, 0]);
  await writeFile(file, `${header}every: 5 minutes\n`);
  await assert.rejects(schedule.reload(), {
    message: /waits.yaml:3: every: .*give minutes, hours or days such as 30m/,
  });
  await schedule.stop();
});

test('stopping the snapshot schedule ends a running snapshot process and logs no failure', async () => {
  const { file, own } = await place('stopped', '6h');
  const clock = new Time();
  const started = join(directory, 'started');
  const lines: string[] = [];
  const schedule = scheduleSnapshots({
    read: () => readSchedule(file, own),
    files: storeFiles,
    clock,
    log: createLog({ component: 'test', level: 9, sink: { write: (line) => lines.push(line) }, nowMs: () => 0 }),
    take: takeInChild(['/bin/sh', '-c', `echo $$ > ${started}.new; mv ${started}.new ${started}; exec sleep 60`], '/'),
  });
  await clock.next();
  let pid = 0;
  while (pid === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    pid = Number(await readFile(started, 'utf8').catch(() => 0));
  }
  try {
    await schedule.stop();
    await assert.rejects(stat(`/proc/${pid}`), { code: 'ENOENT' });
    assert.deepEqual([lines, clock.timers], [[], []]);
  } finally {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended, as expected.
    }
  }
});

test('parses snapshot intervals with a unit, and rejects other texts', () => {
  assert.deepEqual(['30m', '6h', '7d', '1m', '365d'].map(parseEvery), [
    30 * 60_000,
    6 * HOUR,
    168 * HOUR,
    60_000,
    8760 * HOUR,
  ]);
  for (const wrong of ['', '6', 'h', '0h', '1.5h', '400d', '-6h', '6h ', '6H'])
    assert.equal(parseEvery(wrong), undefined, wrong);
});

test('hyperedge snapshot schedule shows the settings and changes only those that are given', async () => {
  const root = join(directory, 'root');
  const at = ['--root', root];
  assert.match(
    await done('snapshot', 'schedule', ...at),
    /^every 24h, the newest 3 are kept in .*var\/lib\/origin\/snapshots\n$/,
  );
  await assert.rejects(stat(join(root, 'etc')), 'looking writes nothing');
  await done('snapshot', 'schedule', '--every', '6h', ...at);
  await done('snapshot', 'schedule', '--keep', '8', '--directory', '/srv/snapshots', ...at);
  assert.equal(await done('snapshot', 'schedule', ...at), 'every 6h, the newest 8 are kept in /srv/snapshots\n');
  assert.match(await done('snapshot', 'schedule', '--off', ...at), /^off/);
  const file = join(root, 'etc/origin/node/snapshot-schedule.yaml');
  assert.match(await readFile(file, 'utf8'), /kind: SnapshotSchedule\nenabled: false\nevery: 6h\n/);
  assert.equal((await readSchedule(file, '/')).enabled, false);
  const { code, err } = await hyperedge('snapshot', 'schedule', '--every', 'often', ...at);
  assert.equal(code, 2);
  assert.match(err, /--every=often: give minutes, hours or days/);
});
