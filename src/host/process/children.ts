/**
 * Child processes that must end with this process. Children that are spawned with `detached` are not tracked, because
 * they must continue after this process: container monitors, the keeper of the balancer's port and the update guard.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Log } from '../../base/log.ts';
import { settlesWithin } from './process.ts';

const TERM_MS = 1_000;
const KILL_MS = 1_000;
const STARTED = 'tracing:child_process.spawn:start';

interface StartedChild {
  readonly process: ChildProcess;
  readonly options: SpawnOptions;
}

export interface OwnChildren {
  /** Sends SIGTERM to the children, kills those that do not exit, and waits for them within a time limit. */
  end(log: Log): Promise<void>;
  /** Stops tracking. */
  dispose(): void;
}

/**
 * Tracks children that this thread spawns after the call. If this process exits without a call of `end`, the children
 * are killed.
 */
export function trackChildren(): OwnChildren {
  const running = new Set<ChildProcess>();
  const started = (message: unknown): void => {
    const { process: child, options } = message as StartedChild;
    if (options.detached === true) return;
    running.add(child);
    const ended = (): void => void running.delete(child);
    child.once('exit', ended);
    child.once('error', () => {
      if (child.pid === undefined) ended();
    });
  };
  const signal = (name: NodeJS.Signals): void => {
    for (const child of running) child.kill(name);
  };
  const exited = async (ms: number): Promise<boolean> => {
    const all = [...running].map((child) => new Promise<void>((resolve) => child.once('exit', () => resolve())));
    return settlesWithin(Promise.all(all), ms);
  };
  const killAll = (): void => signal('SIGKILL');
  subscribe(STARTED, started);
  process.on('exit', killAll);
  return {
    end: async (log) => {
      if (running.size === 0) return;
      const programs = [...running].map((child) => child.spawnargs.slice(0, 3).join(' '));
      log.v(2, 'ending child processes', { programs: programs.join(', ') });
      signal('SIGTERM');
      if (await exited(TERM_MS)) return;
      signal('SIGKILL');
      if (!(await exited(KILL_MS))) log.warn('child processes not ended', { count: running.size });
    },
    dispose: () => {
      unsubscribe(STARTED, started);
      process.off('exit', killAll);
    },
  };
}
