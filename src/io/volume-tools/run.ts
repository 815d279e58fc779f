import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CodedError, messageOf } from '../../base/errors.ts';

const execute = promisify(execFile);

/** What to install where a tool is missing, by the tool. */
const PACKAGES: Readonly<Record<string, string>> = {
  'mount.nfs': 'nfs-common',
  iscsiadm: 'open-iscsi',
  losetup: 'util-linux',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  setquota: 'quota',
  chattr: 'e2fsprogs',
};

/** Mounting over a network waits for the server. */
const TIMEOUT_MS = 120_000;

export const missingTool = (tool: string): CodedError =>
  new CodedError('tool-missing', `${tool}: not installed on this node; install ${PACKAGES[tool] ?? tool}`);

/** Standard output. Throws CodedError 'tool-missing' or 'tool' with what the tool printed. */
export async function run(tool: string, args: readonly string[]): Promise<string> {
  const { NODE_OPTIONS: _options, ...env } = process.env;
  try {
    return (await execute(tool, args, { env: { ...env, LC_ALL: 'C' }, timeout: TIMEOUT_MS })).stdout;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') throw missingTool(tool);
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new CodedError('tool', `${tool}: ${stderr === '' ? messageOf(error) : stderr}`, { cause: error });
  }
}
