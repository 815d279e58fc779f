/** Runs a CNI plug-in. Source: CNI specification 1.0.0, sections 2 and 5. */
import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '../../../runtime/port.ts';

export interface PluginCall {
  readonly command: 'ADD' | 'DEL' | 'CHECK';
  readonly type: string;
  /** Directories with plug-ins, in search order. */
  readonly directories: readonly string[];
  readonly containerId: string;
  readonly netnsPath: string;
  readonly ifName: string;
  /** Value of CNI_ARGS, in the form `KEY=value;…`. */
  readonly args: string;
  readonly input: object;
}

/** Fields of a plug-in's result that are used. */
export interface CniResult {
  readonly interfaces?: readonly { readonly name?: string; readonly sandbox?: string }[];
  readonly ips?: readonly { readonly address: string; readonly interface?: number }[];
  readonly [field: string]: unknown;
}

const TIMEOUT_MS = 120_000;
const MAX_OUTPUT = 1024 * 1024;
/** Maximum length of a plug-in's error message, which ends up in Events and statuses. */
const MAX_MESSAGE = 4096;
/**
 * Time to read remaining output after the plug-in has exited. A background process of the plug-in may keep the pipe
 * open forever.
 */
const OUTPUT_MS = 1_000;

/**
 * Runs a plug-in. Resolves with undefined if it printed no result. Throws RuntimeError 'network' with the plug-in's
 * message.
 */
export async function callPlugin(call: PluginCall): Promise<CniResult | undefined> {
  const file = await locate(call.type, call.directories);
  const { code, stdout, stderr } = await execute(file, call);
  const parsed = stdout.trim() === '' ? undefined : parse(stdout);
  if (code !== 0) {
    const { msg, details } = (parsed ?? {}) as { readonly msg?: unknown; readonly details?: unknown };
    const text = [msg, details].filter((each) => typeof each === 'string' && each !== '').join(': ');
    throw failure(call, text === '' ? firstLine(stderr) || `exit ${code}` : text);
  }
  if (parsed === undefined && stdout.trim() !== '') throw failure(call, 'printed a result that is not JSON');
  return parsed;
}

const failure = ({ command, type }: PluginCall, why: string): RuntimeError =>
  new RuntimeError('network', `CNI plug-in ${type} ${command}: ${why.slice(0, MAX_MESSAGE)}`);

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

function parse(text: string): CniResult | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as CniResult) : undefined;
  } catch {
    return undefined;
  }
}

/** Path of a plug-in. Throws RuntimeError 'network' if it is in none of the directories. */
export async function locate(type: string, directories: readonly string[]): Promise<string> {
  for (const directory of directories) {
    const file = join(directory, type);
    const found = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return file;
  }
  throw new RuntimeError(
    'network',
    `CNI plug-in ${type} is not in ${directories.join(', ')}; install the plug-in there`,
  );
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function execute(file: string, call: PluginCall): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, [], {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        CNI_COMMAND: call.command,
        CNI_CONTAINERID: call.containerId,
        CNI_NETNS: call.netnsPath,
        CNI_IFNAME: call.ifName,
        CNI_ARGS: call.args,
        CNI_PATH: call.directories.join(':'),
      },
    });
    child.on('error', (error) => reject(failure(call, error.message)));
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return;
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < MAX_OUTPUT) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < MAX_OUTPUT) stderr += text;
    });
    child.on('exit', () =>
      setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, OUTPUT_MS).unref(),
    );
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    // A plug-in that exits early closes its stdin. The error is ignored, because its exit code is reported.
    child.stdin.on('error', () => {});
    child.stdin.end(JSON.stringify(call.input));
  });
}
