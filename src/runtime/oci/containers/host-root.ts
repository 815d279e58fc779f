/**
 * The image `hyperedge.local/host-root`: a container root with the host's own programs and libraries, read-only.
 * Control-plane static pods run from it, so they need no image on disk. Mount points that a pod needs below a host
 * directory and that do not exist there are created in a skeleton, which a read-only overlay adds to that directory;
 * the host's files are never written. File systems mounted below a visible directory (for example volumes of other
 * pods) are not visible, unless they contain programs or lead to one of the pod's own mounts.
 */
import { lstat, mkdir, readdir, readlink, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { HOST_ROOT_ID, HOST_ROOT_IMAGE } from '../../../api/podspec/host-root-image.ts';
import type { ImageStatus, Mount } from '../../port.ts';
import { mountPoints } from '../mount-table.ts';
import { normalisePath, type OciMount } from '../spec/mounts.ts';

export const HOST_ROOT_STATUS: ImageStatus = {
  id: HOST_ROOT_ID,
  repoTags: [`${HOST_ROOT_IMAGE}:latest`],
  repoDigests: [],
  sizeBytes: 0,
};

/**
 * Visible directories: programs, libraries, configuration and state. Home directories, devices and removable media are
 * not visible.
 */
const SHOWN = /^(?:bin|sbin|lib[a-z0-9]*|usr|etc|opt|var|srv|nix)$/;
/** Directories below which a separate file system may contain programs. */
const PROGRAMS = /^\/(?:bin|sbin|lib[a-z0-9]*|usr|etc|opt|nix)\//;
/**
 * Options of a bind mount without `rec`: mounts below its source are not included, so none of them is writable in the
 * container.
 */
const READ_ONLY = ['bind', 'rprivate', 'ro'];

/**
 * Fills `rootfs`, an empty directory, with mount points and links, and returns the mounts to create in it. `skeleton`
 * is a directory for the overlays. `visible` are host files or directories to show at their own paths (the executable).
 */
export async function prepareHostRoot(
  rootfs: string,
  skeleton: string,
  podMounts: readonly Mount[],
  visible: readonly string[],
): Promise<readonly OciMount[]> {
  const directories: string[] = [];
  for (const entry of await readdir('/', { withFileTypes: true })) {
    if (!SHOWN.test(entry.name)) continue;
    if (entry.isSymbolicLink()) await symlink(await readlink(`/${entry.name}`), join(rootfs, entry.name));
    else if (entry.isDirectory()) directories.push(`/${entry.name}`);
  }
  const isShown = (path: string): boolean => directories.some((directory) => isWithin(path, directory));
  const wanted = await Promise.all(
    podMounts.map(async (mount) => ({ mount, ...(await onHost(normalisePath(mount.containerPath))) })),
  );
  const shown = [...directories];
  for (const { path, type } of await mountPoints('self')) {
    if (type === 'autofs' || shown.includes(path) || !isShown(path)) continue;
    const leads = wanted.some((each) => each.path !== path && isWithin(each.path, path));
    if (leads || (PROGRAMS.test(path) && !wanted.some((each) => isWithin(path, each.path)))) shown.push(path);
  }
  const covered = new Set<string>();
  for (const { mount, path, missing } of wanted) {
    const holder = missing ? innermost(shown, path) : undefined;
    if (holder === undefined) continue;
    covered.add(holder);
    await makeMountPoint(join(skeleton, path), (await stat(mount.hostPath)).isDirectory());
  }
  const mounts: OciMount[] = [
    { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', 'size=64m'] },
    { destination: '/run', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=755', 'size=16m'] },
  ];
  for (const path of shown) {
    const layers = `lowerdir=${join(skeleton, path)}:${path}`;
    mounts.push(
      covered.has(path)
        ? { destination: path, type: 'overlay', source: 'overlay', options: [layers, 'ro'] }
        : { destination: path, type: 'bind', source: path, options: READ_ONLY },
    );
  }
  for (const path of visible) {
    const real = await realpath(path);
    for (const each of new Set([path, real]))
      if (!isShown(each)) mounts.push({ destination: each, type: 'bind', source: real, options: READ_ONLY });
  }
  return mounts;
}

const isWithin = (path: string, directory: string): boolean => path === directory || path.startsWith(`${directory}/`);

const innermost = (directories: readonly string[], path: string): string | undefined =>
  directories.filter((each) => isWithin(path, each)).toSorted((a, b) => b.length - a.length)[0];

/** Resolves the links of `path` on the host, and whether its last component is missing. */
async function onHost(path: string): Promise<{ readonly path: string; readonly missing: boolean }> {
  let current = '/';
  const components = path.slice(1).split('/');
  for (const [index, component] of components.entries()) {
    const next = join(current, component);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) return { path: join(current, ...components.slice(index)), missing: true };
    current = found.isSymbolicLink() ? await realpath(next).catch(() => next) : next;
  }
  return { path: current, missing: false };
}

async function makeMountPoint(path: string, isDirectory: boolean): Promise<void> {
  await mkdir(isDirectory ? path : dirname(path), { recursive: true, mode: 0o755 });
  if (!isDirectory) await writeFile(path, '', { flag: 'a' });
}
