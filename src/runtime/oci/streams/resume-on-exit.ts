/** Resumes stopped processes when this process ends without doing so, for example by SIGKILL. */
import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';

export interface Resumer {
  /** Replaces the list of processes. Call it before a process is stopped. */
  set(pids: readonly number[]): void;
  stop(): void;
}

/** Reads lists of pids and signals those of the last one when its input ends. */
const SCRIPT =
  'pids=; while read -r line; do pids=$line; done; for pid in $pids; do kill -CONT "$pid" 2>/dev/null; done';

/** Creates a resumer. Its watching process starts with the first list of pids, and starts again if it has ended. */
export function createResumer(log: Log): Resumer {
  let child: ChildProcess | undefined;
  const start = (): ChildProcess => {
    // Detached, so that a signal to this process group does not end it.
    const started = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    const forget = (): void => {
      if (child === started) child = undefined;
    };
    started.on('exit', forget);
    started.on('error', (error) => {
      forget();
      log.v(2, 'paused monitors are not resumed after a kill of this process', { error: messageOf(error) });
    });
    started.stdin?.on('error', () => {});
    started.unref();
    return started;
  };
  return {
    set(pids) {
      if (child === undefined && pids.length === 0) return;
      child ??= start();
      child.stdin?.write(`${pids.join(' ')}\n`);
    },
    stop() {
      child?.stdin?.end();
      child = undefined;
    },
  };
}
