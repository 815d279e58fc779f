import { execFile } from 'node:child_process';
import { lstat, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Mounter } from '../../components/kubelet/port.ts';

const execute = promisify(execFile);

/** Mounts through mount(8) and umount(8) of util-linux, never following a link at the target. */
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
    async unmountTree(target) {
      const below = (await mountPoints()).filter((point) => point === target || point.startsWith(`${target}/`));
      for (const point of below.reverse()) {
        try {
          await execute('umount', ['--no-canonicalize', '-l', '--', point]);
        } catch (error) {
          if ((await mountPoints()).includes(point)) throw failure('umount', point, error);
        }
      }
    },
    // The table of all mounts of the machine is long: a file system of its own shows in the directory's device number.
    isMountPoint: async (target) => (await isOtherDevice(target)) || (await mountPoints()).includes(target),
  };
}

/** Of directories only: overlayfs may give a file the device number of the layer that it is in. */
async function isOtherDevice(target: string): Promise<boolean> {
  try {
    const [own, above] = await Promise.all([lstat(target), lstat(dirname(target))]);
    return own.isDirectory() && above.isDirectory() && own.dev !== above.dev;
  } catch {
    return false;
  }
}

async function mount(args: readonly string[], target: string): Promise<void> {
  try {
    await execute('mount', args);
  } catch (error) {
    throw failure('mount', target, error);
  }
}

/** In the order they were mounted: what lies on top comes later. */
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
