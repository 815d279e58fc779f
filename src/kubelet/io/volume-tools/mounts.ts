import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import type { MountCall } from '../../volumes/tools-port.ts';
import { missingTool, run } from './run-tool.ts';

export interface MountPoint {
  readonly target: string;
  readonly root: string;
  /** `major:minor`. */
  readonly device: string;
  readonly source: string;
  readonly fsType: string;
  /** Options of the mount and of its file system. */
  readonly options: readonly string[];
  /** Whether mounts below this mount propagate to other mount namespaces and back. */
  readonly isShared: boolean;
}

const HELPER_DIRECTORIES = ['/sbin', '/usr/sbin', '/usr/local/sbin', '/bin', '/usr/bin'];

/** Types for which mount(8) needs a helper program. */
const HELPERS: Readonly<Record<string, string>> = { nfs: 'mount.nfs', nfs4: 'mount.nfs' };

export async function mount({ type, source, target, options }: MountCall): Promise<void> {
  const helper = HELPERS[type];
  if (helper !== undefined && !(await isInstalled(helper))) throw missingTool(helper);
  const settings = options.length === 0 ? [] : ['-o', options.join(',')];
  await run('mount', ['-t', type, ...settings, '--', source, target]);
}

/** Unmounts every layer at the target itself. An unmounted target is no error. */
export async function unmount(target: string): Promise<void> {
  for (let layers = (await layersAt(target)).length; layers > 0; layers--) {
    await run('umount', ['--no-canonicalize', '--', target]);
  }
}

const layersAt = async (target: string): Promise<readonly MountPoint[]> =>
  (await mountPoints()).filter((point) => point.target === target);

async function isInstalled(program: string): Promise<boolean> {
  for (const directory of HELPER_DIRECTORIES) {
    if (
      await access(join(directory, program)).then(
        () => true,
        () => false,
      )
    )
      return true;
  }
  return false;
}

/** Reverts `shareMounts`; a file system that an administrator mounted there stays. */
export async function unshareMounts(directory: string): Promise<void> {
  const top = (await layersAt(directory)).at(-1);
  if (top === undefined || top.root === '/' || !directory.endsWith(top.root)) return;
  await run('umount', ['--no-canonicalize', '--', directory]);
}

/** Mount points of this process in the order in which they were mounted. Source: proc_pid_mountinfo(5). */
export async function mountPoints(): Promise<MountPoint[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , device = '', root = '', target = '', own = '', ...tags] = before.split(' ');
    const [fsType = '', source = '', shared = ''] = after.split(' ');
    return {
      device,
      fsType,
      isShared: tags.some((tag) => tag.startsWith('shared:')),
      target: unescaped(target),
      root: unescaped(root),
      source: unescaped(source),
      options: [...own.split(','), ...shared.split(',')],
    };
  });
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount that contains a path. Throws CodedError 'mount'. */
export async function mountOf(path: string): Promise<MountPoint> {
  const points = (await mountPoints()).filter(
    ({ target }) => path === target || path.startsWith(target === '/' ? '/' : `${target}/`),
  );
  const [deepest] = points.toSorted((a, b) => b.target.length - a.target.length);
  if (deepest === undefined) throw new CodedError('mount', `${path}: no mounted file system contains the path`);
  return deepest;
}

/**
 * Makes the directory a shared mount if its mount is not shared; the root mount of a systemd host is. A directory that
 * already contains mounts stays as it is until the next boot, because the new mount would hide them.
 */
export async function shareMounts(directory: string): Promise<void> {
  if ((await mountOf(directory)).isShared) return;
  if ((await mountPoints()).some(({ target }) => target.startsWith(`${directory}/`))) return;
  await run('mount', ['--bind', directory, directory]);
  await run('mount', ['--make-rshared', directory]);
}
