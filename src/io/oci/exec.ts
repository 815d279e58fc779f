/** Running further processes in a container: by `runc exec` under pipes, by a monitor with a terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { watch } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { type ExecOptions, type ExecResult, type ProcessStreams, RuntimeError } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import type { OciProcess } from './spec.ts';
import { inputSink } from './streams.ts';
import { execWithTerminal, killQuietly, type TerminalExecDeps } from './terminal-exec.ts';

const MAX_SYNC_OUTPUT_BYTES = 16 * 1024 * 1024;

export interface ExecDeps extends TerminalExecDeps {
  /** Scratch directory. */
  readonly execs: string;
  readonly clock: Clock;
}

/** Resolves when the process runs. Throws RuntimeError 'start-failed' in the runtime's words when it cannot be started. */
export async function execInContainer(
  deps: ExecDeps,
  containerId: string,
  bundle: string,
  options: ExecOptions,
): Promise<ProcessStreams> {
  const work = join(deps.execs, randomBytes(12).toString('hex'));
  await mkdir(work, { mode: 0o700 });
  const cleared = (): Promise<void> => rm(work, { recursive: true, force: true });
  try {
    await writeFile(join(work, 'process.json'), JSON.stringify(await processFor(bundle, options)), { mode: 0o600 });
    if (!options.tty) return await launch(deps, containerId, work, options);
    const streams = await execWithTerminal(deps, containerId, work, options.stdin);
    void streams.exited.then(cleared);
    return streams;
  } catch (error) {
    await cleared();
    throw error;
  }
}

async function processFor(bundle: string, options: ExecOptions): Promise<OciProcess> {
  const spec: { process: OciProcess } = JSON.parse(await readFile(join(bundle, 'config.json'), 'utf8'));
  const { env } = spec.process;
  const hasTerm = env.some((line) => line.startsWith('TERM='));
  return {
    ...spec.process,
    terminal: options.tty,
    args: options.command,
    env: options.tty && !hasTerm ? [...env, 'TERM=xterm'] : env,
  };
}

async function launch(
  deps: ExecDeps,
  containerId: string,
  work: string,
  options: ExecOptions,
): Promise<ProcessStreams> {
  const pidFile = join(work, 'pid');
  const log = join(work, 'log');
  const args = [
    '--log',
    log,
    '--log-format',
    'json',
    'exec',
    '--process',
    join(work, 'process.json'),
    '--pid-file',
    pidFile,
    containerId,
  ];
  // Watching starts before the process does, so that its pid file cannot be missed.
  const started = watchForFile(work, 'pid');
  const child = spawn(deps.runc.path, [...deps.runc.globalArgs, ...args], {
    stdio: [options.stdin ? 'pipe' : 'ignore', options.stdout ? 'pipe' : 'ignore', options.stderr ? 'pipe' : 'ignore'],
    env: { ...childEnvironment },
  });
  // Taken at once: Node throws away what nobody reads when a child exits, and a short command is gone before its start was noticed.
  const stdout = child.stdout?.pipe(new PassThrough());
  const stderr = child.stderr?.pipe(new PassThrough());
  const exited = exitCode(child);
  let over = false;
  const finished = exited.then(
    async (code) => {
      over = true;
      started.cancel();
      const pid = await readPid(pidFile);
      const complaint = pid === undefined ? await readComplaint(log) : '';
      await rm(work, { recursive: true, force: true });
      return { code, pid, complaint };
    },
    async (error: unknown) => {
      over = true;
      started.cancel();
      throw error;
    },
  );
  const first = await Promise.race([started.appeared, finished]);
  if (first !== 'appeared' && first.pid === undefined) {
    child.stdout?.destroy();
    child.stderr?.destroy();
    throw new RuntimeError(
      'start-failed',
      first.complaint || `the process could not be started (exit status ${first.code})`,
    );
  }
  const pid = await readPid(pidFile);
  const kill = (): void => {
    // While runc waits for it, the pid cannot have passed to another process.
    if (over) return;
    if (pid !== undefined) killQuietly(pid);
    else child.kill('SIGKILL');
  };
  return {
    stdin: child.stdin === null ? undefined : inputSink(child.stdin),
    stdout,
    stderr,
    // Only a terminal has a size.
    resize: () => {},
    exited: finished.then(({ code }) => code),
    close: () => {
      kill();
      child.stdin?.destroy();
    },
  };
}

/** Runs to the end or to the timeout; output beyond 16 MiB is dropped. */
export async function execToEnd(
  deps: ExecDeps,
  containerId: string,
  bundle: string,
  command: readonly string[],
  timeoutMs: number,
): Promise<ExecResult> {
  let expire: () => void = () => {};
  const expired = new Promise<'expired'>((resolve) => {
    expire = () => resolve('expired');
  });
  const timer = timeoutMs > 0 ? deps.clock.setTimer(timeoutMs, expire) : undefined;
  try {
    const options = { command, stdin: false, stdout: true, stderr: true, tty: false };
    const process = await execInContainer(deps, containerId, bundle, options);
    const stdout = drain(process.stdout);
    const stderr = drain(process.stderr);
    const outcome = await Promise.race([process.exited, expired]);
    if (outcome === 'expired') {
      process.close();
      throw new RuntimeError(
        'timeout',
        `command ${JSON.stringify(command[0] ?? '')} did not end within ${timeoutMs} ms`,
      );
    }
    // A process left behind may hold the pipes open: what has been read by now, or by the timeout, is the output.
    await Promise.race([Promise.all([stdout.ended, stderr.ended]), expired, settle(deps.clock)]);
    return { stdout: stdout.bytes(), stderr: stderr.bytes(), exitCode: outcome };
  } finally {
    timer?.cancel();
  }
}

const settle = (clock: Clock): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimer(1_000, resolve);
  });

function drain(source: AsyncIterable<Uint8Array> | undefined): { readonly ended: Promise<void>; bytes(): Uint8Array } {
  const parts: Uint8Array[] = [];
  let size = 0;
  const read = async (): Promise<void> => {
    if (source === undefined) return;
    for await (const part of source) {
      const kept = part.subarray(0, Math.max(0, MAX_SYNC_OUTPUT_BYTES - size));
      size += kept.length;
      if (kept.length > 0) parts.push(kept);
    }
  };
  return { ended: read().catch(() => {}), bytes: () => Buffer.concat(parts) };
}

function exitCode(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new RuntimeError('internal', error.message, { cause: error })));
    child.on('exit', (code, signal) => resolve(code ?? (signal === 'SIGKILL' ? 137 : 255)));
  });
}

function watchForFile(directory: string, name: string): { readonly appeared: Promise<'appeared'>; cancel(): void } {
  const watcher = watch(directory);
  const appeared = new Promise<'appeared'>((resolve) => {
    watcher.on('change', (_event, file) => {
      if (file !== name) return;
      watcher.close();
      resolve('appeared');
    });
    watcher.on('error', () => {});
  });
  return { appeared, cancel: () => watcher.close() };
}

async function readPid(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** The last error in runc's JSON log. */
async function readComplaint(log: string): Promise<string> {
  const lines = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n');
  try {
    const entry: unknown = JSON.parse(lines.at(-1) ?? '');
    if (typeof entry === 'object' && entry !== null && 'msg' in entry) return String(entry.msg);
  } catch {
    // Not JSON: runc's words as they are.
  }
  return lines.at(-1) ?? '';
}
