/**
 * The image `hyperedge.local/host-root:programs`: a container root with the host's programs and libraries, read-only,
 * and the few files of `/etc` that programs need to start. It contains no configuration or data of the host.
 */
import { mkdir, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mount } from '../../port.ts';
import type { OciMount } from '../spec/mounts.ts';

const PROGRAMS = /^(?:bin|sbin|lib[a-z0-9]*|usr|nix)$/;
/** Files of the linker, the C library and TLS. None of them is secret. */
const FILES = [
  'alternatives',
  'group',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'nsswitch.conf',
  'passwd',
  'pki/tls/certs',
  'ssl/certs',
];
const READ_ONLY = ['bind', 'rprivate', 'ro'];
/** The program that `oc adm must-gather` runs. */
const GATHER = 'usr/bin/gather';

/** Like `prepareHostRoot`; the first entry of `visible` is the executable that gathers. */
export async function prepareHostPrograms(
  rootfs: string,
  skeleton: string,
  _podMounts: readonly Mount[],
  visible: readonly string[],
): Promise<readonly OciMount[]> {
  const mounts: OciMount[] = [
    { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', 'size=64m'] },
  ];
  const [program = ''] = visible;
  await mkdir(join(skeleton, 'usr/bin'), { recursive: true, mode: 0o755 });
  const script = `#!/bin/sh\nexec '${program.replaceAll("'", "'\\''")}' gather "$@"\n`;
  await writeFile(join(skeleton, GATHER), script, { mode: 0o755 });
  for (const entry of await readdir('/', { withFileTypes: true })) {
    if (!PROGRAMS.test(entry.name)) continue;
    const path = `/${entry.name}`;
    if (entry.isSymbolicLink()) await symlink(await readlink(path), join(rootfs, entry.name));
    else if (path === '/usr')
      mounts.push({
        destination: path,
        type: 'overlay',
        source: 'overlay',
        options: [`lowerdir=${join(skeleton, 'usr')}:${path}`, 'ro'],
      });
    else if (entry.isDirectory()) mounts.push({ destination: path, type: 'bind', source: path, options: READ_ONLY });
  }
  for (const file of FILES) {
    const path = `/etc/${file}`;
    if (await stat(path).catch(() => undefined))
      mounts.push({ destination: path, type: 'bind', source: path, options: READ_ONLY });
  }
  for (const path of visible)
    if (!path.startsWith('/usr/')) mounts.push({ destination: path, type: 'bind', source: path, options: READ_ONLY });
  return mounts;
}
