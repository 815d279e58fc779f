/**
 * The image `hyperedge.local/host-root`: the host's own programs and libraries, read-only, as a container's root. Control-plane static
 * pods run from it with no image on the disk. Mount points that the pod needs below a host directory and that do not exist there are
 * made in a skeleton that a read-only overlay lays over that directory; the host is never written to.
 */
import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, readlink, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ImageStatus, Mount } from '../../core/podplan/port.ts';
import { normalisePath, type OciMount } from './mounts.ts';

export const HOST_ROOT_IMAGE = 'hyperedge.local/host-root';

/** A fixed id in the form of a digest; nothing of that digest is ever stored. */
export const HOST_ROOT_ID = `sha256:${createHash('sha256').update(HOST_ROOT_IMAGE).digest('hex')}`;

export const HOST_ROOT_STATUS: ImageStatus = {
  id: HOST_ROOT_ID,
  repoTags: [`${HOST_ROOT_IMAGE}:latest`],
  repoDigests: [],
  sizeBytes: 0,
};

export const isHostRoot = (image: string): boolean =>
  image === HOST_ROOT_ID || image === HOST_ROOT_IMAGE || image.startsWith(`${HOST_ROOT_IMAGE}:`);

/** Programs, libraries, configuration and state; homes, devices and what is mounted for people stay out. */
const SHOWN = /^(?:bin|sbin|lib[a-z0-9]*|usr|etc|opt|var|srv|nix)$/;

/**
 * Fills `rootfs` (an empty directory) with mount points and links, and returns the mounts to make in it. `skeleton` is a directory for the
 * overlays. `visible` are host files or directories to show at their own paths (the executable).
 */
export async function prepareHostRoot(
  rootfs: string,
  skeleton: string,
  podMounts: readonly Mount[],
  visible: readonly string[],
): Promise<readonly OciMount[]> {
  const shown: string[] = [];
  for (const entry of await readdir('/', { withFileTypes: true })) {
    if (!SHOWN.test(entry.name)) continue;
    if (entry.isSymbolicLink()) await symlink(await readlink(`/${entry.name}`), join(rootfs, entry.name));
    else if (entry.isDirectory()) shown.push(entry.name);
  }
  const covered = new Set<string>();
  for (const mount of podMounts) {
    const missing = await missingBelow(normalisePath(mount.containerPath), shown);
    if (missing === undefined) continue;
    covered.add(missing.split('/')[1] ?? '');
    await makeMountPoint(join(skeleton, missing), (await stat(mount.hostPath)).isDirectory());
  }
  const mounts: OciMount[] = [
    { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', 'size=64m'] },
    { destination: '/run', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=755', 'size=16m'] },
  ];
  for (const name of shown) {
    mounts.push(
      covered.has(name)
        ? {
            destination: `/${name}`,
            type: 'overlay',
            source: 'overlay',
            options: [`lowerdir=${join(skeleton, name)}:/${name}`, 'ro'],
          }
        : { destination: `/${name}`, type: 'bind', source: `/${name}`, options: ['rbind', 'rprivate', 'ro'] },
    );
  }
  for (const path of visible) {
    const real = await realpath(path);
    for (const each of new Set([path, real])) {
      if (!shown.includes(each.split('/')[1] ?? '')) {
        mounts.push({ destination: each, type: 'bind', source: real, options: ['rbind', 'rprivate', 'ro'] });
      }
    }
  }
  return mounts;
}

/** The real path that would have to be made for `path`, when it lies in a shown directory and does not exist there. */
async function missingBelow(path: string, shown: readonly string[]): Promise<string | undefined> {
  let current = '/';
  const components = path.slice(1).split('/');
  for (const [index, component] of components.entries()) {
    const next = join(current, component);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) {
      const missing = join(current, ...components.slice(index));
      return shown.includes(missing.split('/')[1] ?? '') ? missing : undefined;
    }
    current = found.isSymbolicLink() ? await realpath(next).catch(() => next) : next;
  }
  return undefined;
}

async function makeMountPoint(path: string, isDirectory: boolean): Promise<void> {
  await mkdir(isDirectory ? path : dirname(path), { recursive: true, mode: 0o755 });
  if (!isDirectory) await writeFile(path, '', { flag: 'a' });
}
