/**
 * conmon, the monitor that outlives the host process: it holds a container's standard streams, writes its log in CRI format, waits for
 * its end and leaves the exit code in a file. Spoken to through its pipes, its `ctl` fifo and its `attach` socket.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../../base/errors.ts';
import { RuntimeError } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import type { Runc } from './runc.ts';
import type { CgroupDriver } from './spec.ts';

const CREATE_TIMEOUT_MS = 60_000;

export interface MonitorOptions {
  readonly conmon: string;
  readonly runc: Runc;
  readonly driver: CgroupDriver;
  readonly id: string;
  readonly bundle: string;
  readonly exits: string;
  readonly logPath: string;
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly leaveStdinOpen: boolean;
}

/** Creates the container under a new monitor and returns the pids of both. Throws RuntimeError 'create-failed' in the runtime's words. */
export async function createMonitored(
  options: MonitorOptions,
): Promise<{ readonly pid: number; readonly monitorPid: number }> {
  const { bundle } = options;
  const monitorPidFile = join(bundle, 'monitor.pid');
  const args = [
    '--api-version',
    '1',
    '--cid',
    options.id,
    '--cuuid',
    options.id,
    '--name',
    options.id,
    '--runtime',
    options.runc.path,
    '--bundle',
    bundle,
    '--persist-dir',
    bundle,
    '--container-pidfile',
    join(bundle, 'pid'),
    '--conmon-pidfile',
    monitorPidFile,
    '--exit-dir',
    options.exits,
    '--log-path',
    `k8s-file:${options.logPath}`,
    '--full-attach',
    ...(options.driver === 'systemd' ? ['--systemd-cgroup'] : []),
    ...(options.tty ? ['--terminal'] : []),
    ...(options.stdin ? ['--stdin'] : []),
    ...(options.leaveStdinOpen ? ['--leave-stdin-open'] : []),
    ...options.runc.globalArgs
      .filter((argument) => argument !== '--systemd-cgroup')
      .flatMap((argument) => ['--runtime-arg', argument]),
  ];
  const child = spawn(options.conmon, args, {
    cwd: bundle,
    detached: true,
    env: { ...childEnvironment, _OCI_SYNCPIPE: '3', _OCI_STARTPIPE: '4' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  const sync = child.stdio[3] as Readable;
  const start = child.stdio[4] as Writable;
  start.on('error', () => {});
  let complaint = '';
  child.stderr?.on('data', (part: Buffer) => {
    if (complaint.length < 4096) complaint += part.toString('utf8');
  });
  try {
    const report = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new RuntimeError('create-failed', 'the container monitor gave no answer')),
        CREATE_TIMEOUT_MS,
      );
      let said = '';
      const settle = (): void => {
        clearTimeout(timer);
        resolve(said);
      };
      child.on('error', (error) => {
        clearTimeout(timer);
        reject(new RuntimeError('create-failed', `${options.conmon}: ${error.message}`, { cause: error }));
      });
      sync.on('data', (part: Buffer) => {
        said += part.toString('utf8');
        if (said.includes('\n')) settle();
      });
      sync.on('end', settle);
      // The monitor waits for this before it does anything, so that its parent could still have moved it.
      start.end('\0');
    });
    const pid = parseReport(report, complaint);
    const monitorPid = Number((await readFile(monitorPidFile, 'utf8')).trim());
    return { pid, monitorPid };
  } finally {
    sync.destroy();
    child.stderr?.destroy();
    child.unref();
  }
}

function parseReport(report: string, complaint: string): number {
  let value: unknown;
  try {
    value = JSON.parse(report.split('\n', 1)[0] ?? '');
  } catch {
    throw new RuntimeError('create-failed', `container monitor: ${complaint.trim() || 'it ended without a report'}`);
  }
  const answer = typeof value === 'object' && value !== null ? value : {};
  const pid = 'data' in answer ? answer.data : undefined;
  if (typeof pid === 'number' && pid > 0) return pid;
  const message = 'message' in answer && typeof answer.message === 'string' ? answer.message : complaint;
  throw new RuntimeError('create-failed', message.trim() || 'the runtime could not create the container');
}

/** Asks the monitor to open its log file anew. Does nothing when the monitor is gone. */
export const reopenLog = (bundle: string): Promise<void> => control(bundle, '2 0 0\n');

/** Sets the size of the container's terminal. */
export const resizeTerminal = (bundle: string, columns: number, rows: number): Promise<void> =>
  control(bundle, `1 ${rows} ${columns}\n`);

async function control(bundle: string, message: string): Promise<void> {
  try {
    // Without a reader the open fails at once instead of waiting for one.
    const fifo = await open(join(bundle, 'ctl'), constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      await fifo.write(message);
    } finally {
      await fifo.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'ENXIO' && code !== 'ENOENT')
      throw new RuntimeError('internal', `container monitor: ${messageOf(error)}`, { cause: error });
  }
}
