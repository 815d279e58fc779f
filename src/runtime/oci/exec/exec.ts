/**
 * Runs further processes in a container. A monitor waits for the process, because `runc exec` would wait for as long as
 * any child holds the pipes. All processes of an exec are in their own cgroup below the container's.
 */

import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ignore } from '../../../base/errors.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import {
  type ExecOptions,
  type ExecResult,
  type ExecSyncOptions,
  type ProcessStreams,
  RuntimeError,
} from '../../port.ts';
import type { ContainerCgroups } from '../cgroups.ts';
import type { KeyedLimit } from '../keyed-limit.ts';
import { type ExecStart, execMonitored, type StartedExec } from '../streams/conmon.ts';
import { createExecCgroup } from './exec-cgroup.ts';
import { openPipes } from './exec-pipes.ts';
import { writeExecProcess } from './exec-process.ts';
import { execWithTerminal, type TerminalExecDeps } from './terminal-exec.ts';

/**
 * After the kept output, this many bytes are read and discarded at full speed and the rest slowly, which throttles a
 * command that prints without end.
 */
const FREE_DRAIN_BYTES = 1024 * 1024;
const DRAIN_PAUSE_MS = 100;
const SETTLE_MS = 1_000;

export interface ExecDeps extends TerminalExecDeps {
  /** Directory in which each exec creates a scratch directory. */
  readonly execs: string;
  readonly clock: Clock;
  /** Limits concurrent starts per sandbox: the runtime that starts a process is not charged to the pod. */
  readonly starts: KeyedLimit;
}

export interface ExecTarget {
  readonly id: string;
  readonly sandboxId: string;
  readonly bundle: string;
  readonly cgroups: ContainerCgroups;
}

export interface ExecSession extends ProcessStreams {
  /** Kills the remaining processes and resolves when nothing of the exec is left. */
  end(): Promise<void>;
}

export interface ExecPolicy {
  /**
   * Whether processes that are still running when the command exits are killed. Otherwise they continue in the
   * container.
   */
  readonly killsRest: boolean;
  readonly signal?: AbortSignal;
  /** Called when the exec no longer waits for other starts in the pod and begins to start. */
  readonly begins?: () => void;
}

/**
 * Resolves when the process runs. Closing the session before the process has exited kills the process and everything
 * that it has started. Throws RuntimeError 'start-failed' with the runtime's message.
 */
export function execInContainer(
  deps: ExecDeps,
  target: ExecTarget,
  options: ExecOptions,
  policy: ExecPolicy,
): Promise<ExecSession> {
  return deps.starts.run(target.sandboxId, () => {
    policy.begins?.();
    return start(deps, target, options, policy);
  });
}

async function start(
  deps: ExecDeps,
  target: ExecTarget,
  options: ExecOptions,
  policy: ExecPolicy,
): Promise<ExecSession> {
  const name = randomBytes(12).toString('hex');
  const work = join(deps.execs, name);
  await mkdir(work, { mode: 0o700 });
  const cleared = (): Promise<void> => rm(work, { recursive: true, force: true });
  const cgroup = await createExecCgroup(target.cgroups, name, deps.clock).catch(async (error: unknown) => {
    await cleared();
    throw error;
  });
  let started: StartedExec;
  try {
    await writeExecProcess(join(work, 'process.json'), target.bundle, options);
    const request = { id: target.id, bundle: work, runtimeOptions: cgroup.options, signal: policy.signal };
    started = options.tty
      ? await execWithTerminal(deps, request, options.stdin)
      : await execWithPipes(deps, request, options);
  } catch (error) {
    await cgroup.kill();
    await Promise.all([cgroup.dissolve(), cleared()]);
    throw error;
  }
  const { streams, monitored, servingPids } = started;
  await Promise.all([monitored.monitorPid, ...servingPids].map(cgroup.charge));
  let over = false;
  const exited = monitored.exitCode.finally(() => {
    over = true;
    started.finish();
  });
  const cleanedUp = exited.then(async () => {
    if (policy.killsRest) await cgroup.kill();
    await Promise.all([cgroup.dissolve(), cleared()]);
  });
  return {
    ...streams,
    exited,
    close: () => {
      if (!over) void cgroup.kill();
      started.close();
    },
    end: async () => {
      started.close();
      if (!over) await cgroup.kill();
      await cleanedUp;
    },
  };
}

async function execWithPipes(deps: ExecDeps, start: ExecStart, options: ExecOptions): Promise<StartedExec> {
  const pipes = await openPipes(start.bundle, options, deps.clock);
  try {
    const monitored = await execMonitored({ ...deps, ...start, output: { ends: pipes.ends } });
    const { stdin, stdout, stderr } = pipes;
    return {
      // Only a terminal has a size.
      streams: { stdin, stdout: stdout?.readable, stderr: stderr?.readable, resize: async () => {} },
      monitored,
      servingPids: [],
      finish: () => {
        stdout?.finish();
        stderr?.finish();
      },
      close: pipes.close,
    };
  } catch (error) {
    pipes.close();
    throw error;
  } finally {
    await pipes.release();
  }
}

/**
 * Runs a command until it exits or the timeout expires, and kills its remaining processes. After an exit they continue
 * to run if the options allow it.
 */
export async function execToEnd(
  deps: ExecDeps,
  target: ExecTarget,
  command: readonly string[],
  { timeoutMs, maxOutputBytes, leavesProcesses = false }: ExecSyncOptions,
): Promise<ExecResult> {
  const aborter = new AbortController();
  const expired = new Promise<'expired'>((resolve) => {
    aborter.signal.addEventListener('abort', () => resolve('expired'), { once: true });
  });
  let timer: Timer | undefined;
  // The timeout starts with the command and excludes the time spent waiting for other execs of the pod.
  const begins = (): void => {
    if (timeoutMs > 0) timer = deps.clock.setTimer(timeoutMs, () => aborter.abort());
  };
  const timedOut = (cause?: unknown): RuntimeError =>
    new RuntimeError(
      'timeout',
      `command ${JSON.stringify(command[0] ?? '')} did not end within ${timeoutMs} ms`,
      cause === undefined ? {} : { cause },
    );
  let session: ExecSession | undefined;
  try {
    session = await execInContainer(
      deps,
      target,
      { command, stdin: false, stdout: true, stderr: true, tty: false },
      { killsRest: !leavesProcesses, signal: aborter.signal, begins },
    );
    const stdout = drain(session.stdout, maxOutputBytes, deps.clock);
    const stderr = drain(session.stderr, maxOutputBytes, deps.clock);
    const outcome = await Promise.race([session.exited, expired]);
    if (outcome === 'expired') throw timedOut();
    await Promise.race([Promise.all([stdout.ended, stderr.ended]), expired, pause(deps.clock, SETTLE_MS)]);
    return { stdout: stdout.bytes(), stderr: stderr.bytes(), exitCode: outcome };
  } catch (error) {
    if (session === undefined && aborter.signal.aborted) throw timedOut(error);
    throw error;
  } finally {
    timer?.cancel();
    await session?.end();
  }
}

const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimer(ms, resolve);
  });

function drain(
  source: AsyncIterable<Uint8Array> | undefined,
  maxBytes: number,
  clock: Clock,
): { readonly ended: Promise<void>; bytes(): Uint8Array } {
  const parts: Uint8Array[] = [];
  let size = 0;
  const read = async (): Promise<void> => {
    if (source === undefined) return;
    for await (const part of source) {
      if (size < maxBytes) parts.push(part.subarray(0, maxBytes - size));
      size += part.length;
      if (size > maxBytes + FREE_DRAIN_BYTES) await pause(clock, DRAIN_PAUSE_MS);
    }
  };
  return { ended: read().catch(ignore('an unreadable stream ends the output')), bytes: () => Buffer.concat(parts) };
}
