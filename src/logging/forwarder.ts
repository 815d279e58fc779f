/**
 * Reads logs into a buffer of limited size and sends them to a receiver. If the buffer is full because the receiver
 * does not accept records, the oldest batches are dropped. The number of dropped records is logged and available as a
 * metric.
 */

import { ignore, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { MetricsText } from '../base/metrics/metrics-text.ts';
import type { Clock, RandomSource, Timer } from '../base/time/clock.ts';
import type { LogRecord, LogSource, Receiver, Spool } from './port.ts';

export interface ForwarderOptions {
  readonly receiver: Receiver;
  readonly spool: Spool;
  readonly source: LogSource;
  /** Returns the log lines of the host process since the last call, and the number of lines that it had to drop. */
  readonly ownLines: () => { readonly records: readonly LogRecord[]; readonly dropped: number };
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

export interface Forwarder {
  start(): void;
  /** Reads the logs once and stores the records in the buffer. */
  read(): Promise<void>;
  /** Sends batches until the buffer is empty or the receiver does not accept a batch. */
  send(): Promise<void>;
  /** Reads and sends the last lines within a few seconds, and then stops. */
  stop(): Promise<void>;
  metrics(): string;
}

const POLL_MS = 1_000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/**
 * Interval in which a problem is logged at most once. A limit is required because these log lines are forwarded too.
 */
const QUIET_MS = 60_000;
const RETAIN_MS = 60_000;
const STOP_MS = 2_000;

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { receiver, spool, source, clock, random, log } = options;
  const stopping = new AbortController();
  const counts = { sent: 0, dropped: 0, rejected: 0, failures: 0 };
  const quietUntil = new Map<string, number>();
  let isDown = false;
  let backoffMs = FIRST_BACKOFF_MS;
  let retainedMs = clock.monotonicMs();
  let retryAtMs = 0;
  let pollTimer: Timer | undefined;
  let round: Promise<void> = Promise.resolve();
  let sending: Promise<void> | undefined;

  function warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    const now = clock.monotonicMs();
    if (now < (quietUntil.get(message) ?? 0)) return;
    quietUntil.set(message, now + QUIET_MS);
    log.warn(message, fields);
  }

  function drop(records: number, reason: string): void {
    if (records === 0) return;
    counts.dropped += records;
    warn('log records dropped', { records, total: counts.dropped, reason });
  }

  async function store(records: readonly LogRecord[], offsets: Readonly<Record<string, number>>): Promise<void> {
    try {
      drop(await spool.append(records, offsets), 'the buffer is full');
    } catch (error) {
      drop(records.length, `the buffer cannot be written: ${messageOf(error)}`);
    }
  }

  async function read(): Promise<void> {
    const own = options.ownLines();
    if (own.records.length > 0) await store(own.records, {});
    drop(own.dropped, 'too many lines of the host process');
    // While the receiver accepts records, lines stay in the log files if the buffer is half full. While the receiver is
    // down, new records replace old ones in the buffer.
    await source.poll(store, () => isDown || spool.bytes < spool.maxBytes / 2);
    if (clock.monotonicMs() - retainedMs >= RETAIN_MS) {
      retainedMs = clock.monotonicMs();
      await spool.retainOffsets((file) => source.isPresent(file));
    }
  }

  async function send(signal = stopping.signal): Promise<void> {
    for (;;) {
      const next = signal.aborted ? undefined : await spool.oldest();
      if (next === undefined) return;
      const result = await receiver.send(next.records, signal);
      if (result.kind === 'retry') {
        counts.failures += 1;
        if (!isDown) log.warn('log receiver does not accept records; retrying', { error: result.problem });
        isDown = true;
        const wait = result.afterMs ?? backoffMs * (0.5 + random.random() / 2);
        backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
        retryAtMs = clock.monotonicMs() + wait;
        return;
      }
      if (result.kind === 'refused') {
        counts.rejected += next.batch.count;
        warn('log receiver refused records', { records: next.batch.count, error: result.problem });
      } else {
        counts.sent += next.batch.count - result.rejected;
        counts.rejected += result.rejected;
        if (result.rejected > 0) warn('log receiver refused records', { records: result.rejected });
        if (isDown) log.info('log receiver accepts records again', { bufferedBytes: spool.bytes });
      }
      isDown = false;
      backoffMs = FIRST_BACKOFF_MS;
      await spool.remove(next.batch);
    }
  }

  function sendInBackground(): void {
    if (sending !== undefined || clock.monotonicMs() < retryAtMs) return;
    sending = send()
      .catch((error: unknown) => warn('log records not sent', { error: messageOf(error) }))
      .finally(() => {
        sending = undefined;
      });
  }

  function tick(): void {
    sendInBackground();
    round = read()
      .catch((error: unknown) => warn('logs not read', { error: messageOf(error) }))
      .then(() => {
        if (stopping.signal.aborted) return;
        sendInBackground();
        pollTimer = clock.setTimer(POLL_MS, tick);
      });
  }

  return {
    start: tick,
    read,
    send: () => send(),
    stop: async () => {
      stopping.abort();
      pollTimer?.cancel();
      await round;
      await sending;
      await read().catch(ignore('the lines stay in their files and are read by the next process'));
      await send(AbortSignal.timeout(STOP_MS)).catch(ignore('the records stay in the buffer for the next process'));
      await source.close();
      receiver.close();
    },
    metrics: () => metricsText(counts, spool.bytes, isDown),
  };
}

interface Counts {
  readonly sent: number;
  readonly dropped: number;
  readonly rejected: number;
  readonly failures: number;
}

function metricsText(counts: Counts, bufferedBytes: number, isDown: boolean): string {
  const text = new MetricsText();
  text.counter('hyperedge_log_forward_sent_records_total', 'Log records that the receiver accepted.', counts.sent);
  text.counter(
    'hyperedge_log_forward_dropped_records_total',
    'Log records dropped because the buffer was full or could not be written.',
    counts.dropped,
  );
  text.counter(
    'hyperedge_log_forward_rejected_records_total',
    'Log records that the receiver refused.',
    counts.rejected,
  );
  text.counter('hyperedge_log_forward_failures_total', 'Failed deliveries of a batch.', counts.failures);
  text.gauge('hyperedge_log_forward_buffered_bytes', 'Size of the records that wait.', bufferedBytes);
  text.gauge('hyperedge_log_forward_receiver_up', 'Whether the receiver accepted the last batch.', isDown ? 0 : 1);
  return text.toString();
}
