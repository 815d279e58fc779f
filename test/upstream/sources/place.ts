import { access, mkdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const DEBIAN = '/usr/bin';

/** Directory for the suites' reports. */
export const REPORTS = join(ROOT, 'dist', 'upstream', 'reports');

export interface Wanted {
  /** Use Debian's etcd instead of this project's. */
  readonly baseline: boolean;
  /** Path of another executable than the last build. */
  readonly etcd: string | undefined;
}

/** Creates `scratch/bin` for upstream's suites with `etcd` (a link to the executable) and Debian's `etcdctl`. */
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

/**
 * Arguments that run `sh -c script` with `args` in its own network and PID namespace, which end its remaining
 * processes. `unshare` needs root.
 */
export const isolated = (script: string, args: readonly string[]): readonly string[] => [
  'unshare',
  ...['--net', '--pid', '--fork', '--mount-proc', '--kill-child'],
  ...['sh', '-c', `ip link set lo up && ${script}`, 'sh', ...args],
];
