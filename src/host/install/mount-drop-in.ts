/**
 * Orders the service after the mounts of its data directories (RequiresMountsFor= in systemd.unit(5)). The unit lists
 * the default directories. A drop-in lists the other directories, to which links or settings point.
 */

import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { readSchedule } from '../../store/config/snapshot-schedule.ts';
import { resolvedLinks } from '../config/data-links.ts';
import type { Settings } from '../config/settings.ts';
import { GUARD_SERVICE, SERVICE } from './layout.ts';
import { systemctl, systemdRuns } from './service.ts';

const NAME = '20-data.conf';
const FILES = [SERVICE, GUARD_SERVICE].map((unit) => `etc/systemd/system/${unit}.d/${NAME}`);

/** Writes or removes the drop-ins. Resolves with true if one has changed; then systemd must be reloaded. */
export async function placeMountDropIns(settings: Settings): Promise<boolean> {
  const { root } = settings;
  const named = await namedByUnit(root);
  const places = await Promise.all((await dataDirectories(settings)).map(resolvedLinks));
  const extra = [...new Set(places)].filter((path) => !named.some((each) => isWithin(each, path))).sort();
  const text =
    extra.length === 0
      ? undefined
      : `# Written by hyperedge: its data are here.\n[Unit]\nRequiresMountsFor=${extra.map(quoted).join(' ')}\n`;
  let changed = false;
  for (const file of FILES) {
    const path = join(root, file);
    const present = await readFile(path, 'utf8').catch(() => undefined);
    if (present === text) continue;
    changed = true;
    if (text === undefined) await removeFile(path);
    else {
      await mkdir(dirname(path), { recursive: true, mode: 0o755 });
      await writeFile(`${path}.new`, text, { mode: 0o644, flush: true });
      await rename(`${path}.new`, path);
    }
  }
  return changed;
}

/** Updates the drop-ins when an installed host starts. They take effect at the next boot. */
export async function keepMountOrder(settings: Settings, log: Log): Promise<void> {
  const isInstalled = settings.root === '/' && existsSync(`/etc/systemd/system/${SERVICE}`);
  if (!isInstalled || !(await systemdRuns())) return;
  try {
    if (await placeMountDropIns(settings)) await systemctl('daemon-reload');
  } catch (error) {
    log.warn('unit not ordered after the mounts of its data directories', { error: messageOf(error) });
  }
}

/** Removes the drop-ins and resolves with their paths. */
export async function removeMountDropIns(root: string): Promise<string[]> {
  const removed: string[] = [];
  for (const file of FILES) {
    const path = join(root, file);
    if ((await readFile(path, 'utf8').catch(() => undefined)) === undefined) continue;
    await removeFile(path);
    removed.push(path);
  }
  return removed;
}

async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
  // rmdir(2) keeps the directory if an administrator has added drop-ins to it.
  await rmdir(dirname(path)).catch(ignore('drop-ins of an administrator are kept'));
}

/**
 * Directories that the installed unit lists. It may be the unit of an earlier release, because an update replaces only
 * the executable.
 */
async function namedByUnit(root: string): Promise<string[]> {
  const unit = await readFile(join(root, `etc/systemd/system/${SERVICE}`), 'utf8').catch(() => '');
  const [, line = ''] = /^RequiresMountsFor=(.*)$/m.exec(unit) ?? [];
  return line.split(' ').filter((path) => path !== '');
}

async function dataDirectories({ paths }: Settings): Promise<string[]> {
  const schedule = await readSchedule(paths.snapshotSchedule, paths.snapshots).catch(() => undefined);
  const files = [paths.etcdConfig, paths.masterConfig, paths.nodeConfig, paths.updateRecord].map((path) =>
    dirname(path),
  );
  const { etcdData, snapshots, staticPodResources, volumes, localVolumes, images, containers, catalogs, releases } =
    paths;
  const data = [etcdData, snapshots, staticPodResources, volumes, localVolumes, images, containers, catalogs, releases];
  const logs = [paths.podLogs, paths.containerLogs, paths.masterLogs];
  return [...files, ...data, ...logs, paths.executables, ...(schedule === undefined ? [] : [schedule.directory])];
}

const isWithin = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);

/** Quotes a path for a unit file. Source: systemd.syntax(7), systemd.unit(5). */
const quoted = (path: string): string => {
  const escaped = path.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return /[\s"'\\]/.test(path) ? `"${escaped}"` : escaped;
};
