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
  const logs = hostLogs({ directory: join(directory, 'log') });
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

test('does not serve an excluded directory, by no spelling and through no link', async () => {
  await mkdir(join(directory, 'log/origin/rigs/bench'), { recursive: true });
  await mkdir(join(directory, 'log/origin/rigs-of-old'));
  await mkdir(join(directory, 'elsewhere'));
  for (const path of ['log/origin/rigs/bench/1.log', 'log/origin/rigs-of-old/2.log', 'elsewhere/3.log'])
    await writeFile(join(directory, path), 'password');
  await symlink('origin/rigs/bench/1.log', join(directory, 'log/alias'));
  const logs = hostLogs({ directory: join(directory, 'log'), excluded: ['origin/rigs', 'absent/rigs'] });
  assert.deepEqual(await logs.names('origin'), ['rigs-of-old/', 'rigs/']);
  for (const path of ['origin/rigs', 'origin/rigs/', 'origin/./rigs', 'origin/rigs/bench', 'pods/../origin/rigs'])
    assert.equal(await logs.names(path), undefined, path);
  for (const path of ['origin/rigs/bench/1.log', 'alias']) assert.equal(await logs.open(path), undefined, path);
  assert.ok(await logs.open('origin/rigs-of-old/2.log').then((file) => file?.destroy()));
  // The excluded directory may be a link.
  await rm(join(directory, 'log/origin/rigs'), { recursive: true });
  await symlink('../moved', join(directory, 'log/origin/rigs'));
  await mkdir(join(directory, 'log/moved'));
  await writeFile(join(directory, 'log/moved/4.log'), 'password');
  assert.equal(await logs.open('moved/4.log'), undefined);
  await rm(join(directory, 'log/origin'), { recursive: true });
  await rm(join(directory, 'log/moved'), { recursive: true });
  await rm(join(directory, 'log/alias'));
});

test('closes a log file that cannot be inspected', async () => {
  const logs = hostLogs({ directory: join(directory, 'log') });
  const refused = async () => assert.equal(await logs.open('messages'), undefined);
  assert.equal(await openAfterFailingStat(join(directory, 'log/messages'), refused), 0);
});

test('rejects a socket and a pipe without a writer as log files, and does not block threads', async () => {
  const logs = hostLogs({ directory: join(directory, 'log') });
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
  const logs = hostLogs({ directory, journalctl: 'echo' });
  assert.match(await text(logs.journal({ units: ['a'] }, new AbortController().signal)), /--unit=a/);
  const missing = hostLogs({ directory, journalctl: join(directory, 'journalctl') });
  await assert.rejects(text(missing.journal({ units: [] }, new AbortController().signal)), /ENOENT/);
});
