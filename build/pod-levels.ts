/**
 * Removal of the cgroup levels above pods (`kubepods` and the QoS levels, for both cgroup drivers) after trial runs. A
 * regular appliance keeps these levels, because its pods outlive the host process.
 */
import { execFile } from 'node:child_process';
import { access, readdir, readFile, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { createCgroupFileSystem } from '../src/kubelet/io/cgroupfs/index.ts';

/** Paths of the levels, relative to the mount point of each hierarchy, innermost first. */
const LEVELS = [
  'kubepods/burstable',
  'kubepods/besteffort',
  'kubepods',
  'kubepods.slice/kubepods-burstable.slice',
  'kubepods.slice/kubepods-besteffort.slice',
  'kubepods.slice',
];

/** Directories of existing levels. `mountinfo` is replaced by tests. */
export async function podLevels(mountinfo = '/proc/self/mountinfo'): Promise<readonly string[]> {
  const hierarchies = await createCgroupFileSystem({ mountinfo }).hierarchies();
  const candidates = hierarchies.flatMap(({ mount }) => LEVELS.map((level) => join(mount, level)));
  const isThere = await Promise.all(candidates.map(exists));
  return candidates.filter((_, index) => isThere[index]);
}

/** Directories of levels that did not exist `before` and that have no pods and no processes, innermost first. */
export async function emptyLevels(before: readonly string[], mountinfo?: string): Promise<readonly string[]> {
  const candidates = (await podLevels(mountinfo)).filter((level) => !before.includes(level));
  const areEmpty = await Promise.all(candidates.map(isEmpty));
  return candidates.filter((_, index) => areEmpty[index]);
}

/** Removes empty levels that did not exist `before`. */
export async function removeNewPodLevels(before: readonly string[], mountinfo?: string): Promise<void> {
  const slices = new Set<string>();
  for (const level of await podLevels(mountinfo)) {
    if (before.includes(level) || !(await isEmpty(level))) continue;
    await rmdir(level).catch(ignoreIfUsed);
    if (level.endsWith('.slice')) slices.add(basename(level));
  }
  // systemd keeps the unit of a slice after its directory was removed, so the units are stopped.
  if (slices.size > 0) await promisify(execFile)('systemctl', ['stop', ...slices]).catch(() => undefined);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function isEmpty(level: string): Promise<boolean> {
  const entries = await readdir(level, { withFileTypes: true }).catch(() => []);
  const processes = await readFile(join(level, 'cgroup.procs'), 'utf8').catch(() => '');
  return processes.trim() === '' && !entries.some((entry) => entry.isDirectory());
}

/** Ignores errors that occur if another process has added a pod to the level or removed the level in the meantime. */
function ignoreIfUsed(error: NodeJS.ErrnoException): void {
  if (!['EBUSY', 'ENOTEMPTY', 'ENOENT'].includes(error.code ?? '')) throw error;
}
