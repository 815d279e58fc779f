/**
 * Ensures that only one host process runs per root, by a pid file that is created atomically. The file is stale if its
 * process has exited.
 */
import { link, mkdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';

export interface InstanceLock {
  release(): Promise<void>;
}

const ATTEMPTS = 5;

/** Acquires the lock. Throws CodedError 'in-use' with the PID of the process that holds it. */
export async function takeInstanceLock(pidFile: string, root: string): Promise<InstanceLock> {
  const own = await identityOf(process.pid);
  const temporary = `${pidFile}.${process.pid}`;
  try {
    await mkdir(dirname(pidFile), { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${own}\n`, { mode: 0o644 });
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${pidFile}: ${messageOf(error)}`, { cause: error });
  }
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        await link(temporary, pidFile);
        return { release: () => release(pidFile, own) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const pid = await lockHolder(pidFile);
      if (pid !== undefined) {
        throw new CodedError('in-use', `hyperedge already runs on ${root} with pid ${pid}; stop it first`);
      }
      await unlink(pidFile).catch(ignore('the next attempt to create the file reports the obstacle'));
    }
    throw new CodedError('in-use', `another hyperedge is starting on ${root}`);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** PID of the process that holds the lock; undefined if no running process holds it. */
export async function lockHolder(pidFile: string): Promise<number | undefined> {
  const holder = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
  const pid = Number(holder.split(' ')[0]);
  return holder !== '' && (await identityOf(pid)) === holder ? pid : undefined;
}

async function release(pidFile: string, own: string): Promise<void> {
  if ((await readFile(pidFile, 'utf8').catch(() => '')).trim() === own)
    await unlink(pidFile).catch(ignore('the next start removes a stale file'));
}

/** PID and start time of a process; '' if it does not exist. The start time is necessary, because PIDs are reused. */
async function identityOf(pid: number): Promise<string> {
  if (!Number.isInteger(pid) || pid <= 0) return '';
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // A zombie has closed its files, so it counts as exited.
  return stat === '' || fields[0] === 'Z' ? '' : `${pid} ${fields[19] ?? ''}`;
}
