/**
 * conmon, the container monitor that outlives the host process: it holds a container's standard streams, writes its log
 * in CRI format, waits for its end and writes the exit code to a file. It is controlled through pipes, its `ctl` fifo
 * and its `attach` socket.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ignore, messageOf } from '../../../base/errors.ts';
import { type ProcessStreams, RuntimeError } from '../../port.ts';
import { childEnvironment } from '../command.ts';
import { killTree } from '../processes.ts';
import type { Runc } from '../runc.ts';
import type { CgroupDriver } from '../spec/spec.ts';

const CREATE_TIMEOUT_MS = 60_000;
const KILL_ATTEMPTS = 40;
const KILL_PAUSE_MS = 50;

export interface MonitorOptions {
  readonly conmon: string;
  readonly runc: Runc;
  readonly driver: CgroupDriver;
  readonly id: string;
  readonly bundle: string;
  readonly exits: string;
  readonly logPath: string;
  /** Undefined means no limit. */
  readonly logLimitBytes: number | undefined;
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly leaveStdinOpen: boolean;
}

/** A monitor that has been started and waits for `create`. */
export interface WaitingMonitor {
  /**
   * Lets the monitor create the container; returns the pids of both. Throws RuntimeError 'create-failed' with the
   * runtime's message. If the runtime does not answer in time, or if `signal` cancels the creation, the monitor and the
   * runtime have been killed.
   */
  create(signal?: AbortSignal): Promise<{ readonly pid: number; readonly monitorPid: number }>;
  /** Kills the waiting monitor. Has no effect after `create`. */
  abandon(): void;
}

/**
 * Starts the monitor of a container early, so that it loads while the container's root and specification are prepared.
 */
export function startMonitor(options: MonitorOptions): WaitingMonitor {
  const { bundle, id } = options;
  const monitorPidFile = join(bundle, 'monitor.pid');
  const args = [
    ...commonArguments({ ...options, log: `k8s-file:${options.logPath}` }),
    ...['--cuuid', id, '--name', id, '--persist-dir', bundle],
    ...['--container-pidfile', join(bundle, 'pid'), '--conmon-pidfile', monitorPidFile],
    ...(options.logLimitBytes === undefined ? [] : ['--log-size-max', String(options.logLimitBytes)]),
    ...(options.driver === 'systemd' ? ['--systemd-cgroup'] : []),
    ...(options.tty ? ['--terminal'] : []),
    ...(options.stdin ? ['--stdin'] : []),
    ...(options.leaveStdinOpen ? ['--leave-stdin-open'] : []),
  ];
  const monitor = launchMonitor(options.conmon, args, bundle, { code: 'create-failed' });
  return {
    async create(signal) {
      const { pid, sync } = await monitor.begin(signal);
      sync.destroy();
      return { pid, monitorPid: await monitorPidIn(monitorPidFile) };
    },
    abandon: () => monitor.abandon(),
  };
}

/** Parameters of an exec that do not depend on its streams. */
export interface ExecStart {
  /** Id of the container. */
  readonly id: string;
  /** Scratch directory of this exec, with `process.json`; gets `attach` and `ctl` like a container's bundle. */
  readonly bundle: string;
  /** Options for `runc exec`. */
  readonly runtimeOptions: readonly string[];
  /** Kills the monitor and the runtime while they start the process. */
  readonly signal: AbortSignal | undefined;
}

export interface MonitoredExecOptions extends ExecStart {
  readonly conmon: string;
  readonly runc: Runc;
  /**
   * Either a terminal, whose output goes to a file in CRI log format, or file descriptors that become the process's
   * standard streams.
   */
  readonly output: { readonly logPath: string } | { readonly ends: readonly (number | 'ignore')[] };
}

export interface MonitoredExec {
  readonly pid: number;
  readonly monitorPid: number;
  /** Exit code; 137 if the monitor was killed, which kills the process too. */
  readonly exitCode: Promise<number>;
}

/** An exec under its monitor, with its streams. */
export interface StartedExec {
  readonly streams: Pick<ProcessStreams, 'stdin' | 'stdout' | 'stderr' | 'resize'>;
  readonly monitored: MonitoredExec;
  /** Pids of further host programs that serve this exec. */
  readonly servingPids: readonly number[];
  /** Reports that the process has exited: the streams end after its remaining output. */
  finish(): void;
  close(): void;
}

/** Starts a process in a container. Throws RuntimeError 'start-failed'. */
export async function execMonitored(options: MonitoredExecOptions): Promise<MonitoredExec> {
  const { bundle, output } = options;
  const monitorPidFile = join(bundle, 'monitor.pid');
  const runtimeLog = join(bundle, 'runtime.log');
  const terminal = 'logPath' in output;
  const args = [
    ...commonArguments({ ...options, exits: bundle, log: terminal ? `k8s-file:${output.logPath}` : 'passthrough' }),
    ...[
      '--runtime-arg',
      '--log',
      '--runtime-arg',
      runtimeLog,
      '--runtime-arg',
      '--log-format',
      '--runtime-arg',
      'json',
    ],
    ...options.runtimeOptions.flatMap((option) => ['--runtime-opt', option]),
    ...['--cuuid', basename(bundle), '--container-pidfile', join(bundle, 'pid'), '--conmon-pidfile', monitorPidFile],
    ...['--exec', '--exec-process-spec', join(bundle, 'process.json')],
    ...(terminal ? ['--terminal', '--stdin'] : []),
  ];
  const abort = (): void => {
    void monitorPidIn(monitorPidFile).then((pid) => killTree(pid), ignore('the monitor has not started yet'));
  };
  options.signal?.addEventListener('abort', abort);
  try {
    const launch = { code: 'start-failed', ...(terminal ? {} : { standard: output.ends }) } as const;
    const { pid, sync } = await launchMonitor(options.conmon, args, bundle, launch).begin();
    let text = '';
    sync.on('data', (part: string) => {
      text += part;
    });
    const exitCode = new Promise<number>((resolve) => {
      sync.on('close', () => resolve(reportedNumber(text) ?? 137));
      sync.resume();
    });
    return { pid, monitorPid: await monitorPidIn(monitorPidFile), exitCode };
  } catch (error) {
    const text = await lastMessage(runtimeLog);
    throw text === '' ? error : new RuntimeError('start-failed', text, { cause: error });
  } finally {
    options.signal?.removeEventListener('abort', abort);
  }
}

async function monitorPidIn(file: string): Promise<number> {
  return Number((await readFile(file, 'utf8')).trim());
}

/** The last message in the runtime's JSON log; '' if there is none. */
async function lastMessage(log: string): Promise<string> {
  const line = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n').at(-1) ?? '';
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'object' && entry !== null && 'msg' in entry ? String(entry.msg) : '';
  } catch {
    // The line is not JSON: return it as it is.
    return line;
  }
}

const commonArguments = (options: {
  readonly id: string;
  readonly runc: Runc;
  readonly bundle: string;
  readonly exits: string;
  /** conmon's log driver and path. */
  readonly log: string;
}): readonly string[] => [
  ...['--api-version', '1', '--cid', options.id, '--runtime', options.runc.path, '--bundle', options.bundle],
  ...['--exit-dir', options.exits, '--log-path', options.log, '--full-attach'],
  ...options.runc.globalArgs
    .filter((argument) => argument !== '--systemd-cgroup')
    .flatMap((argument) => ['--runtime-arg', argument]),
];

interface LaunchedMonitor {
  /**
   * Resolves when the monitor has reported the pid of the started process. `sync` is the monitor's paused pipe with the
   * bytes after the report. Without a report in time, and when `signal` cancels the start, the monitor and the runtime
   * are killed before this method throws.
   */
  begin(signal?: AbortSignal): Promise<{ readonly pid: number; readonly sync: Readable }>;
  abandon(): void;
}

interface Launch {
  readonly code: 'create-failed' | 'start-failed';
  readonly standard?: readonly (number | 'ignore')[];
}

function launchMonitor(
  conmon: string,
  args: readonly string[],
  bundle: string,
  { code, standard = ['ignore', 'ignore'] }: Launch,
): LaunchedMonitor {
  const child = spawn(conmon, args, {
    cwd: bundle,
    detached: true,
    env: { ...childEnvironment, _OCI_SYNCPIPE: '3', _OCI_STARTPIPE: '4' },
    stdio: [standard[0] ?? 'ignore', standard[1] ?? 'ignore', standard[2] ?? 'pipe', 'pipe', 'pipe'],
  });
  const failed = new Promise<never>((_, reject) => {
    child.on('error', (error) => reject(new RuntimeError(code, `${conmon}: ${error.message}`, { cause: error })));
  });
  // Prevents an unhandled rejection while no caller waits for it.
  failed.catch(ignore('the caller that waits for the end gets the error'));
  // A child that could not be started for lack of file descriptors has no streams.
  if (child.pid === undefined) return { begin: () => failed, abandon: () => {} };
  const sync = (child.stdio[3] as Readable).setEncoding('utf8');
  const start = child.stdio[4] as Writable;
  start.on('error', () => {});
  let begun = false;
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (complaint.length < 4096) complaint += text;
  });
  const close = (): void => {
    child.stderr?.destroy();
    child.unref();
  };
  return {
    async begin(signal) {
      begun = true;
      try {
        // The monitor waits for this byte before it starts, so that its parent can first move it to another cgroup.
        start.end('\0');
        const report = await Promise.race([reportOf(sync, code, signal), failed]).catch(async (error: unknown) => {
          await killMonitor(child, sync, join(bundle, 'monitor.pid'));
          throw error;
        });
        const pid = reportedNumber(report);
        if (pid === undefined || pid <= 0)
          throw new RuntimeError(
            code,
            reportedMessage(report) || complaint.trim() || 'the container monitor ended without a report',
          );
        return { pid, sync };
      } catch (error) {
        sync.destroy();
        throw error;
      } finally {
        close();
      }
    },
    abandon() {
      if (begun) return;
      child.kill('SIGKILL');
      start.destroy();
      sync.destroy();
      close();
    },
  };
}

/** Kills a monitor that has not reported and the runtime that it started. */
async function killMonitor(child: ChildProcess, sync: Readable, monitorPidFile: string): Promise<void> {
  const closed = new Promise<void>((resolve) => sync.once('close', resolve));
  sync.resume();
  // The monitor forks before it starts the runtime, so that its pid may be unknown at first. It holds `sync` open.
  for (let attempt = 0; attempt < KILL_ATTEMPTS && !sync.closed; attempt++) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await killTree(await monitorPidIn(monitorPidFile).catch(() => 0));
    await Promise.race([closed, sleep(KILL_PAUSE_MS)]);
  }
}

/** First line of the monitor's report. The remaining bytes stay in `sync`. */
function reportOf(sync: Readable, code: Launch['code'], signal: AbortSignal | undefined): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    const fail = (message: string): void => {
      stop();
      reject(new RuntimeError(code, message));
    };
    const onAbort = (): void => fail('the creation was cancelled');
    const timer = setTimeout(() => fail('the container monitor gave no answer'), CREATE_TIMEOUT_MS);
    let text = '';
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const settle = (): void => {
      stop();
      sync.pause();
      sync.off('data', collect).off('end', settle).off('close', settle);
      resolve(text);
    };
    const collect = (part: string): void => {
      text += part;
      const end = text.indexOf('\n');
      if (end < 0) return;
      settle();
      if (end + 1 < text.length) sync.unshift(text.slice(end + 1), 'utf8');
    };
    sync.on('data', collect).on('end', settle).on('close', settle);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Parses a report line `{"data": number, "message": text}`. */
function parseReport(report: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(report.split('\n', 1)[0] ?? '');
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function reportedNumber(report: string): number | undefined {
  const { data } = parseReport(report);
  return typeof data === 'number' ? data : undefined;
}

/** The message inside the runtime's log format `time="…" level=error msg="…"`. */
function reportedMessage(report: string): string {
  const { message } = parseReport(report);
  if (typeof message !== 'string') return '';
  const quoted = /\bmsg=("(?:[^"\\]|\\.)*")/.exec(message)?.[1];
  try {
    return quoted === undefined ? message.trim() : String(JSON.parse(quoted));
  } catch {
    return message.trim();
  }
}

/** Makes the monitor reopen its log file. Has no effect if the monitor has exited. */
export const reopenLog = (bundle: string): Promise<void> => control(bundle, '2 0 0\n');

export const resizeTerminal = (bundle: string, columns: number, rows: number): Promise<void> =>
  control(bundle, `1 ${rows} ${columns}\n`);

async function control(bundle: string, message: string): Promise<void> {
  try {
    // With O_NONBLOCK the open fails immediately if there is no reader.
    const fifo = await open(join(bundle, 'ctl'), constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      await fifo.write(message);
    } finally {
      await fifo.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'ENXIO' && code !== 'ENOENT')
      throw new RuntimeError('internal', `container monitor: ${messageOf(error)}`, { cause: error });
  }
}
