import { readFile } from 'node:fs/promises';

export interface MountPoint {
  readonly path: string;
  /** File system type, such as `tmpfs` or `ext4`. */
  readonly type: string;
  /** Options of the mount itself, such as `ro` and `nosuid`. */
  readonly options: readonly string[];
}

/**
 * Mounts of a process in the order they were made, including mounts hidden by later ones. Source:
 * proc_pid_mountinfo(5).
 */
export async function mountPoints(pid: number | 'self'): Promise<readonly MountPoint[]> {
  const found: MountPoint[] = [];
  for (const line of (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).split('\n')) {
    const fields = line.split(' ');
    const point = fields[4];
    if (point === undefined) continue;
    const path = point.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    found.push({ path, type: fields[fields.indexOf('-') + 1] ?? '', options: (fields[5] ?? '').split(',') });
  }
  return found;
}
