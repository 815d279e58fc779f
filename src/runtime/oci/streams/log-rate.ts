/**
 * Limits how fast containers fill their logs. The monitor of a container that writes faster is paused repeatedly, so
 * that its pipes fill and the container blocks, as it would on a slow disk; no output is lost. Containers on the root
 * of the host, such as the API server, are not limited.
 */
import { readFileSync } from 'node:fs';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { ContainerRecord } from '../containers/records.ts';
import { createResumer, type Resumer } from './resume-on-exit.ts';

/** Log bytes per second and burst size of a container. */
const RATE = 4 << 20;
const BURST = 4 << 20;
/** Check interval for all containers, and for those that exceed the rate. */
const CHECK_MS = 500;
const FAST_CHECK_MS = 50;
/** Maximum length of a pause, because only a running monitor reports the end of its container. */
const MAX_PAUSE_MS = 2_000;

interface Writer {
  readonly record: Monitor;
  written: number;
  /** Bytes that may be written now. The monitor is paused while the value is negative. */
  left: number;
  checkedMs: number;
  isPaused: boolean;
}

type Monitor = Pick<ContainerRecord, 'monitorPid' | 'monitorStart'>;
/** Signals the monitor's process; returns false if it has exited. */
type Signal = (monitor: Monitor, name: 'SIGSTOP' | 'SIGCONT') => boolean;

export class LogRate {
  readonly #containers: () => readonly ContainerRecord[];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #written: (monitorPid: number) => number | undefined;
  readonly #signal: Signal;
  /** Resumes paused monitors if this process is killed. */
  readonly #resumer: Resumer;
  readonly #writers = new Map<string, Writer>();
  #timer: Timer | undefined;

  /** `written`: bytes that a process has written since its start; undefined if it has exited. */
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
    this.#resumer = createResumer(options.log);
  }

  /** Resumes monitors that an earlier host process paused, and starts the checks. */
  start(): void {
    for (const record of this.#limited()) this.#signal(record, 'SIGCONT');
    this.#check();
  }

  /** Resumes all monitors and stops the checks. */
  stop(): void {
    this.#timer?.cancel();
    for (const { record, isPaused } of this.#writers.values()) if (isPaused) this.#signal(record, 'SIGCONT');
    this.#writers.clear();
    this.#resumer.stop();
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

  /** Checks one container; returns whether it writes at the maximum rate. */
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
      // Record the pause before the signal, so that the monitor is resumed even if this process is killed in between.
      writer.isPaused = true;
      this.#recordPauses();
      writer.isPaused = this.#signal(record, 'SIGSTOP');
      this.#log.v(2, 'container log throttled', { container: name, id });
    } else if (writer.left >= 0 && writer.isPaused) {
      writer.isPaused = false;
      this.#signal(record, 'SIGCONT');
      this.#recordPauses();
    }
    return writer.left < BURST / 2;
  }

  #recordPauses(): void {
    const paused = [...this.#writers.values()].filter(({ isPaused }) => isPaused);
    this.#resumer.set(paused.map(({ record }) => record.monitorPid));
  }
}

/** Source: proc_pid_io(5). Reading /proc does not wait for a disk. */
function bytesWritten(pid: number): number | undefined {
  try {
    return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);
  } catch {
    return undefined;
  }
}

/** Compares the start time, because another process may have the pid of a killed monitor. Source: proc_pid_stat(5). */
function signalProcess({ monitorPid, monitorStart }: Monitor, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    const stat = readFileSync(`/proc/${monitorPid}/stat`, 'utf8');
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return start === monitorStart && process.kill(monitorPid, name);
  } catch {
    return false;
  }
}
