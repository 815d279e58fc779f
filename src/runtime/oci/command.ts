/** Runs host programs: argument arrays only, a minimal environment, limited output and time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { CodedError } from '../../base/errors.ts';

const MAX_OUTPUT_BYTES = 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 60_000;

export interface CommandOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly timeoutMs?: number;
  /** Discards standard output and error. For programs that leave a background process, which would hold pipes open. */
  readonly discardOutput?: boolean;
}

/**
 * Environment of child processes: enough to find programs, without variables that change the behaviour of Node or of a
 * container.
 */
export const childEnvironment: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

/**
 * Resolves with stdout. Throws CodedError 'command' with the program's error output, or 'timeout' if the program was
 * killed at the deadline.
 */
export function runCommand(file: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const output = options.discardOutput === true ? 'ignore' : 'pipe';
    const child = spawn(file, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', output, output],
      env: { ...childEnvironment },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input);
    // A child in uninterruptible sleep survives SIGKILL, so the deadline does not wait for its end.
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.unref();
      const seconds = (options.timeoutMs ?? DEFAULT_TIMEOUT_MS) / 1000;
      reject(new CodedError('timeout', `${file} ${args[0] ?? ''}: no exit within ${seconds} s`));
    }, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    child.on('error', () => clearTimeout(deadline));
    child.on('error', (error) => reject(new CodedError('command', `${file}: ${error.message}`, { cause: error })));
    child.on('close', (code, signal) => {
      clearTimeout(deadline);
      if (code === 0) return resolve(stdout());
      const message = stderr().trim() || stdout().trim();
      const how = signal === null ? `exit status ${code}` : `killed by ${signal}`;
      reject(new CodedError('command', `${file} ${args[0] ?? ''}: ${message === '' ? how : message}`));
    });
  });
}

function collect(stream: ChildProcess['stdout']): () => string {
  const parts: Buffer[] = [];
  let size = 0;
  stream?.on('data', (part: Buffer) => {
    if (size < MAX_OUTPUT_BYTES) parts.push(part);
    size += part.length;
  });
  return () => Buffer.concat(parts).toString('utf8').slice(0, MAX_OUTPUT_BYTES);
}
