/** `hyperedge doctor` in a child process for the kubelet's `/hyperedge/doctor`. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import type { Readable } from 'node:stream';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { HostDoctor } from '../../kubelet/ports/host-doctor-port.ts';
import { createKnownValues, redactObject } from '../../support-bundle/core/index.ts';

const MAX_OUTPUT_BYTES = 4 << 20;
const MAX_ERROR_CHARS = 500;
/** The checks inherit the host process's protection from the OOM killer. This score removes it. */
const OOM_SCORE = '500';
/** Exit codes with which `hyperedge doctor` prints a report: no problem, errors, warnings. */
const REPORTED: ReadonlySet<number | null> = new Set([0, 1, 3]);

/** `command`: command and arguments that start this executable. */
export const hostDoctorOf = (command: readonly string[], root: string): HostDoctor => ({
  report: async (signal) =>
    withoutSecrets(await outputOf([...command, 'doctor', '-o', 'json', '--root', root], signal)),
});

/** Redacts the report: messages of other programs and of containers may contain credentials. */
function withoutSecrets(output: string): string {
  let report: unknown;
  try {
    report = JSON.parse(output);
  } catch {
    throw new CodedError('failed', 'the output of the checks is not JSON');
  }
  return JSON.stringify(redactObject(report, createKnownValues([])));
}

/**
 * Output of the command. Rejects with CodedError 'failed' when the command fails or `signal` is aborted; an abort kills
 * the process and its children.
 */
function outputOf([file = '', ...args]: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = start(file, args);
    const { pid } = child;
    const pieces: Buffer[] = [];
    let bytes = 0;
    let errors = '';
    let problem = '';
    const kill = (reason: string): void => {
      problem ||= reason;
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL');
      } catch {
        // The process has ended.
      }
    };
    const onAbort = (): void => kill('stopped');
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    if (pid !== undefined) lowerPriority(pid);
    child.once('error', (error) => {
      signal.removeEventListener('abort', onAbort);
      reject(new CodedError('failed', error.message));
    });
    // A child that could not be started for lack of file descriptors has no streams.
    if (pid === undefined) return;
    child.stdout.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > MAX_OUTPUT_BYTES) kill(`more than ${MAX_OUTPUT_BYTES} bytes of output`);
      else pieces.push(piece);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(0, MAX_ERROR_CHARS);
    });
    child.once('close', (code) => {
      signal.removeEventListener('abort', onAbort);
      if (problem === '' && REPORTED.has(code)) resolve(Buffer.concat(pieces).toString());
      else reject(new CodedError('failed', problem || errors.trim() || `hyperedge doctor ended with ${code}`));
    });
  });
}

/**
 * Starts the command. The child has its own process group, so that a signal to the group also ends its probes. Throws
 * CodedError 'failed' for errors that Node.js does not emit as events, such as ENOMEM.
 */
function start(file: string, args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  try {
    return spawn(file, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new CodedError('failed', messageOf(error), { cause: error });
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // The process has ended.
  }
  void writeFile(`/proc/${pid}/oom_score_adj`, OOM_SCORE).catch(ignore('the process has ended'));
}
