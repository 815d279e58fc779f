/** Operations on volumes in a separate process, because a volume's file system may hang. */
import { join, normalize } from 'node:path';
import { runVolumeCall } from '../../kubelet/io/files/index.ts';
import { createMounter } from '../../kubelet/io/host-facts/index.ts';
import { resolvedLinks } from '../config/data-links.ts';
import { selfCommand } from '../process/assets.ts';

/**
 * Splits paths into two groups. `isOwn`: whether the host process accesses a path itself, that is, in its own
 * directories but outside of volumes that are mounted for pods. `helper`: command that accesses the other paths.
 */
export async function foreignPaths(root: string, volumeDirectory: string) {
  const named = ['etc/origin', 'var/lib/origin'].map((directory) => join(root, directory));
  const own = [...named, ...(await Promise.all(named.map(resolvedLinks)))];
  const isBelow = (path: string, directory: string): boolean => path.startsWith(`${directory}/`);
  return {
    helper: [...selfCommand(), 'volume-call', '--'],
    isOwn: (path: string): boolean => {
      const plain = normalize(path);
      return own.some((directory) => isBelow(plain, directory)) && !isBelow(plain, volumeDirectory);
    },
  };
}

export const runVolumeCalls = (args: readonly string[]): Promise<void> => runVolumeCall(args, createMounter());
