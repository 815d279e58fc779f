import { access, mkdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
const DEBIAN = '/usr/bin';

/** What a suite writes about its runs. */
export const REPORTS = join(ROOT, 'dist', 'upstream', 'reports');

export interface Wanted {
  /** Debian's etcd instead of ours. */
  readonly baseline: boolean;
  /** The executable, when it is not the one that was built last. */
  readonly etcd: string | undefined;
}

/** A directory `scratch/bin` as upstream's suites want it: `etcd`, which is ours under that name, and Debian's `etcdctl`. */
export async function placeBinaries(scratch: string, { baseline, etcd }: Wanted): Promise<string> {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
  const ours = resolve(etcd ?? join(ROOT, 'dist', `hyperedge-linux-${architecture}`));
  const executable = baseline ? join(DEBIAN, 'etcd') : ours;
  await access(executable).catch(() => {
    throw new Error(`${executable} is not there; run: npm run build`);
  });
  const bin = join(scratch, 'bin');
  await mkdir(bin);
  await symlink(executable, join(bin, 'etcd'));
  await symlink(join(DEBIAN, 'etcdctl'), join(bin, 'etcdctl'));
  return bin;
}

/** Runs `sh -c script` with `args` in a network and among processes of its own (`unshare` wants root): whatever it leaves running ends with it. */
export const isolated = (script: string, args: readonly string[]): readonly string[] => [
  'unshare',
  ...['--net', '--pid', '--fork', '--mount-proc', '--kill-child'],
  ...['sh', '-c', `ip link set lo up && ${script}`, 'sh', ...args],
];
