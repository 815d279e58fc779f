/** Mounts of image contents outside of containers, for image volumes. */

import { join } from 'node:path';
import { sha256Hex } from '../../../wire/digest.ts';
import { runCommand } from '../command.ts';
import type { ImageStorePort } from '../port.ts';
import { withLowerDirectories } from '../spec/overlay-lowers.ts';
import { unmountBelow } from './sandbox.ts';

/** Id with which a volume holds its image, derived from the mount point so that it is stable. */
const holderOf = (target: string): string => `volume-${sha256Hex(target)}`;
const OPTIONS = 'ro,nosuid,nodev,noexec';

/** Idempotent: replaces a mount of an earlier attempt. */
export async function mountImage(images: ImageStorePort, imageId: string, target: string): Promise<void> {
  await unmountBelow(target);
  const { layers, layerRoot } = await images.hold(imageId, holderOf(target));
  const [first, ...others] = layers;
  if (first === undefined) return;
  if (others.length > 0) {
    await withLowerDirectories(layerRoot, layers, (cwd, lowerdir) =>
      runCommand('mount', ['-t', 'overlay', '-o', `lowerdir=${lowerdir},${OPTIONS}`, 'overlay', target], { cwd }),
    );
    return;
  }
  // overlayfs needs at least two lower directories, so a single layer is bind-mounted.
  await runCommand('mount', ['--bind', join(layerRoot, first), target]);
  await runCommand('mount', ['-o', `remount,bind,${OPTIONS}`, target]);
}

export async function unmountImage(images: ImageStorePort, target: string): Promise<void> {
  await unmountBelow(target);
  await images.release(holderOf(target));
}
