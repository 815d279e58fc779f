import assert from 'node:assert/strict';
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
  const record = { id: 'c', name: 'c', monitorPid: 7, startedAtMs: 1, finishedAtMs: 0 } as ContainerRecord;
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

it('pauses the monitor of a container that fills its log too fast, for at most two seconds', () => {
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

it('does not pause a container below the rate', () => {
  const { rate, run, state } = flood(3_000);
  rate.start();
  run(60_000);
  assert.equal(state.written, 180_000_000);
  rate.stop();
});
