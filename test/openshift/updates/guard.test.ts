/** Update guard on real files: links, records and started executables. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { createLog, silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import type { SwitchRecord } from '../../../src/openshift/updates/core/index.ts';
import { runGuard } from '../../../src/openshift/updates/guard.ts';
import { createExecutables } from '../../../src/openshift/updates/io/index.ts';
import type { HostExecutables } from '../../../src/openshift/updates/port.ts';

/** Clock in which a minute takes a fifth of a second. */
const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() * 300 };
let root = '';
let restarts: string[] = [];
let executables: HostExecutables;
const directory = (): string => join(root, 'bin');
const target = (): Promise<string> => readlink(join(directory(), 'hyperedge'));
const record = (change: Partial<SwitchRecord> = {}): SwitchRecord => ({
  id: '2',
  from: '0.1.0',
  to: '0.2.0',
  phase: 'trying',
  message: '',
  timeoutMs: 300,
  ...change,
});

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-guard-'));
  restarts = [];
  await mkdir(directory());
  await writeFile(join(directory(), 'hyperedge'), 'old');
  await writeFile(join(root, 'new'), 'new');
  executables = createExecutables({
    directory: directory(),
    recordFile: join(root, 'state/record.json'),
    own: join(directory(), 'hyperedge'),
    startGuard: async () => {},
    restart: async () => {
      restarts.push(await target());
      // The former executable reports that it runs again.
      const present = await executables.record();
      if (present?.phase === 'rollingBack') await executables.writeRecord({ ...present, phase: 'failed' });
    },
  });
  await executables.keepRunning('0.1.0');
  await executables.place('0.2.0', join(root, 'new'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('stores the executables of releases side by side and switches between them with a symbolic link', async () => {
  assert.equal(await executables.link(), undefined);
  assert.equal(await executables.has('0.1.0', undefined), true);
  assert.equal(await executables.has('0.2.0', '0'.repeat(64)), false);
  await executables.setLink('0.2.0');
  assert.equal(await executables.link(), '0.2.0');
  assert.equal(await readFile(join(directory(), 'hyperedge'), 'utf8'), 'new');
  assert.equal(await readlink(join(directory(), 'hyperedge-guard')), 'hyperedge-0.1.0');
  await assert.rejects(executables.setLink('0.9.0'), /hyperedge-0\.9\.0 is missing/);
  await assert.rejects(executables.place('../../x', join(root, 'new')), /is not a release version/);
  assert.equal(await executables.link(), '0.2.0');
  await executables.prune(['0.2.0']);
  assert.deepEqual((await readdir(directory())).sort(), ['hyperedge', 'hyperedge-0.2.0', 'hyperedge-guard']);
});

test('replaces an executable that does not confirm its start in time with the former executable', {
  timeout: 30_000,
}, async () => {
  await executables.writeRecord(record());
  await executables.setLink('0.2.0');
  await runGuard(executables, clock, silentLog);
  assert.equal(await target(), 'hyperedge-0.1.0');
  assert.deepEqual(restarts, ['hyperedge-0.1.0']);
  const ended = await executables.record();
  assert.equal(ended?.phase, 'failed');
  assert.match(ended?.message ?? '', /0\.2\.0 was not healthy within 0 s/);
  assert.equal(await executables.countStart('2'), 2);
  assert.equal(await executables.countStart('3'), 1);
});

test('the guard keeps an executable that confirms its start in time', { timeout: 30_000 }, async () => {
  await executables.writeRecord(record({ timeoutMs: 60_000 }));
  await executables.setLink('0.2.0');
  const guarded = runGuard(executables, clock, silentLog);
  await executables.writeRecord(record({ phase: 'done' }));
  await guarded;
  assert.equal(await target(), 'hyperedge-0.2.0');
  assert.deepEqual(restarts, []);
});

test('the guard completes a rollback that was interrupted', { timeout: 30_000 }, async () => {
  await executables.writeRecord(record({ phase: 'rollingBack', message: 'too late' }));
  await executables.setLink('0.2.0');
  await runGuard(executables, clock, silentLog);
  assert.equal(await target(), 'hyperedge-0.1.0');
  assert.equal((await executables.record())?.message, 'too late');
});

test('the guard exits when no update is in progress', async () => {
  await runGuard(executables, clock, silentLog);
  assert.deepEqual(restarts, []);
});

test('keeps the record and leaves no temporary files on a full disk', async () => {
  const state = join(root, 'state');
  await mkdir(state, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', state]);
  try {
    await executables.writeRecord(record());
    await assert.rejects(writeFile(join(state, 'filler'), Buffer.alloc(1 << 20)), { code: 'ENOSPC' });
    const before = await readdir(state);
    for (let attempt = 0; attempt < 3; attempt++)
      await assert.rejects(executables.writeRecord(record({ phase: 'done' })), { code: 'ENOSPC' });
    assert.deepEqual(await readdir(state), before);
    assert.equal((await executables.record())?.phase, 'trying');
  } finally {
    execFileSync('umount', [state]);
  }
});

test('an unreadable record does not end the guard', { timeout: 30_000 }, async () => {
  await executables.writeRecord(record());
  await executables.setLink('0.2.0');
  const file = join(root, 'state/record.json');
  await rename(file, `${file}.readable`);
  // A read of the first page of this file fails with EIO, as on a damaged disk.
  await symlink('/proc/self/mem', file);
  await assert.rejects(executables.record(), { code: 'unreadable', message: /state\/record\.json: EIO/ });
  const failures: string[] = [];
  const log = {
    ...silentLog,
    warn: (message: string) => {
      failures.push(message);
      if (failures.length === 1) void rename(`${file}.readable`, file);
    },
  };
  await runGuard(executables, clock, log);
  assert.equal(failures[0], 'guard step failed; retrying');
  assert.equal(await target(), 'hyperedge-0.1.0');
});

test('rejects an update of an executable that hyperedge install has not installed', async () => {
  const other = createExecutables({
    directory: directory(),
    recordFile: join(root, 'record'),
    own: '/opt/hyperedge',
    startGuard: async () => {},
    restart: async () => {},
  });
  await assert.rejects(other.keepRunning('0.1.0'), /run hyperedge install first/);
});

test('waits with a damaged record, keeps the record, and rolls back once the record is repaired', {
  timeout: 30_000,
}, async () => {
  const lines: string[] = [];
  const log = createLog({ component: 'guard', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: Date.now });
  const file = join(root, 'state/record.json');
  await executables.writeRecord(record());
  await executables.setLink('0.2.0');
  await writeFile(file, '{"id":"2","fr');
  await assert.rejects(executables.record(), { code: 'damaged' });
  const guard = runGuard(executables, clock, log);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(await target(), 'hyperedge-0.2.0');
  assert.equal(await readFile(file, 'utf8'), '{"id":"2","fr');
  assert.deepEqual(lines.length, 1, 'logged once');
  assert.match(lines[0] ?? '', /record\.json: the record of the last update is damaged/);
  await executables.writeRecord(record());
  await guard;
  assert.equal(await target(), 'hyperedge-0.1.0');
});
