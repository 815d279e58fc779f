import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostLogs, journalArguments } from '../../../../src/kubelet/io/host-facts/index.ts';
import { openAfterFailingStat } from '../../../support/failing-stat.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-logs-'));
  await mkdir(join(directory, 'log/pods'), { recursive: true });
  await writeFile(join(directory, 'log/messages'), 'one\ntwo\n');
  await writeFile(join(directory, 'secret'), 'no log');
  await symlink('../secret', join(directory, 'log/out'));
  await symlink('messages', join(directory, 'log/latest'));
});
after(() => rm(directory, { recursive: true, force: true }));

test('serves files and directories below the log directory, and follows no links out of it', async () => {
  const logs = hostLogs(join(directory, 'log'));
  assert.deepEqual(await logs.names(''), ['latest', 'messages', 'out', 'pods/']);
  assert.equal(await logs.names('messages'), undefined);
  for (const path of ['messages', 'latest']) {
    const file = await logs.open(path);
    assert.ok(file);
    assert.equal(await text(file), 'one\ntwo\n');
  }
  for (const path of ['out', '../secret', 'pods', 'none']) assert.equal(await logs.open(path), undefined, path);
  assert.equal(await logs.names('..'), undefined);
});

test('closes a log file that cannot be inspected', async () => {
  const logs = hostLogs(join(directory, 'log'));
  const refused = async () => assert.equal(await logs.open('messages'), undefined);
  assert.equal(await openAfterFailingStat(join(directory, 'log/messages'), refused), 0);
});

test('rejects a socket and a pipe without a writer as log files, and does not block threads', async () => {
  const logs = hostLogs(join(directory, 'log'));
  execFileSync('mkfifo', [join(directory, 'log/pipe')]);
  // The test opens more pipes than libuv has threads.
  const opened = await Promise.race([
    Promise.all(Array.from({ length: 8 }, () => logs.open('pipe'))),
    sleep(1_000, 'stuck', { ref: false }),
  ]);
  // Unblocks the threads, so that a failed test ends too.
  if (opened === 'stuck')
    execFileSync('sh', ['-c', 'for i in 1 2 3 4 5 6 7 8; do : > "$0"; done', join(directory, 'log/pipe')]);
  assert.deepEqual(
    opened,
    Array.from({ length: 8 }, () => undefined),
  );
});

test('converts a journal query to arguments of journalctl, with times in the format of journalctl', () => {
  const query = {
    units: ['sshd'],
    since: '2026-11-23T10:00:00+01:00',
    tail: 5,
    boot: 0,
    pattern: 'fail.*',
    caseSensitive: false,
  };
  assert.deepEqual(journalArguments(query), [
    '--utc',
    '--no-pager',
    '--output=short-precise',
    '--unit=sshd',
    '--since=2026-11-23 09:00:00 UTC',
    '--boot=0',
    '--lines=5',
    '--grep=fail.*',
    '--case-sensitive=false',
  ]);
});

test('returns the output of journalctl, and ends the stream with its errors', async () => {
  const logs = hostLogs(directory, 'echo');
  assert.match(await text(logs.journal({ units: ['a'] }, new AbortController().signal)), /--unit=a/);
  const missing = hostLogs(directory, join(directory, 'journalctl'));
  await assert.rejects(text(missing.journal({ units: [] }, new AbortController().signal)), /ENOENT/);
});
