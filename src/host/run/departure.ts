/**
 * Departure of a host from its cluster. It departs when its Machine is deleted, or when its temporary control plane is
 * no longer needed. The host process stops all pods, leaves the cluster, and removes the host's data.
 */
import { readFile } from 'node:fs/promises';
import { counting, type Progress } from '../../base/command-line/progress.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Settings } from '../config/settings.ts';
import { writeBootstrap } from '../install/bootstrap-flags.ts';
import { backUpData } from '../install/data-backup.ts';
import { disableService, SERVICE } from '../install/layout.ts';
import { leaveCluster } from '../install/leave.ts';
import { systemctl, systemdRuns } from '../install/service.ts';
import { removeTraces } from '../install/stop.ts';
import { followRelease } from '../join/offer.ts';
import { followHandover, writeComplete } from './handover.ts';
import type { Host } from './host.ts';

export interface Departure {
  /** Whether the data is deleted instead of moved to a backup. */
  readonly purge: boolean;
  /**
   * `released`: the Machine was deleted, so the host offers itself again. `handover`: the temporary control plane is no
   * longer needed, so the host process ends.
   */
  readonly why: 'released' | 'handover';
  /** Time limit for evictions. */
  readonly drainTimeoutMs: number;
}

export interface DepartureWatch {
  readonly departs: Promise<Departure>;
  stop(): void;
}

const DRAIN_MS = 60_000;

/**
 * Watches for the departure of this host. `departs` resolves when an administrator has released the host, or when its
 * temporary control plane is no longer needed. On other hosts it never resolves.
 */
export function watchDeparture(settings: Settings, log: Log, progress: Progress): DepartureWatch {
  if (settings.offer !== undefined && settings.joined) {
    const { released, stop } = followRelease(settings, log.named('offer'));
    // The controller of the Machine has already drained the Node.
    const departs = released.then(({ purge }): Departure => ({ purge, why: 'released', drainTimeoutMs: 0 }));
    return { departs, stop };
  }
  if (settings.handover !== undefined && !settings.joined) {
    const { done, stop } = followHandover(settings, settings.handover.masters, log.named('handover'), progress);
    // The data is deleted, because the host may be unplugged next and must not keep the keys of the cluster.
    const departs = done.then((): Departure => ({ purge: true, why: 'handover', drainTimeoutMs: DRAIN_MS }));
    return { departs, stop };
  }
  return { departs: new Promise(() => {}), stop: () => {} };
}

/** Performs the departure. Throws CodedErrors; then the host still belongs to its cluster. */
export async function performDeparture(
  { purge, why, drainTimeoutMs }: Departure,
  settings: Settings,
  host: Host,
  progress: Progress,
  hurry: AbortController,
): Promise<void> {
  const bootstrap = await readFile(settings.bootstrapFile, 'utf8').catch(() => undefined);
  const leave = await leaveCluster(settings, { force: why === 'released', drainTimeoutMs }, progress);
  await host.stop({ keepPods: false, hurry });
  progress.step('the host process has stopped');
  await leave.finish().catch((error: unknown) => progress.note(messageOf(error)));
  await removeTraces(settings, progress);
  const kept = await counting(progress, 'data', 'entries', (onProgress) =>
    backUpData(settings, purge, Date.now(), onProgress),
  );
  progress.step(kept === undefined ? 'the data is removed' : `the data is kept in ${kept}`);
  if (why === 'released') {
    await writeBootstrap(settings.bootstrapFile, bootstrap);
    progress.note('this host belongs to no cluster and offers itself again at its next start');
    return;
  }
  await writeComplete(settings.root);
  progress.note('bootstrap complete: the control plane runs on the masters; this host may be unplugged');
  if (settings.root !== '/' || !(await systemdRuns())) return;
  await disableService('/');
  // The unit is stopped explicitly, because systemd would restart it after an exit.
  await systemctl('--no-block', 'stop', SERVICE);
}
