/**
 * Bounds how fast containers fill their logs. The monitor of a container that writes faster is paused again and again,
 * so that its pipes fill and the container waits, as it would for a slow disk: nothing is lost. Containers on the root
 * of the host, such as the API server, are not slowed down.
 */
import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ContainerRecord } from './records.ts';

/** Bytes of a container's log in a second, and how many may come at once. */
const RATE = 4 << 20;
const BURST = 4 << 20;
/** Between two checks of all containers, and of those that write faster. */
const CHECK_MS = 500;
const FAST_CHECK_MS = 50;
/** A pause is no longer: the end of a container is seen only by its running monitor. */
const MAX_PAUSE_MS = 2_000;

interface Writer {
  readonly record: Monitor;
  written: number;
  /** Bytes that may be written now; below 0 the monitor is paused. */
  left: number;
  checkedMs: number;
  isPaused: boolean;
}

type Monitor = Pick<ContainerRecord, 'monitorPid' | 'monitorStart'>;
/** Signals the monitor's process; false when it has exited. */
type Signal = (monitor: Monitor, name: 'SIGSTOP' | 'SIGCONT') => boolean;

export class LogRate {
  readonly #containers: () => readonly ContainerRecord[];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #written: (monitorPid: number) => number | undefined;
  readonly #signal: Signal;
  readonly #writers = new Map<string, Writer>();
  #timer: Timer | undefined;

  /** `written`: bytes that a process has written in its life; undefined when it has exited. */
  constructor(options: {
    readonly containers: () => readonly ContainerRecord[];
    readonly clock: Clock;
    readonly log: Log;
    readonly written?: (monitorPid: number) => number | undefined;
    readonly signal?: Signal;
  }) {
    this.#containers = options.containers;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#written = options.written ?? bytesWritten;
    this.#signal = options.signal ?? signalProcess;
  }

  /** Resumes what an earlier process paused, and begins to check. */
  start(): void {
    for (const record of this.#limited()) this.#signal(record, 'SIGCONT');
    this.#check();
  }

  /** Resumes all monitors and ends. */
  stop(): void {
    this.#timer?.cancel();
    for (const { record, isPaused } of this.#writers.values()) if (isPaused) this.#signal(record, 'SIGCONT');
    this.#writers.clear();
  }

  #limited(): readonly ContainerRecord[] {
    return this.#containers().filter(
      ({ startedAtMs, finishedAtMs, ofHost }) => startedAtMs > 0 && finishedAtMs === 0 && ofHost !== true,
    );
  }

  #check(): void {
    const nowMs = this.#clock.monotonicMs();
    const limited = this.#limited();
    const present = new Set(limited.map(({ id }) => id));
    for (const id of this.#writers.keys()) if (!present.has(id)) this.#writers.delete(id);
    let isFast = false;
    for (const record of limited) isFast = this.#checkOne(record, nowMs) || isFast;
    this.#timer = this.#clock.setTimer(isFast ? FAST_CHECK_MS : CHECK_MS, () => this.#check());
  }

  /** Returns whether the container writes as fast as it may. */
  #checkOne(record: ContainerRecord, nowMs: number): boolean {
    const { id, name } = record;
    const written = this.#written(record.monitorPid);
    if (written === undefined) return false;
    const writer = this.#writers.get(id);
    if (writer === undefined) {
      this.#writers.set(id, { record, written, left: BURST, checkedMs: nowMs, isPaused: false });
      return false;
    }
    const earned = ((nowMs - writer.checkedMs) * RATE) / 1000;
    const least = (-MAX_PAUSE_MS * RATE) / 1000;
    writer.left = Math.max(least, Math.min(BURST, writer.left + earned) - (written - writer.written));
    writer.written = written;
    writer.checkedMs = nowMs;
    if (writer.left < 0 && !writer.isPaused) {
      writer.isPaused = this.#signal(record, 'SIGSTOP');
      this.#log.v(2, 'container slowed down: it fills its log too fast', { container: name, id });
    } else if (writer.left >= 0 && writer.isPaused) {
      writer.isPaused = false;
      this.#signal(record, 'SIGCONT');
    }
    return writer.left < BURST / 2;
  }
}

/** Source: proc_pid_io(5). A read of /proc waits for no disk. */
function bytesWritten(pid: number): number | undefined {
  try {
    return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);
  } catch {
    return undefined;
  }
}

/** Another process may have the number of a monitor that was killed. Source: proc_pid_stat(5). */
function signalProcess({ monitorPid, monitorStart }: Monitor, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    const stat = readFileSync(`/proc/${monitorPid}/stat`, 'utf8');
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return start === monitorStart && process.kill(monitorPid, name);
  } catch {
    return false;
  }
}
