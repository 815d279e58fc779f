import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

export interface MonitorOptions {
  readonly command: readonly [string, ...string[]];
  /** Content of the log lines: `address` or `packet filter`. */
  readonly subject: string;
  readonly lines: (lines: readonly string[]) => void;
  /** Called when events may have been missed: the monitor has reported an error, or is started again. */
  readonly missed?: () => void;
  readonly log: Log;
  /** util-linux's program that binds the monitor's life to this process; without it a SIGKILL leaves the monitor. */
  readonly setpriv?: string;
}

export interface Monitor {
  /** False while the process is absent: changes are not reported then. */
  isRunning(): boolean;
  stop(): void;
}

const RESTART_MS = 5_000;

/** Lines of a program that reports changes of the kernel until it is stopped; it is started again when it ends. */
export function startMonitor(options: MonitorOptions): Monitor {
  let stopped = false;
  let running = false;
  /** A host without the program has one log line. */
  let isReported = false;
  let child: ChildProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let setpriv: string | undefined = options.setpriv ?? 'setpriv';
  const start = (): void => {
    const [file, ...args] =
      setpriv === undefined ? options.command : [setpriv, '--pdeathsig', 'KILL', ...options.command];
    const monitor = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child = monitor;
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
    // A full socket buffer is one such error.
    monitor.stderr.on('data', () => options.missed?.());
    let ended = false;
    const again = (reason: string): void => {
      if (stopped || ended) return;
      ended = true;
      running = false;
      if (!isReported) options.log.warn(`${options.subject} monitor ended; it is started again`, { reason });
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
