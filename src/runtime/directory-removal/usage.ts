import { execFile } from 'node:child_process';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { UsageOptions } from './port.ts';

const OUTPUT_BYTES = 16 << 20;
/** Paths per call of du, because command lines are limited. */
const MOST_PATHS = 500;
const BYTES_PER_UNIT = { bytes: 1024, inodes: 1 } as const;

/**
 * See `Trees.usage`. du(1) walks relative to open directories, so depth does not matter. It runs with low priority, and
 * a tree of a million files puts no load on this process.
 */
export async function treeUsage(paths: readonly string[], options: UsageOptions): Promise<ReadonlyMap<string, number>> {
  const used = new Map<string, number>();
  for (let at = 0; at < paths.length; at += MOST_PATHS)
    for (const [path, amount] of await measure(paths.slice(at, at + MOST_PATHS), options)) used.set(path, amount);
  return used;
}

async function measure(paths: readonly string[], { unit, timeoutMs }: UsageOptions): Promise<[string, number][]> {
  const how = unit === 'bytes' ? ['-k'] : ['--inodes'];
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(
      'nice',
      ['-n', '19', 'du', '-s', '-x', '-0', ...how, '--', ...paths],
      { maxBuffer: OUTPUT_BYTES },
      (error, stdout, stderr) => {
        clearTimeout(deadline);
        // du exits with 1 if files disappeared while it counted; its results for the other files are valid.
        if (error === null || error.code === 1) resolve(stdout);
        else reject(new CodedError('usage', `du: ${stderr.trim() === '' ? messageOf(error) : stderr.trim()}`));
      },
    );
    // A child in uninterruptible sleep survives SIGKILL, so the deadline does not wait for its exit.
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.unref();
      reject(new CodedError('timeout', `${paths[0]}: not measured within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  return output
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => {
      const tab = line.indexOf('\t');
      return [line.slice(tab + 1), Number(line.slice(0, tab)) * BYTES_PER_UNIT[unit]];
    });
}
