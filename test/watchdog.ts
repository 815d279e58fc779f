/**
 * Ends test files that do not end by themselves. Node's own time limit is for each test: a hook, a handle or a socket that is left open, or a
 * process that keeps the output of the file open, holds up the whole run.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** By then the process of a file runs, and has not ended if it is one to wait for. */
const NOTE_OUTPUT_AFTER_MS = 2_000;

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
      // It has ended since.
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

/**
 * Kills the process that runs `file`, a child of this one, with everything that it started, `limitMs` after the call; and whoever holds its
 * output open when it has ended itself. `report` is told the processes. Call what is returned when the file has ended.
 */
export function watchFile(file: string, limitMs: number, report: (killed: readonly string[]) => void): () => void {
  let output = new Set<string>();
  const own = (all: readonly Process[]): Process | undefined =>
    all.find(({ parent, command }) => parent === process.pid && command.at(-1) === file);
  const note = setTimeout(
    () => {
      const child = own(processes());
      if (child !== undefined) output = new Set(outputs(child.pid));
    },
    Math.min(NOTE_OUTPUT_AFTER_MS, limitMs / 2),
  );
  const end = setTimeout(() => {
    const all = processes();
    const child = own(all);
    const doomed = new Set(child === undefined ? [] : [child.pid, ...descendants(child.pid, all)]);
    for (const { pid } of all) if (pid !== process.pid && holds(pid, output)) doomed.add(pid);
    for (const pid of doomed)
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended since.
      }
    if (doomed.size > 0)
      report(all.filter(({ pid }) => doomed.has(pid)).map(({ pid, command }) => `${pid} ${command.at(0)}`));
  }, limitMs);
  note.unref();
  end.unref();
  return () => {
    clearTimeout(note);
    clearTimeout(end);
  };
}
