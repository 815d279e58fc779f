/** Files of images outside of containers, for image volumes. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { withLowers } from './overlay-lowers.ts';
import type { ImageStorePort } from './port.ts';
import { unmountBelow } from './sandbox.ts';

/** Volumes hold images as containers do; the name is the same for the same place. */
const holderOf = (target: string): string => `volume-${createHash('sha256').update(target).digest('hex')}`;
const OPTIONS = 'ro,nosuid,nodev,noexec';

/** Idempotent: what an earlier try has mounted is replaced. */
export async function mountImage(images: ImageStorePort, imageId: string, target: string): Promise<void> {
  await unmountBelow(target);
  const { layers, layerRoot } = await images.hold(imageId, holderOf(target));
  const [first, ...others] = layers;
  if (first === undefined) return;
  if (others.length > 0) {
    await withLowers(layerRoot, layers, (cwd, lowerdir) =>
      runCommand('mount', ['-t', 'overlay', '-o', `lowerdir=${lowerdir},${OPTIONS}`, 'overlay', target], { cwd }),
    );
    return;
  }
  // The kernel takes two lower directories at least.
  await runCommand('mount', ['--bind', join(layerRoot, first), target]);
  await runCommand('mount', ['-o', `remount,bind,${OPTIONS}`, target]);
}

export async function unmountImage(images: ImageStorePort, target: string): Promise<void> {
  await unmountBelow(target);
  await images.release(holderOf(target));
}
