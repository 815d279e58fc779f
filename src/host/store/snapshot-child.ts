/**
 * Scheduled snapshots. A child process with low priority saves each snapshot. When it exits, the system frees its
 * memory.
 */
import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { CodedError } from '../../base/errors.ts';
import type { ScheduleOptions } from '../../store/administration/schedule.ts';

const CHILD_MS = 600_000;

/**
 * Runs `command snapshot save`. Resolves with the output of the command. Rejects with CodedError 'failed'. After an
 * abort, rejects when the child has exited.
 */
export function takeInChild(command: readonly string[], root: string): ScheduleOptions['take'] {
  const [file = '', ...before] = command;
  return ({ keep, directory }, signal) =>
    new Promise((resolve, reject) => {
      const args = [
        'snapshot',
        'save',
        '--root',
        root,
        '--directory',
        directory,
        '--keep',
        String(keep),
        '--if-changed',
      ];
      const child = execFile(file, [...before, ...args], { timeout: CHILD_MS }, (error, stdout, stderr) => {
        signal.removeEventListener('abort', end);
        if (error === null) resolve(stdout.trim());
        else reject(new CodedError('failed', stderr.trim().replace(/^hyperedge: /, '') || error.message));
      });
      const end = (): void => void child.kill();
      if (signal.aborted) end();
      else signal.addEventListener('abort', end);
      if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    });
}
