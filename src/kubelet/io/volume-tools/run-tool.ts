import { execFile } from 'node:child_process';
import { CodedError } from '../../../base/errors.ts';

/** Package name by tool. */
const PACKAGES: Readonly<Record<string, string>> = {
  'mount.nfs': 'nfs-common',
  iscsiadm: 'open-iscsi',
  losetup: 'util-linux',
  blkid: 'util-linux',
  blockdev: 'util-linux',
  'mkfs.ext2': 'e2fsprogs',
  'mkfs.ext3': 'e2fsprogs',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  setquota: 'quota',
  xfs_quota: 'xfsprogs',
  chattr: 'e2fsprogs',
};

/** Time limit of a tool. Mounting over a network waits for the server. */
const TIMEOUT_MS = 120_000;

export const missingTool = (tool: string): CodedError =>
  new CodedError('tool-missing', `${tool}: not installed on this node; install ${PACKAGES[tool] ?? tool}`);

export interface ToolResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a tool to its exit, whatever its exit code. Throws CodedError 'tool-missing', or 'tool' if a signal ended it or
 * it did not exit in time. A child in uninterruptible sleep survives SIGKILL, so the deadline does not wait for it.
 */
export function result(tool: string, args: readonly string[], timeoutMs = TIMEOUT_MS): Promise<ToolResult> {
  const { NODE_OPTIONS: _options, ...env } = process.env;
  return new Promise((resolve, reject) => {
    const child = execFile(tool, args, { env: { ...env, LC_ALL: 'C' } }, (error, stdout, stderr) => {
      clearTimeout(deadline);
      if (error === null) return resolve({ exitCode: 0, stdout, stderr });
      if (error.code === 'ENOENT') return reject(missingTool(tool));
      if (typeof error.code === 'number') return resolve({ exitCode: error.code, stdout, stderr });
      const reason = error.signal == null ? error.message : `ended by ${error.signal}`;
      reject(new CodedError('tool', `${tool}: ${reason}`, { cause: error }));
    });
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      reject(new CodedError('tool', `${tool}: no exit within ${timeoutMs / 1000} s; check the device or server`));
    }, timeoutMs);
  });
}

/** Returns standard output. Throws CodedError 'tool-missing' or 'tool' with the tool's error output. */
export async function run(tool: string, args: readonly string[], timeoutMs = TIMEOUT_MS): Promise<string> {
  const { exitCode, stdout, stderr } = await result(tool, args, timeoutMs);
  if (exitCode === 0) return stdout;
  const text = stderr.trim();
  throw new CodedError('tool', `${tool}: ${text === '' ? `exit code ${exitCode}` : text}`);
}
