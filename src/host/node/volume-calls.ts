/** Operations on volumes whose file system may hang, in a separate process. */
import { join, normalize } from 'node:path';
import { runVolumeCall } from '../../kubelet/io/files/index.ts';
import { createMounter } from '../../kubelet/io/host-facts/index.ts';
import { resolvedLinks } from '../config/data-links.ts';
import { selfCommand } from '../process/assets.ts';

/** Paths that the host process accesses itself: its own directories, without the volumes that are mounted for pods. */
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
