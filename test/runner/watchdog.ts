/**
 * Ends test files that do not end by themselves. The time limits of test runners apply to tests: an open handle or
 * socket, or a process that keeps the output of its test file open, would block the whole run.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Interval at which processes are read. */
export const WATCH_MS = 2_000;

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: readonly string[];
}

function processes(): Process[] {
  const found: Process[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const status = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [, parent] = status.slice(status.lastIndexOf(')') + 2).split(' ');
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
      found.push({ pid: Number(name), parent: Number(parent), command });
    } catch {
      // The process has exited since.
    }
  }
  return found;
}

function descendants(of: number, all: readonly Process[]): number[] {
  return all.filter(({ parent }) => parent === of).flatMap(({ pid }) => [pid, ...descendants(pid, all)]);
}

/** The sockets that are output and errors of a process. */
function outputs(pid: number): string[] {
  return [1, 2].flatMap((descriptor) => link(pid, String(descriptor)));
}

function link(pid: number, descriptor: string): string[] {
  try {
    return [readlinkSync(`/proc/${pid}/fd/${descriptor}`)].filter((each) => /^(socket|pipe):/.test(each));
  } catch {
    return [];
  }
}

function holds(pid: number, wanted: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((each) => link(pid, each).some((target) => wanted.has(target)));
  } catch {
    return false;
  }
}

interface Watched {
  readonly pid: number;
  readonly output: ReadonlySet<string>;
  readonly startedMs: number;
}

/**
 * Watches the processes below this one that run one of `files`, which is their last argument. Kills such a process with
 * everything that it started, and every process that keeps its output open, `limitMs` after it was first seen.
 * `report` receives the file and the killed processes. The time before `isStarted` does not count. Returns a function
 * that ends the watch.
 */
export function watchFiles(
  files: ReadonlySet<string>,
  limitMs: number,
  report: (file: string, killed: readonly string[]) => void,
  checkMs = WATCH_MS,
  isStarted: (file: string) => boolean = () => true,
): () => void {
  const watched = new Map<string, Watched>();
  const own = new Set(outputs(process.pid));
  const timer = setInterval(() => {
    const all = processes();
    for (const pid of descendants(process.pid, all)) {
      const file = all.find((each) => each.pid === pid)?.command.at(-1) ?? '';
      if (!files.has(file) || watched.get(file)?.pid === pid || !isStarted(file)) continue;
      // The file may write its errors to the same output as this process.
      const output = new Set(outputs(pid)).difference(own);
      watched.set(file, { pid, output, startedMs: performance.now() });
    }
    for (const [file, each] of watched) {
      if (performance.now() - each.startedMs < limitMs) continue;
      const killed = killFile(each, all);
      if (killed.length > 0) report(file, killed);
      watched.delete(file);
    }
  }, checkMs);
  timer.unref();
  return () => clearInterval(timer);
}

function killFile({ pid, output }: Watched, all: readonly Process[]): string[] {
  const doomed = new Set(all.some((each) => each.pid === pid) ? [pid, ...descendants(pid, all)] : []);
  for (const each of all) if (each.pid !== process.pid && holds(each.pid, output)) doomed.add(each.pid);
  // A runner between this process and the test file reads that output and continues with the next file.
  for (let parent = parentOf(pid, all); parent !== undefined; parent = parentOf(parent, all)) doomed.delete(parent);
  for (const each of doomed)
    try {
      process.kill(each, 'SIGKILL');
    } catch {
      // The process has exited since.
    }
  return all.filter((each) => doomed.has(each.pid)).map((each) => `${each.pid} ${each.command.at(0)}`);
}

function parentOf(pid: number, all: readonly Process[]): number | undefined {
  return all.find((each) => each.pid === pid)?.parent;
}
