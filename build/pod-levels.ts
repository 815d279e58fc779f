/**
 * The cgroup levels above pods (`kubepods` and its QoS levels, in either driver's names), so that a trial run leaves none that it made. An appliance
 * keeps them: its pods outlive the host process.
 */
import { execFile } from 'node:child_process';
import { access, readdir, readFile, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { createCgroupFileSystem } from '../src/io/cgroupfs/index.ts';

/** Below each hierarchy's mount, the innermost first. */
const LEVELS = [
  'kubepods/burstable',
  'kubepods/besteffort',
  'kubepods',
  'kubepods.slice/kubepods-burstable.slice',
  'kubepods.slice/kubepods-besteffort.slice',
  'kubepods.slice',
];

/** Directories of levels that are there. `mountinfo` is this process's own unless a test says otherwise. */
export async function podLevels(mountinfo = '/proc/self/mountinfo'): Promise<readonly string[]> {
  const hierarchies = await createCgroupFileSystem({ mountinfo }).hierarchies();
  const candidates = hierarchies.flatMap(({ mount }) => LEVELS.map((level) => join(mount, level)));
  const isThere = await Promise.all(candidates.map(exists));
  return candidates.filter((_, index) => isThere[index]);
}

/** Removes the levels that were not there `before` and have nothing in them: neither pods nor processes. */
export async function removeNewPodLevels(before: readonly string[], mountinfo?: string): Promise<void> {
  const slices = new Set<string>();
  for (const level of await podLevels(mountinfo)) {
    if (before.includes(level) || !(await isEmpty(level))) continue;
    await rmdir(level).catch(ignoreIfUsed);
    if (level.endsWith('.slice')) slices.add(basename(level));
  }
  // A slice without its directory is still a unit to systemd.
  if (slices.size > 0) await promisify(execFile)('systemctl', ['stop', ...slices]).catch(() => undefined);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function isEmpty(level: string): Promise<boolean> {
  const entries = await readdir(level, { withFileTypes: true });
  const processes = await readFile(join(level, 'cgroup.procs'), 'utf8').catch(() => '');
  return processes.trim() === '' && !entries.some((entry) => entry.isDirectory());
}

/** Somebody's pod may have come in between, or another have removed it: the kernel refuses the first. */
function ignoreIfUsed(error: NodeJS.ErrnoException): void {
  if (!['EBUSY', 'ENOTEMPTY', 'ENOENT'].includes(error.code ?? '')) throw error;
}
