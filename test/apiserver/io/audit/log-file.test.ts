/** The audit log file: every line is written once, the file is rotated when it is full, and old files are deleted. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { openAuditLog } from '../../../../src/apiserver/io/audit/log-file.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { ManualClock } from '../../../client/clocks.ts';

const run = promisify(execFile);

it('the audit log has lines in order, is rotated by size and keeps the configured number of files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'audit-log-'));
  const path = join(directory, 'deeper', 'audit.log');
  const options = {
    path,
    mode: 'batch' as const,
    compress: false,
    maxMegabytes: 1,
    maxDays: 1,
    maxBackups: 2,
    bufferEvents: 10_000,
    clock: systemClock,
    log: silentLog,
  };
  try {
    const sink = await openAuditLog(options);
    await writeFile(join(directory, 'deeper', 'audit-2001-01-01T00-00-00.000.log'), 'old\n');
    await writeFile(join(directory, 'deeper', 'audit-notes.log'), 'mine\n');
    const filler = 'x'.repeat(10_000);
    for (let at = 0; at < 500; at++) {
      sink.accept(JSON.stringify({ at, filler }));
      if (at % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await sink.close();
    const names = (await readdir(join(directory, 'deeper'))).sort();
    assert.ok(names.includes('audit-notes.log'), 'files that are not ours stay');
    assert.ok(!names.includes('audit-2001-01-01T00-00-00.000.log'), 'old ones go');
    const rotated = names.filter((name) => /^audit-\d/.test(name));
    assert.equal(rotated.length, 2);
    const lines: number[] = [];
    for (const name of [...rotated, 'audit.log']) {
      const text = await readFile(join(directory, 'deeper', name), 'utf8');
      assert.ok(text.length <= 6 * 1024 * 1024);
      for (const line of text.trimEnd().split('\n')) lines.push((JSON.parse(line) as { at: number }).at);
    }
    assert.equal(lines.at(-1), 499);
    assert.deepEqual(
      lines,
      Array.from({ length: lines.length }, (_, index) => 500 - lines.length + index),
    );
    // A new writer appends to the existing file.
    const again = await openAuditLog(options);
    again.accept('{"at":500}');
    await again.close();
    assert.match(await readFile(path, 'utf8'), /\{"at":500\}\n$/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('blocking requests wait for their line in the audit log, and blocking-strict mode reports a failed write', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'audit-log-'));
  const options = { maxMegabytes: 0, maxDays: 0, maxBackups: 0, compress: false, bufferEvents: 10_000 };
  const more = { ...options, clock: systemClock, log: silentLog };
  try {
    const path = join(directory, 'audit.log');
    const sink = await openAuditLog({ ...more, path, mode: 'blocking' });
    assert.equal(sink.blocks, true);
    const kept = ['{"at":1}', '{"at":2}'].map((line) => sink.accept(line));
    assert.deepEqual(await Promise.all(kept), [true, true]);
    assert.equal(await readFile(path, 'utf8'), '{"at":1}\n{"at":2}\n');
    await sink.close();
    // /dev/full behaves like a full disk.
    const full = await openAuditLog({ ...more, path: '/dev/full', mode: 'blocking' });
    assert.equal(await full.accept('{}'), true);
    const strict = await openAuditLog({ ...more, path: '/dev/full', mode: 'blocking-strict' });
    assert.equal(await strict.accept('{}'), false);
    const batch = await openAuditLog({ ...more, path: join(directory, 'batch.log'), mode: 'batch' });
    assert.equal(batch.accept('{}'), undefined);
    await Promise.all([full.close(), strict.close(), batch.close()]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('compresses rotated audit logs and counts a file and its compressed copy only once', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'audit-log-'));
  const path = join(directory, 'audit.log');
  try {
    // A file that a process left behind because it ended during the compression.
    await writeFile(join(directory, 'audit-2001-01-01T00-00-00.000.log'), 'left\n');
    await writeFile(join(directory, 'audit-2001-01-01T00-00-00.000.log.gz'), 'half');
    await writeFile(join(directory, 'audit-2000-01-01T00-00-00.000.log.gz'), 'too many');
    const options = { path, maxMegabytes: 1, maxDays: 0, maxBackups: 2, compress: true, bufferEvents: 10_000 };
    const sink = await openAuditLog({ ...options, mode: 'blocking', clock: systemClock, log: silentLog });
    const line = 'x'.repeat(700_000);
    await sink.accept(line);
    await sink.accept(line);
    const names = async () => (await readdir(directory)).filter((name) => name !== 'audit.log').sort();
    const isDone = (all: readonly string[]) => all.length === 2 && all.every((name) => name.endsWith('.log.gz'));
    while (!isDone(await names())) await new Promise((resolve) => setTimeout(resolve, 5));
    const texts = await Promise.all(
      (await names()).map(async (name) => gunzipSync(await readFile(join(directory, name)))),
    );
    assert.deepEqual(
      texts.map((text) => text.toString()),
      ['left\n', `${line}\n`],
    );
    await sink.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('writes every line once when the disk becomes full during a write', { skip: process.getuid?.() !== 0 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'audit-log-'));
  await run('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory]);
  const clock = new ManualClock();
  const options = { maxMegabytes: 0, maxDays: 0, maxBackups: 0, compress: false, bufferEvents: 10_000 };
  const filler = join(directory, 'filler');
  const lines = (from: number) =>
    Array.from({ length: 30 }, (_, at) => `{"at":${from + at},"x":"${'x'.repeat(1000)}"}`);
  const read = async (path: string) =>
    (await readFile(path, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { at: number }).at);
  try {
    for (const mode of ['batch', 'blocking-strict'] as const) {
      const path = join(directory, `${mode}.log`);
      let failures = 0;
      const log = { ...silentLog, error: () => void failures++ };
      const sink = await openAuditLog({ ...options, path, mode, clock, log });
      // The disk has space for some of the 30 lines.
      await writeFile(filler, Buffer.alloc(48 * 1024));
      const kept = lines(0).map((line) => sink.accept(line));
      if (mode === 'batch') while (failures === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      else assert.ok((await Promise.all(kept)).every((written) => written === false));
      await rm(filler);
      await clock.advance(1_000);
      for (const line of lines(30)) void sink.accept(line);
      await sink.close();
      const from = mode === 'batch' ? 0 : 30;
      assert.deepEqual(
        await read(path),
        Array.from({ length: 60 - from }, (_, index) => from + index),
      );
      await rm(path);
    }
  } finally {
    await run('umount', [directory]);
    await rm(directory, { recursive: true });
  }
});
