/** Runs the power commands of a host. Each has its own process group, which is killed at the time limit. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { CodedError, messageOf } from '../../base/errors.ts';

const MAX_OUTPUT = 64 * 1024;

export interface PowerCommand {
  /** Name in the bootstrap file, for messages. */
  readonly name: string;
  /** Absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  /** Time after which the process group is killed. */
  readonly limitMs: number;
}

/** Resolves with the output. Throws CodedError 'failed' with the output if the command fails or exceeds a limit. */
export function runPowerCommand({ name, program, args, limitMs }: PowerCommand): Promise<string> {
  const failed = (why: string): CodedError => new CodedError('failed', `command ${name}: ${why}`);
  return new Promise((resolve, reject) => {
    const child = start(program, args, failed);
    let output = '';
    let problem: string | undefined;
    const end = (why: string): void => {
      problem ??= why;
      killGroup(child.pid);
      // A process that has left the group may keep the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(() => end(`has not ended within ${limitMs / 1000} s`), limitMs);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.length > MAX_OUTPUT) end(`has more than ${MAX_OUTPUT} characters of output`);
      });
    child.once('error', (error) => {
      problem ??= messageOf(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const text = output.slice(0, MAX_OUTPUT).trim();
      if (problem === undefined && code === 0) return resolve(text);
      const why = problem ?? (code === null ? `ended by ${signal}` : `exit code ${code}`);
      reject(failed(text === '' ? why : `${why}: ${text}`));
    });
  });
}

function start(
  program: string,
  args: readonly string[],
  failed: (why: string) => CodedError,
): ChildProcessByStdio<null, Readable, Readable> {
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  try {
    return spawn(program, args, { env, cwd: '/', detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    // Errors that Node.js does not emit as events, such as ENOMEM.
    throw failed(messageOf(error));
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All processes of the group have ended.
  }
}
