import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import type { ContainerRecord } from '../../../../src/runtime/oci/containers/records.ts';
import { LogRate } from '../../../../src/runtime/oci/streams/log-rate.ts';

const MIB = 1 << 20;

/** A simulated container that writes as fast as possible while its monitor runs. */
function flood(bytesPerMs: number) {
  let nowMs = 0;
  let timer: { atMs: number; callback: () => void } | undefined;
  const clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer: (delayMs: number, callback: () => void) => {
      timer = { atMs: nowMs + delayMs, callback };
      return {
        cancel: () => {
          timer = undefined;
        },
      };
    },
  };
  const record = { id: 'c', name: 'c', monitorPid: 2 ** 22 + 7, startedAtMs: 1, finishedAtMs: 0 } as ContainerRecord;
  const state = { written: 0, isPaused: false, longestPauseMs: 0, pausedMs: 0 };
  const rate = new LogRate({
    containers: () => [record],
    clock,
    log: silentLog,
    written: () => state.written,
    signal: (_, name) => {
      state.isPaused = name === 'SIGSTOP';
      return true;
    },
  });
  return {
    rate,
    state,
    run: (ms: number): void => {
      for (const end = nowMs + ms; nowMs < end; nowMs += 1) {
        if (!state.isPaused) state.written += bytesPerMs;
        state.pausedMs = state.isPaused ? state.pausedMs + 1 : 0;
        state.longestPauseMs = Math.max(state.longestPauseMs, state.pausedMs);
        if (timer !== undefined && timer.atMs <= nowMs) {
          const { callback } = timer;
          timer = undefined;
          callback();
        }
      }
    },
  };
}

it('pauses the monitor of a container that writes its log too fast, for at most two seconds at a time', () => {
  const { rate, run, state } = flood(140_000);
  rate.start();
  run(60_000);
  const before = state.written;
  run(60_000);
  const rateBytes = (state.written - before) / 60;
  assert.ok(rateBytes < 8 * MIB, `${rateBytes} bytes a second`);
  assert.ok(rateBytes > MIB, `${rateBytes} bytes a second`);
  assert.ok(state.longestPauseMs <= 2_100, `${state.longestPauseMs} ms`);
  rate.stop();
  assert.equal(state.isPaused, false);
});

it('does not pause a container that writes its log slower than the rate limit', () => {
  const { rate, run, state } = flood(3_000);
  rate.start();
  run(60_000);
  assert.equal(state.written, 180_000_000);
  rate.stop();
});

/** State of a process. Source: proc_pid_stat(5). */
const stateOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '';
};

it('resumes a paused monitor when the host process is killed, and at the next start of the host process', async () => {
  const monitor = spawn('sleep', ['60'], { stdio: 'ignore' });
  const pid = monitor.pid ?? 0;
  const until = async (what: string, isTrue: () => boolean): Promise<void> => {
    for (let tries = 0; !isTrue(); tries += 1) {
      assert.ok(tries < 200, what);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const record = {
    id: 'c',
    name: 'c',
    startedAtMs: 1,
    finishedAtMs: 0,
    monitorPid: pid,
    monitorStart: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19],
  } as ContainerRecord;
  const source = join(import.meta.dirname, '../../../../src');
  const script = `
    const { LogRate } = await import(${JSON.stringify(join(source, 'runtime/oci/streams/log-rate.ts'))});
    const { silentLog } = await import(${JSON.stringify(join(source, 'base/log.ts'))});
    let written = 0;
    const clock = {
      nowMs: () => Date.now(),
      monotonicMs: () => performance.now(),
      setTimer: (ms, callback) => { const timer = setTimeout(callback, ms); return { cancel: () => clearTimeout(timer) }; },
    };
    new LogRate({ containers: () => [${JSON.stringify(record)}], clock, log: silentLog, written: () => (written += 1e9) }).start();`;
  try {
    const host = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
    const ended = new Promise((resolve) => host.on('exit', resolve));
    await until('the monitor is paused', () => stateOf(pid) === 'T');
    host.kill('SIGKILL');
    await ended;
    await until('the monitor is resumed', () => stateOf(pid) !== 'T');
    process.kill(pid, 'SIGSTOP');
    await until('the monitor is paused again', () => stateOf(pid) === 'T');
    const clock = { nowMs: () => 0, monotonicMs: () => 0, setTimer: () => ({ cancel: () => {} }) };
    new LogRate({ containers: () => [record], clock, log: silentLog, written: () => 0 }).start();
    await until('the monitor is resumed by a start', () => stateOf(pid) !== 'T');
  } finally {
    monitor.kill('SIGKILL');
  }
});
