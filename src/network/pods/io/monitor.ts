import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';

export interface MonitorOptions {
  readonly command: readonly [string, ...string[]];
  /** Subject in log lines: `address` or `packet filter`. */
  readonly subject: string;
  readonly lines: (lines: readonly string[]) => void;
  /** Called when events may have been missed: the monitor has reported an error or was restarted. */
  readonly missed?: () => void;
  readonly log: Log;
  /**
   * util-linux's setpriv, which ends the monitor together with this process. Without it the monitor survives a SIGKILL
   * of this process.
   */
  readonly setpriv?: string;
}

export interface Monitor {
  /** False while the process is not running. Changes during this time are not reported. */
  isRunning(): boolean;
  stop(): void;
}

const RESTART_MS = 5_000;

/** Runs a program that reports kernel changes line by line, and restarts it when it ends, until `stop` is called. */
export function startMonitor(options: MonitorOptions): Monitor {
  let stopped = false;
  let running = false;
  /** Whether the missing program was logged. It is logged only once. */
  let isReported = false;
  let child: ChildProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let setpriv: string | undefined = options.setpriv ?? 'setpriv';
  const start = (): void => {
    const [file, ...args] =
      setpriv === undefined ? options.command : [setpriv, '--pdeathsig', 'KILL', ...options.command];
    const monitor = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child = monitor;
    let ended = false;
    const again = (reason: string): void => {
      if (stopped || ended) return;
      ended = true;
      running = false;
      if (!isReported) options.log.warn(`${options.subject} monitor ended; restarting`, { reason });
      isReported = true;
      timer = setTimeout(() => {
        start();
        options.missed?.();
      }, RESTART_MS);
    };
    monitor.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' || setpriv === undefined || stopped) return again(messageOf(error));
      ended = true;
      setpriv = undefined;
      start();
    });
    // A child that could not be started for lack of file descriptors has no streams.
    if (monitor.pid === undefined) return;
    let rest = '';
    monitor.on('spawn', () => {
      running = true;
    });
    monitor.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(-4096);
      isReported = false;
      options.lines(lines);
    });
    // The program reports lost events on stderr, for example after a full socket buffer.
    monitor.stderr.on('data', () => options.missed?.());
    monitor.on('close', (code, signal) => again(`exit ${code ?? signal}`));
  };
  start();
  return {
    isRunning: () => running,
    stop() {
      stopped = true;
      running = false;
      clearTimeout(timer);
      child?.kill();
    },
  };
}
