/**
 * Identifies processes by pid and start time (proc(5), stat field 22), so that a reused pid is not mistaken for the
 * previous process.
 */
import { readFile } from 'node:fs/promises';
import { isMissing } from './layout.ts';

/** `<pid>-<start time in clock ticks since boot>`; undefined if there is no such process. */
export async function processIdentity(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The command name may contain spaces and parentheses, so fields are counted after the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return `${pid}-${fields[19] ?? ''}`;
  } catch (error) {
    if (isMissing(error) || (error instanceof Error && 'code' in error && error.code === 'ESRCH')) return undefined;
    throw error;
  }
}

export async function isAlive(owner: string): Promise<boolean> {
  const pid = Number(owner.split('-')[0]);
  return Number.isInteger(pid) && pid > 0 && (await processIdentity(pid)) === owner;
}
