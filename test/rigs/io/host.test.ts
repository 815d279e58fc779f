import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createRigHost } from '../../../src/rigs/io/host.ts';
import { startRecording } from '../../../src/rigs/io/recording.ts';

const run = promisify(execFile);
let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rigs-'));
});
after(() => rm(directory, { recursive: true, force: true }));

test('rotates the files of a console recording with mode 0600, and deletes the oldest files', async () => {
  const at = join(directory, 'bench');
  let nowMs = Date.parse('2026-01-01T00:00:00Z');
  const recording = await startRecording({ directory: at, nowMs: () => nowMs, maxFileBytes: 4, maxFiles: 3 });
  await recording.write(Buffer.from('abcdefghij'));
  await recording.write(Buffer.from('klmnopqr'));
  await recording.close();
  const names = (await readdir(at)).sort();
  assert.equal(names.length, 3);
  assert.deepEqual(await Promise.all(names.map((name) => readFile(join(at, name), 'utf8'))), ['ijkl', 'mnop', 'qr']);
  assert.equal((await stat(join(at, names[0] ?? ''))).mode & 0o777, 0o600);
  nowMs += 1_000;
  const next = await startRecording({ directory: at, nowMs: () => nowMs, maxFileBytes: 4, maxFiles: 3 });
  await next.write(Buffer.from('new'));
  await next.close();
  const kept = (await readdir(at)).sort();
  assert.equal(kept.length, 3);
  assert.equal(await readFile(join(at, kept[2] ?? ''), 'utf8'), 'new');
});

test("keeps the current recording although the host's clock is behind or repeats a time", async () => {
  const at = join(directory, 'wrong-clock');
  const record = async (nowMs: number, text: string): Promise<void> => {
    const recording = await startRecording({ directory: at, nowMs: () => nowMs, maxFiles: 2 });
    await recording.write(Buffer.from(text));
    await recording.close();
  };
  const texts = async () =>
    (await Promise.all((await readdir(at)).map((name) => readFile(join(at, name), 'utf8')))).sort();
  const now = Date.parse('2026-01-01T00:00:00Z');
  await record(now, 'one');
  await record(now + 1, 'two');
  await record(0, 'without a clock');
  assert.deepEqual(await texts(), ['one', 'two', 'without a clock']);
  await record(now + 1, 'again');
  assert.deepEqual(await texts(), ['again', 'two']);
});

test("passes the arguments of a power command unchanged, and includes the command's output in an error", async () => {
  const commands = new Map([
    ['say', ['/bin/echo', '$(id); `id`', 'two words']],
    ['fail', ['/bin/ls', '/no/such/file']],
  ]);
  const host = createRigHost({ directory, commands, nowMs: () => 0 });
  assert.equal(await host.runPower('say'), '$(id); `id` two words');
  await assert.rejects(host.runPower('fail'), /command fail: exit code 2: .*no\/such\/file/);
  await assert.rejects(async () => host.runPower('other'), /rigPower has no command "other"; add it/);
});

test('kills a power command with its child processes at its time limit', async () => {
  const pids = join(directory, 'pids');
  const commands = new Map([
    ['hangs', ['/bin/sh', '-c', `trap '' TERM; echo begun; sleep 60 & echo $! $$ > ${pids}; wait; sleep 60`]],
    ['floods', ['/bin/sh', '-c', 'while true; do echo 0123456789; done']],
  ]);
  const host = createRigHost({ directory, commands, nowMs: () => 0, powerMs: 500 });
  const remaining = async (): Promise<string[]> => {
    const found = (await readFile(pids, 'utf8')).trim().split(/\s+/);
    const states = found.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z'));
    return (await Promise.all(states)).filter((state) => !/\) [ZX]/.test(state));
  };
  await assert.rejects(host.runPower('hangs'), /command hangs: has not ended within 0.5 s: begun/);
  assert.deepEqual(await remaining(), []);
  await assert.rejects(host.runPower('floods'), /command floods: has more than 65536 characters of output/);
});

test('resets the settings of a line that another user has changed when a console opens', async () => {
  const path = join(directory, 'line');
  const board = spawn('socat', [`PTY,link=${path},rawer`, 'EXEC:cat'], { stdio: 'ignore' });
  try {
    while (!existsSync(path)) await setTimeout(20);
    await run('stty', ['-F', path, 'cstopb', 'crtscts', 'icrnl', 'echo']);
    const host = createRigHost({ directory, commands: new Map(), nowMs: () => 0 });
    const line = await host.openSerial(path, 9_600);
    const { stdout } = await run('stty', ['-F', path, '-a']);
    for (const setting of ['-cstopb', '-crtscts', '-icrnl', '-echo', 'cs8', '-parenb', 'cread'])
      assert.ok(stdout.split(/[\s;]+/).includes(setting), `${setting}: ${stdout}`);
    line.destroy();
  } finally {
    board.kill();
  }
});
