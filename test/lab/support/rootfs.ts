/**
 * Root file systems of lab hosts: Debian 12 with systemd and the packages that the guide installs. Each file system is
 * created once per machine.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { executable, projectRoot, run } from '../../e2e/harness.ts';

const SUITE = 'bookworm';
/** Packages of a host with only the base system. */
const BLANK_PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'udev', 'kmod', 'procps'];
const PACKAGES = [
  ...[...BLANK_PACKAGES, 'ca-certificates', 'curl'],
  ...['runc', 'conmon', 'nftables', 'iproute2', 'socat', 'busybox-static'],
];
/** Packages of a virtual machine, which needs a kernel. */
const KERNEL_PACKAGES = ['linux-image-cloud-amd64', 'initramfs-tools'];
const LOADER_PACKAGES = ['extlinux', 'syslinux-common', 'grub2-common', 'grub-pc-bin'];
const BUILD_TIMEOUT_MS = 10 * 60_000;

/** Directory of the root file systems. It is persistent for root, and temporary for other users. */
const cache = (): string => join(process.getuid?.() === 0 ? '/var/cache' : tmpdir(), 'hyperedge-lab');

export type RootfsKind = 'container' | 'blank' | 'ssh' | 'machine' | 'bootable';

const KINDS: Readonly<Record<RootfsKind, { readonly name: string; readonly packages: readonly string[] }>> = {
  container: { name: `${SUITE}-1`, packages: PACKAGES },
  blank: { name: `${SUITE}-blank-1`, packages: BLANK_PACKAGES },
  ssh: { name: `${SUITE}-ssh-1`, packages: [...BLANK_PACKAGES, 'openssh-server', 'openssh-client'] },
  machine: { name: `${SUITE}-vm-1`, packages: [...PACKAGES, ...KERNEL_PACKAGES] },
  bootable: { name: `${SUITE}-boot-1`, packages: [...PACKAGES, ...KERNEL_PACKAGES, ...LOADER_PACKAGES] },
};

/** Creates the file system if it does not exist, which takes half a minute. Throws with the error of mmdebstrap. */
export async function labRootfs(kind: RootfsKind, say: (line: string) => void): Promise<string> {
  const { name, packages } = KINDS[kind];
  const target = join(cache(), name);
  if (existsSync(target)) return target;
  say(`making a ${SUITE} root file system in ${target}`);
  await mkdir(cache(), { recursive: true });
  const partial = await mkdtemp(join(cache(), '.making-'));
  try {
    const args = ['--quiet', '--variant=minbase', `--include=${packages.join(',')}`, SUITE, partial];
    const made = await run('mmdebstrap', args, { timeoutMs: BUILD_TIMEOUT_MS });
    if (made.code !== 0) throw new Error(`mmdebstrap: exit ${made.code}\n${made.stderr.slice(-2_000)}`);
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return target;
}

/**
 * Prepares a new host whose root file system is at `root`. The host has the executable, but hyperedge is not installed.
 */
export async function blankOn(root: string, name: string): Promise<void> {
  await copyFile(executable, join(root, 'root', basename(executable)));
  await chmod(join(root, 'root', basename(executable)), 0o755);
  await identify(root, name);
}

/** Installs hyperedge, without the command `install`, on a host whose root file system is at `root`. */
export async function installOn(root: string, name: string): Promise<void> {
  await copyFile(executable, join(root, 'usr/local/bin/hyperedge'));
  await chmod(join(root, 'usr/local/bin/hyperedge'), 0o755);
  await copyFile(join(projectRoot, 'systemd/hyperedge.service'), join(root, 'etc/systemd/system/hyperedge.service'));
  await identify(root, name);
}

async function identify(root: string, name: string): Promise<void> {
  await writeFile(join(root, 'etc/hostname'), `${name}\n`);
  // Debian's installer writes the same content.
  await writeFile(join(root, 'etc/hosts'), `127.0.0.1\tlocalhost\n127.0.1.1\t${name}\n`);
  // Without a machine ID, systemd would treat the start as a first boot, which enables every service.
  await writeFile(join(root, 'etc/machine-id'), `${randomBytes(16).toString('hex')}\n`);
  await mkdir(join(root, 'var/lib/origin'), { recursive: true });
}

export async function succeed(file: string, args: readonly string[]): Promise<void> {
  const ran = await run(file, args);
  if (ran.code !== 0) throw new Error(`${file} ${args.join(' ')}: exit ${ran.code}\n${ran.stderr}`);
}
