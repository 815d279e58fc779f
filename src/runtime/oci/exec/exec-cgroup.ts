/**
 * A cgroup for each exec below the cgroup of its container. Every process that the exec starts stays in it, whatever
 * session or parent the process chooses, so that all of them can be killed. The cgroup also charges the exec's monitor
 * to the container.
 */

import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ignore } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ContainerCgroups } from '../cgroups.ts';
import { killIfRunning } from '../processes.ts';

const PREFIX = 'exec-';
/**
 * v1 controllers in order of preference. `pids` can forbid forks, so that a fork bomb cannot outrun its termination.
 */
const TRACKING = ['pids', 'memory', 'cpuacct'] as const;
const KILL_TIMEOUT_MS = 2_000;
const REMOVE_TIMEOUT_MS = 1_000;
const POLL_MS = 10;
const MAX_ADOPTIONS = 100;

export interface ExecCgroup {
  /** Options of `runc exec` that start the process in this cgroup. */
  readonly options: readonly string[];
  /**
   * Moves a host process that serves the exec into this cgroup, which charges its memory and CPU time to the container.
   */
  charge(pid: number): Promise<void>;
  /** Kills every process in the cgroup. Resolves when they have ended, or after two seconds. */
  kill(): Promise<void>;
  /** Removes the cgroup. Remaining processes continue in the container's own cgroup. */
  dissolve(): Promise<void>;
}

/**
 * Cgroup hierarchy in which execs of a container are tracked: v2, or one of v1. Undefined if the container has no
 * cgroup.
 */
function trackingOf(cgroups: ContainerCgroups): { readonly directory: string; readonly prefix: string } | undefined {
  const { unified } = cgroups;
  if (unified !== undefined) return { directory: unified, prefix: '' };
  for (const controller of TRACKING) {
    const directory = cgroups[controller];
    if (directory !== undefined) return { directory, prefix: `${controller}:` };
  }
  return undefined;
}

export async function createExecCgroup(cgroups: ContainerCgroups, name: string, clock: Clock): Promise<ExecCgroup> {
  const tracking = trackingOf(cgroups);
  if (tracking === undefined) throw new Error('the container has no cgroup in which an exec could be tracked');
  const own = `${PREFIX}${name}`;
  const directory = join(tracking.directory, own);
  await mkdir(directory, { mode: 0o755 });
  return {
    options: [`--cgroup=${tracking.prefix}${own}`],
    async charge(pid) {
      const others = Object.values(cgroups).filter((other) => other !== tracking.directory);
      await Promise.all([directory, ...others].map((each) => put(each, 'cgroup.procs', String(pid))));
    },
    kill: () => killAll(directory, clock),
    async dissolve() {
      for (let round = 0; round < MAX_ADOPTIONS; round += 1) {
        const pids = await processesIn(directory);
        if (pids.length === 0) break;
        for (const pid of pids) await put(tracking.directory, 'cgroup.procs', pid);
      }
      await remove(directory, clock);
    },
  };
}

/**
 * Removes exec cgroups and their processes from a container's cgroup, after a restart of the host process or after the
 * end of the container.
 */
export async function removeExecCgroups(cgroups: ContainerCgroups, clock: Clock): Promise<void> {
  const tracking = trackingOf(cgroups);
  if (tracking === undefined) return;
  const names = (await readdir(tracking.directory).catch(() => [])).filter((name) => name.startsWith(PREFIX));
  await Promise.all(
    names.map(async (name) => {
      const directory = join(tracking.directory, name);
      await killAll(directory, clock);
      await remove(directory, clock);
    }),
  );
}

/** Child of the pod's cgroup on v2, where a cgroup with children cannot contain processes. */
const SERVING = 'serving';

/**
 * Charges a host process that serves clients of a pod to the pod's cgroup. `cgroups` belong to a container of the pod.
 */
export async function chargeToPod(cgroups: ContainerCgroups, pid: number): Promise<void> {
  await Promise.all(
    Object.entries(cgroups).map(async ([controller, directory]) => {
      const pod = dirname(directory);
      if (controller !== 'unified') return put(pod, 'cgroup.procs', String(pid));
      const serving = join(pod, SERVING);
      await mkdir(serving, { recursive: true, mode: 0o755 }).catch(
        ignore('the write below fails, and is ignored, if the cgroup could not be created'),
      );
      await put(serving, 'cgroup.procs', String(pid));
    }),
  );
}

async function killAll(directory: string, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + KILL_TIMEOUT_MS;
  await Promise.all([put(directory, 'cgroup.kill', '1'), put(directory, 'pids.max', '0')]);
  for (;;) {
    const pids = await processesIn(directory);
    if (pids.length === 0 || clock.monotonicMs() > deadlineMs) return;
    for (const pid of pids) killIfRunning(Number(pid));
    await pause(clock);
  }
}

/** Pids in the cgroup and its descendants, which a privileged container may have created. */
async function processesIn(directory: string): Promise<readonly string[]> {
  const [own, entries] = await Promise.all([
    readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => ''),
    readdir(directory, { withFileTypes: true }).catch(() => []),
  ]);
  const below = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map((entry) => processesIn(join(directory, entry.name))),
  );
  return [...own.split('\n').filter((line) => line !== ''), ...below.flat()];
}

/**
 * Removes cgroups from the innermost outwards. A killed process keeps its cgroup busy for a moment; a cgroup that stays
 * busy remains until the container ends.
 */
async function remove(directory: string, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + REMOVE_TIMEOUT_MS;
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await remove(join(directory, entry.name), clock);
  while (!(await removed(directory)) && clock.monotonicMs() < deadlineMs) await pause(clock);
}

const removed = (directory: string): Promise<boolean> =>
  rmdir(directory).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );

const pause = (clock: Clock): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimer(POLL_MS, resolve);
  });

/** Errors are ignored: the controller may be absent, or the process may have exited. */
const put = (directory: string, file: string, text: string): Promise<void> =>
  writeFile(join(directory, file), text, { flag: 'r+' }).catch(
    ignore('the controller may be absent, or the process may have exited'),
  );
