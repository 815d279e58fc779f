/** Runs commands of this executable in child processes with low priority, so that they do not block the event loop. */
import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { selfCommand } from './assets.ts';

/**
 * Resolves with the standard output of the command. Rejects with the text on its standard error. An aborted `signal`
 * ends the child.
 */
export function runOwnCommand(args: readonly string[], signal: AbortSignal, timeoutMs: number): Promise<string> {
  const [file = '', ...before] = selfCommand();
  return new Promise((resolve, reject) => {
    const started = execFile(file, [...before, ...args], { timeout: timeoutMs, signal }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(stderr.trim().replaceAll(/^hyperedge: /gm, '') || error.message));
    });
    if (started.pid !== undefined) setPriority(started.pid, constants.priority.PRIORITY_LOW);
  });
}
