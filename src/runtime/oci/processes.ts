/** Facts about processes and the machine from proc(5). */
import { readdir, readFile } from 'node:fs/promises';
import { release } from 'node:os';

/**
 * Start time in clock ticks since boot, which together with the pid identifies a process within a boot. Undefined if
 * the process has exited.
 */
export async function processStart(pid: number): Promise<string | undefined> {
  const stat = await readStat(pid);
  return stat?.start;
}

/**
 * True while exactly this process runs. A zombie counts as exited. Throws the error of the system if it cannot be
 * determined.
 */
export async function isRunning(pid: number, start: string): Promise<boolean> {
  const stat = await readStat(pid);
  return stat !== undefined && stat.start === start && stat.state !== 'Z' && stat.state !== 'X';
}

/** True while the process runs the program `name` (first 15 bytes) and sleeps interruptibly, not on a disk. */
export async function isSleeping(pid: number, name: string): Promise<boolean> {
  const stat = await readStat(pid);
  return stat?.state === 'S' && stat.name === name;
}

/** Whether any process has this pid. Cheap: a single system call. */
export function hasProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has just exited.
  }
}

/** Kills a host program and its children. Only for programs that do not start new children by themselves. */
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
  for (const pid of doomed) killIfRunning(pid);
}

async function readStat(
  pid: number,
): Promise<
  { readonly name: string; readonly start: string; readonly state: string; readonly parent: number } | undefined
> {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  // Without descriptors or memory it is unknown whether the process runs. ESRCH: the process exits during the read.
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined;
    throw error;
  });
  if (stat === undefined) return undefined;
  // The command name may contain any character, so fields are counted after its closing parenthesis.
  const end = stat.lastIndexOf(')');
  const fields = stat.slice(end + 2).split(' ');
  const name = stat.slice(stat.indexOf('(') + 1, end);
  return { name, state: fields[0] ?? '', start: fields[19] ?? '', parent: Number(fields[1]) };
}

/** Identifier that changes with every boot. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

export async function readBootTimeMs(): Promise<number> {
  const match = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8'));
  return Number(match?.[1] ?? 0) * 1000;
}

/** mount_setattr(2) exists since Linux 5.12. */
export function hasRecursiveAttributes(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 5 || (major === 5 && minor >= 12);
}

/** Limits of this process, which its containers cannot exceed. */
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
