/** `hyperedge reset`: the host leaves its cluster and stops. `hyperedge uninstall`: removes the whole installation. */

import { existsSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { counting, createProgress, type Progress } from '../../base/command-line/progress.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { countText } from '../../base/text/count-text.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { removeOfferKeys } from '../join/offer-keys.ts';
import { unlinkDriverRoot } from '../node/volumes.ts';
import { cacheDirectory } from '../process/assets.ts';
import { backUpData, removeRunDirectory } from './data-backup.ts';
import { disableService, hasFiles, removeFiles } from './layout.ts';
import { leaveCluster } from './leave.ts';
import { removeMountDropIns } from './mount-drop-in.ts';
import { systemctl, systemdRuns } from './service.ts';
import { stopEverything } from './stop.ts';

export interface RemovalOptions {
  readonly root: string | undefined;
  /** Whether the data is deleted instead of moved to a backup. */
  readonly purge: boolean;
  /** Whether the data stays in place for a later installation. */
  readonly keepData: boolean;
  /** Whether to continue if the cluster cannot be reached. */
  readonly force: boolean;
  readonly drainTimeoutMs: number;
  readonly write: (text: string) => void;
  /** Whether steps are omitted from the output. */
  readonly quiet: boolean;
}

/** Removes this host from its cluster and stops it. Throws CodedErrors of one line. */
export function reset(options: RemovalOptions): Promise<number> {
  return holding(async () => {
    const { settings, progress } = await begin('reset', options);
    const leave = await leaveCluster(settings, options, progress);
    if (settings.root === '/') await disableService('/');
    await stopEverything(settings, progress);
    await leave.finish().catch((error: unknown) => progress.note(messageOf(error)));
    await removeData(settings, options, progress);
    if (settings.root === '/' && (await systemdRuns()))
      await systemctl('daemon-reload').catch(ignore('the next installation makes systemd reload'));
    options.write('this host belongs to no cluster; run hyperedge install to use it again\n');
    return 0;
  });
}

/**
 * Removes the installation without leaving the cluster; `reset` must run first for that. Throws CodedErrors of one
 * line.
 */
export function uninstall(options: RemovalOptions): Promise<number> {
  return holding(async () => {
    const { settings, progress } = await begin('uninstall', options);
    if (settings.root === '/') await disableService('/');
    await stopEverything(settings, progress);
    await removeData(settings, options, progress);
    const systemd = settings.root === '/' && (await systemdRuns());
    // The slice is stopped while its unit file exists. Otherwise it would remain active until the next boot.
    if (systemd) await systemctl('stop', 'hyperedge.slice').catch(ignore('the slice may not exist'));
    const removed = [...(await removeMountDropIns(settings.root)), ...(await removeFiles(settings.root))];
    await unlinkDriverRoot(settings.root, settings.paths.volumes);
    if (settings.root === '/' && !(await isInUse(cacheDirectory())))
      await rm(cacheDirectory(), { recursive: true, force: true });
    await removeOfferKeys(settings.root);
    if (systemd) {
      await systemctl('daemon-reload').catch(ignore('systemd drops the removed unit at its next reload'));
      await systemctl('reset-failed').catch(ignore('the unit may not have failed'));
    }
    progress.step(`removed ${countText(removed.length, 'file')}`);
    return 0;
  });
}

/** Keeps the process running until `body` ends. The timers of clients do not keep it running. */
async function holding<T>(body: () => Promise<T>): Promise<T> {
  const hold = setInterval(() => {}, 1 << 30);
  try {
    return await body();
  } finally {
    clearInterval(hold);
  }
}

async function begin(
  command: string,
  options: RemovalOptions,
): Promise<{ readonly settings: Settings; readonly progress: Progress }> {
  if (process.geteuid?.() !== 0) throw new CodedError('not-root', `${command}: needs root; run it with sudo`);
  const root = await canonicalRoot(options.root);
  const terminal = process.stdout.isTTY === true;
  const { write, quiet } = options;
  const progress = createProgress({ write, terminal, quiet, nowMs: () => performance.now() });
  if (!(await hasInstallation(root)))
    throw new CodedError(
      'not-found',
      `${command}: ${root} contains no installation; give --root as for hyperedge install or run`,
    );
  return { settings: await loadSettings({ root }), progress };
}

/** Whether an installation or a start of the host process has written files below the root. */
async function hasInstallation(root: string): Promise<boolean> {
  const { networkRecord, networkState, pidFile, nodeConfig, etcdData } = pathsBelow(root);
  return [networkRecord, networkState, pidFile, nodeConfig, etcdData].some(existsSync) || (await hasFiles(root));
}

async function removeData(settings: Settings, options: RemovalOptions, progress: Progress): Promise<void> {
  const { purge, keepData } = options;
  if (keepData) {
    await removeRunDirectory(settings);
    progress.step('the data stays in place');
    return;
  }
  const kept = await counting(progress, 'data', 'entries', (onProgress) =>
    backUpData(settings, purge, Date.now(), onProgress),
  );
  progress.step(kept === undefined ? 'the data is removed' : `the data is kept in ${kept}`);
}

/**
 * Whether another process uses a file below the cache directory. Instances share the cache, so its files may be mapped
 * by another instance.
 */
async function isInUse(directory: string): Promise<boolean> {
  const others = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  for (const pid of others) {
    const maps = await readFile(`/proc/${pid}/maps`, 'latin1').catch(() => '');
    if (maps.includes(` ${directory}/`)) return true;
  }
  return false;
}
