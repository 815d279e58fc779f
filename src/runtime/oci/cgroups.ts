/** Reads a container's cgroups: paths (v1, v2 and hybrid), resource usage, and OOM kills. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerStats } from '../port.ts';

/** Absolute directory by controller: `memory`, `cpu`, `cpuacct`, `pids` on v1, `unified` on v2. */
export type ContainerCgroups = Readonly<Record<string, string>>;

export interface CgroupMounts {
  /** Mount point by v1 controller. */
  readonly controllers: ReadonlyMap<string, string>;
  readonly unified: string | undefined;
  /** Whether v2 is the only hierarchy. */
  readonly pureV2: boolean;
}

export async function readCgroupMounts(): Promise<CgroupMounts> {
  const controllers = new Map<string, string>();
  let unified: string | undefined;
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')) {
    const fields = line.split(' ');
    const dash = fields.indexOf('-');
    const mountPoint = fields[4];
    const type = fields[dash + 1];
    if (dash < 0 || mountPoint === undefined || fields[3] !== '/') continue;
    if (type === 'cgroup2') unified ??= mountPoint;
    if (type === 'cgroup')
      for (const option of (fields[dash + 3] ?? '').split(','))
        if (!controllers.has(option)) controllers.set(option, mountPoint);
  }
  return { controllers, unified, pureV2: unified !== undefined && !controllers.has('memory') };
}

export async function cgroupsOf(pid: number, mounts: CgroupMounts): Promise<ContainerCgroups> {
  const found: Record<string, string> = {};
  for (const line of (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n')) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line);
    if (match === null) continue;
    const [, names = '', path = ''] = match;
    if (names === '' && mounts.pureV2 && mounts.unified !== undefined) found['unified'] = join(mounts.unified, path);
    for (const name of names.split(',')) {
      const mount = mounts.controllers.get(name);
      if (mount !== undefined && ['memory', 'cpu', 'cpuacct', 'pids'].includes(name)) found[name] = join(mount, path);
    }
  }
  return found;
}

/** Whether the kernel killed a process of this cgroup because its memory limit was reached. */
export async function wasOomKilled(cgroups: ContainerCgroups): Promise<boolean> {
  const unified = cgroups['unified'];
  const memory = cgroups['memory'];
  const text =
    unified !== undefined
      ? await read(unified, 'memory.events')
      : memory !== undefined
        ? await read(memory, 'memory.oom_control')
        : '';
  return (field(text, 'oom_kill') ?? 0) > 0;
}

/** Returns undefined if the cgroup no longer exists. */
export async function readStats(cgroups: ContainerCgroups, nowMs: number): Promise<ContainerStats | undefined> {
  return cgroups['unified'] === undefined ? readV1(cgroups, nowMs) : readV2(cgroups['unified'], nowMs);
}

async function readV2(directory: string, nowMs: number): Promise<ContainerStats | undefined> {
  const [cpu, current, stat, pids] = await Promise.all([
    read(directory, 'cpu.stat'),
    read(directory, 'memory.current'),
    read(directory, 'memory.stat'),
    read(directory, 'pids.current'),
  ]);
  if (current === '') return undefined;
  const usage = Number(current);
  return {
    timestampMs: nowMs,
    cpuUsageCoreNanoSeconds: (field(cpu, 'usage_usec') ?? 0) * 1000,
    memoryUsageBytes: usage,
    memoryWorkingSetBytes: Math.max(0, usage - (field(stat, 'inactive_file') ?? 0)),
    memoryRssBytes: field(stat, 'anon') ?? 0,
    pids: Number(pids),
    ...throttledOf(cpu),
  };
}

function throttledOf(cpuStat: string): Pick<ContainerStats, 'throttledNanoSeconds'> {
  const usec = field(cpuStat, 'throttled_usec');
  return usec === undefined ? {} : { throttledNanoSeconds: usec * 1000 };
}

async function readV1(cgroups: ContainerCgroups, nowMs: number): Promise<ContainerStats | undefined> {
  const { cpuacct = '', memory = '', pids: pidsDirectory = '' } = cgroups;
  const [cpu, current, stat, pids] = await Promise.all([
    read(cpuacct, 'cpuacct.usage'),
    read(memory, 'memory.usage_in_bytes'),
    read(memory, 'memory.stat'),
    read(pidsDirectory, 'pids.current'),
  ]);
  if (current === '') return undefined;
  const usage = Number(current);
  return {
    timestampMs: nowMs,
    cpuUsageCoreNanoSeconds: Number(cpu),
    memoryUsageBytes: usage,
    memoryWorkingSetBytes: Math.max(0, usage - (field(stat, 'total_inactive_file') ?? 0)),
    memoryRssBytes: field(stat, 'total_rss') ?? 0,
    pids: Number(pids),
  };
}

/**
 * Reads synchronously, because cgroupfs is not on a disk: a synchronous read takes microseconds, an asynchronous read
 * ten times as long.
 */
async function read(directory: string, file: string): Promise<string> {
  if (directory === '') return '';
  try {
    return readFileSync(join(directory, file), 'utf8').trim();
  } catch {
    return '';
  }
}

function field(text: string, name: string): number | undefined {
  const match = new RegExp(`^${name} (\\d+)$`, 'm').exec(text);
  return match === null ? undefined : Number(match[1]);
}
