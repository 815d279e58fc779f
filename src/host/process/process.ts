/** Functions that every server process uses: clock, random numbers, log on stderr, signals. */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { createLog, type Log, type LogOptions, type LogSink } from '../../base/log.ts';
import { type Clock, MAX_TIMER_MS, type RandomSource } from '../../base/time/clock.ts';

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    // Node fires timers that exceed the maximum immediately, so the delay is limited to about 24 days. Callers set
    // their timers again.
    const timer = setTimeout(callback, Math.min(delayMs, MAX_TIMER_MS));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemRandom: RandomSource = {
  random: () => Math.random(),
  uuid: () => randomUUID(),
  bytes: (length) => randomBytes(length),
};

/**
 * Writes lines synchronously. A line is dropped if it cannot be written, for example to a pipe without a reader or on a
 * full disk.
 */
export function descriptorSink(...descriptors: readonly number[]): LogSink {
  return {
    write: (line) => {
      for (const descriptor of descriptors) {
        try {
          writeSync(descriptor, `${line}\n`);
        } catch {
          // EAGAIN, EPIPE or ENOSPC. A failure of the log cannot be logged.
        }
      }
    },
  };
}

export const stderrSink: LogSink = descriptorSink(2);

export function createProcessLog(
  component: string,
  level: number,
  sink: LogSink = stderrSink,
  least: LogOptions['least'] = 'info',
): Log {
  return createLog({ component, level, sink, least, nowMs: () => Date.now() });
}

/**
 * `signal` resolves at the first SIGINT or SIGTERM. The second signal calls `hurry`; without `hurry` the process exits.
 */
export function untilSignal(
  log: Log,
  hurry?: () => void,
): { readonly signal: Promise<NodeJS.Signals>; dispose(): void } {
  let dispose = (): void => {};
  const signal = new Promise<NodeJS.Signals>((resolve) => {
    let signals = 0;
    const handler = (name: NodeJS.Signals): void => {
      signals += 1;
      if (signals > (hurry === undefined ? 1 : 2)) process.exit(1);
      log.info(signals === 1 ? 'stopping' : 'stopping immediately', { signal: name });
      if (signals === 1) resolve(name);
      else hurry?.();
    };
    process.on('SIGINT', handler);
    process.on('SIGTERM', handler);
    dispose = () => {
      process.off('SIGINT', handler);
      process.off('SIGTERM', handler);
    };
  });
  return { signal, dispose };
}

/** Logs an uncaught error with its stack and exits, so that the supervisor (kubelet, systemd) restarts the process. */
export function endOnDefect(log: Log): void {
  const end = (error: unknown): void => {
    log.error('uncaught error; exiting', {
      error: messageOf(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
    process.exit(1);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}

/** Removes environment variables of Node, which child processes must not inherit. */
export function scrubEnvironment(): void {
  for (const name of ['NODE_OPTIONS', 'NODE_PATH', 'NODE_REPL_EXTERNAL_MODULE', 'NODE_EXTRA_CA_CERTS']) {
    delete process.env[name];
  }
}

/** Logs when the event loop was blocked, which is a common cause of time-outs. */
export function watchLag(log: Log, thresholdMs = 200): { stop(): void } {
  const periodMs = 500;
  let expected = performance.now() + periodMs;
  const timer = setInterval(() => {
    const lateMs = performance.now() - expected;
    if (lateMs > thresholdMs) log.warn('event loop was blocked', { ms: Math.round(lateMs) });
    expected = performance.now() + periodMs;
  }, periodMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Waits for `work` for at most `ms`; returns whether it finished. */
export async function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([work.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
}
