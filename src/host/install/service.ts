/** State of the host process's systemd unit, through systemctl(1) and journalctl(1). */
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { CodedError } from '../../base/errors.ts';
import { SERVICE } from './layout.ts';

const TIMEOUT_MS = 120_000;
const JOURNAL_LINES = 30;

export interface ServiceState {
  /** State as systemctl reports it: active, activating, inactive, failed and others. */
  readonly active: string;
  /** Automatic restarts since the last manual start. */
  readonly restarts: number;
}

export const systemdRuns = (): Promise<boolean> =>
  access('/run/systemd/system').then(
    () => true,
    () => false,
  );

/** Runs systemctl(1) and resolves with its output. Throws CodedError 'systemd' with its error message. */
export function systemctl(...args: readonly string[]): Promise<string> {
  return program('systemctl', args);
}

export async function serviceState(): Promise<ServiceState> {
  const shown = await systemctl('show', SERVICE, '-p', 'ActiveState', '-p', 'NRestarts');
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? '';
  return { active: value('ActiveState'), restarts: Number(value('NRestarts')) };
}

/** The last error that the host process printed before it exited; undefined if there is none. */
export async function lastError(): Promise<string | undefined> {
  const args = ['-u', SERVICE, '-b', '-n', String(JOURNAL_LINES), '-o', 'cat', '--no-pager'];
  const journal = await program('journalctl', args).catch(() => '');
  const line = journal.split('\n').findLast((each) => each.startsWith('hyperedge: '));
  return line?.slice('hyperedge: '.length);
}

function program(file: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], LANG: 'C.UTF-8' };
  return new Promise((resolve, reject) => {
    execFile(file, args, { env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new CodedError('systemd', `${file} ${args[0]}: ${stderr.trim() || error.message}`));
    });
  });
}
