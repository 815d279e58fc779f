/** CPU time of the appliance's processes, which does not depend on other processes. */
import { readdir, readFile } from 'node:fs/promises';

/** Milliseconds of a clock tick: USER_HZ is 100 on every Linux port. */
const TICK_MS = 10;
const COMMANDS = ['run', 'etcd', 'api', 'controllers', 'hollow'];

/** CPU milliseconds (user and system) of each of the appliance's processes below `root`, by subcommand. */
export async function cpuByProcess(root: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const [file = '', command = '', ...rest] = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split(
      '\0',
    );
    if (!file.includes('hyperedge') || !COMMANDS.includes(command) || !rest.join(' ').includes(root)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    found.set(command, (found.get(command) ?? 0) + (Number(fields[11]) + Number(fields[12])) * TICK_MS);
  }
  return found;
}
