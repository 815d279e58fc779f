/** Facts about processes and the machine from proc(5). */
import { readdir, readFile } from 'node:fs/promises';
import { release } from 'node:os';

/**
 * Start time in clock ticks since boot: with it a pid names one process for ever (within a boot). Undefined when it is
 * gone.
 */
export async function processStart(pid: number): Promise<string | undefined> {
  const stat = await readStat(pid);
  return stat?.start;
}

/** True while that very process runs; a zombie counts as gone. */
export async function isRunning(pid: number, start: string): Promise<boolean> {
  const stat = await readStat(pid);
  return stat !== undefined && stat.start === start && stat.state !== 'Z' && stat.state !== 'X';
}

/**
 * True while that process is the program `name` (its first 15 bytes) and waits in the kernel for something other than a
 * disk.
 */
export async function isAsleep(pid: number, name: string): Promise<boolean> {
  const stat = await readStat(pid);
  return stat?.state === 'S' && stat.name === name;
}

/** Whether any process has this pid: a single call into the kernel, so it may be asked often. */
export function hasProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

/** Kills a program of the host with the children that it has. For programs that start no others of their own accord. */
export async function killTree(root: number): Promise<void> {
  if (root <= 1) return;
  const children = new Map<number, number[]>();
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  await Promise.all(
    pids.map(async (pid) => {
      const stat = await readStat(pid);
      if (stat !== undefined) children.set(stat.parent, [...(children.get(stat.parent) ?? []), pid]);
    }),
  );
  const doomed = [root];
  for (const pid of doomed) doomed.push(...(children.get(pid) ?? []));
  for (const pid of doomed) killQuietly(pid);
}

async function readStat(
  pid: number,
): Promise<
  { readonly name: string; readonly start: string; readonly state: string; readonly parent: number } | undefined
> {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  let stat: string;
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The command name may hold anything; fields are counted after its closing parenthesis.
  const end = stat.lastIndexOf(')');
  const fields = stat.slice(end + 2).split(' ');
  const name = stat.slice(stat.indexOf('(') + 1, end);
  return { name, state: fields[0] ?? '', start: fields[19] ?? '', parent: Number(fields[1]) };
}

/** Changes with every boot. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** Wall-clock time of the last boot, in milliseconds. */
export async function readBootTimeMs(): Promise<number> {
  const match = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8'));
  return Number(match?.[1] ?? 0) * 1000;
}

/** mount_setattr(2) came with Linux 5.12. */
export function hasRecursiveAttributes(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 5 || (major === 5 && minor >= 12);
}

/** What this process may do, which bounds what its containers may be given. */
export interface OwnLimits {
  /** Bit set of capabilities(7) in the bounding set. */
  readonly capabilities: bigint;
  readonly oomScoreAdj: number;
  readonly openFilesHard: number;
}

export async function readOwnLimits(): Promise<OwnLimits> {
  const status = await readFile('/proc/self/status', 'utf8');
  const limits = await readFile('/proc/self/limits', 'utf8');
  const bounding = /^CapBnd:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  const files = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1] ?? '1024';
  return {
    capabilities: BigInt(`0x${bounding}`),
    oomScoreAdj: Number((await readFile('/proc/self/oom_score_adj', 'utf8')).trim()),
    openFilesHard: files === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(files),
  };
}
