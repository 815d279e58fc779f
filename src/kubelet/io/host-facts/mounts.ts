import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Mounter } from '../../port.ts';

const TIMEOUT_MS = 60_000;

/**
 * Runs a tool. After the timeout it rejects without waiting for the exit, because a child in uninterruptible sleep
 * survives SIGKILL.
 */
function execute(tool: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(tool, args, (error) => {
      clearTimeout(deadline);
      if (error === null) resolve();
      else reject(error);
    });
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.unref();
      reject(new Error(`no exit within ${TIMEOUT_MS / 1000} s; check the file system's server`));
    }, TIMEOUT_MS);
  });
}

/** Mounts with mount(8) and umount(8) of util-linux, without following a link at the target. */
export function createMounter(): Mounter {
  return {
    async tmpfs(target, options) {
      const settings = [`mode=${options.mode.toString(8)}`, 'nosuid', 'nodev'];
      if (options.sizeBytes !== undefined) settings.push(`size=${options.sizeBytes}`);
      await mount(['-t', 'tmpfs', '-o', settings.join(','), 'tmpfs', target], target);
    },
    hugetlbfs: (target, { pageSizeBytes, mode }) =>
      mount(['-t', 'hugetlbfs', '-o', `pagesize=${pageSizeBytes},mode=${mode.toString(8)}`, 'nodev', target], target),
    bindFd: (fd, target) => mount(['--no-canonicalize', '--bind', `/proc/${process.pid}/fd/${fd}`, target], target),
    receiveMounts: (target) => mount(['--no-canonicalize', '--make-slave', '--make-shared', target], target),
    async unmountTree(target) {
      const below = (await mountPoints()).filter((point) => point === target || point.startsWith(`${target}/`));
      const change = async (verb: string, point: string, args: readonly string[]): Promise<void> => {
        try {
          await execute(verb, ['--no-canonicalize', ...args, '--', point]);
        } catch (error) {
          if ((await mountPoints()).includes(point)) throw failure(verb, point, error);
        }
      };
      // A bind mount of a host directory also shows the file systems that the host mounts below that directory. While
      // the two mounts propagate to each other, unmounting such a file system here would unmount it on the host too.
      for (const point of new Set(below)) {
        const hasMounts = below.some((other) => other.startsWith(`${point}/`));
        if (hasMounts) await change('mount', point, ['--make-private']);
      }
      for (const point of below.toReversed()) await change('umount', point, ['-l']);
    },
    // Uses only the kernel's table, because a call on the mounted file system itself may never return.
    async isMountPoint(target) {
      const directory = await realpath(dirname(target)).catch(() => dirname(target));
      return (await mountPoints()).includes(join(directory, basename(target)));
    },
  };
}

async function mount(args: readonly string[], target: string): Promise<void> {
  try {
    await execute('mount', args);
  } catch (error) {
    throw failure('mount', target, error);
  }
}

/** Mount points in the order in which they were mounted: the topmost mount of a path comes last. */
async function mountPoints(): Promise<string[]> {
  const content = await readFile('/proc/self/mountinfo', 'utf8');
  return content
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point !== '')
    .map((point) =>
      point.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}

function failure(verb: string, target: string, error: unknown): CodedError {
  const stderr =
    error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.trim() : '';
  return new CodedError('mount', `cannot ${verb} ${target}: ${stderr === '' ? messageOf(error) : stderr}`, {
    cause: error,
  });
}
