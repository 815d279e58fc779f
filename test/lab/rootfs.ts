/** The file systems of lab hosts: Debian 12 with systemd and what the guide tells to install, made once per machine from its packages. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { executable, projectRoot, run } from '../e2e/harness.ts';

const SUITE = 'bookworm';
const PACKAGES = [
  ...['systemd', 'systemd-sysv', 'dbus', 'udev', 'kmod', 'procps', 'ca-certificates', 'curl'],
  ...['runc', 'conmon', 'nftables', 'iproute2', 'socat', 'busybox-static'],
];
/** A virtual machine has no kernel but its own. */
const KERNEL_PACKAGES = ['linux-image-cloud-amd64', 'initramfs-tools'];
const BUILD_TIMEOUT_MS = 10 * 60_000;

/** A cache that outlives the tests; below the temporary directory where the machine's cache is not ours to write. */
const cache = (): string => join(process.getuid?.() === 0 ? '/var/cache' : tmpdir(), 'hyperedge-lab');

/** Makes it if it is not there (half a minute). Throws in mmdebstrap's words. */
export async function labRootfs(kind: 'container' | 'machine', say: (line: string) => void): Promise<string> {
  const target = join(cache(), kind === 'container' ? `${SUITE}-1` : `${SUITE}-vm-1`);
  if (existsSync(target)) return target;
  say(`making a ${SUITE} root file system in ${target}`);
  await mkdir(cache(), { recursive: true });
  const partial = await mkdtemp(join(cache(), '.making-'));
  const packages = kind === 'container' ? PACKAGES : [...PACKAGES, ...KERNEL_PACKAGES];
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

/** Installs hyperedge as the guide says, on a host of this name whose root file system is at `root`. */
export async function installOn(root: string, name: string): Promise<void> {
  await copyFile(executable, join(root, 'usr/local/bin/hyperedge'));
  await chmod(join(root, 'usr/local/bin/hyperedge'), 0o755);
  await copyFile(join(projectRoot, 'systemd/hyperedge.service'), join(root, 'etc/systemd/system/hyperedge.service'));
  await writeFile(join(root, 'etc/hostname'), `${name}\n`);
  // Without one it would be a first boot, which enables every service there is.
  await writeFile(join(root, 'etc/machine-id'), `${randomBytes(16).toString('hex')}\n`);
  await mkdir(join(root, 'var/lib/origin'), { recursive: true });
}

export async function succeed(file: string, args: readonly string[]): Promise<void> {
  const ran = await run(file, args);
  if (ran.code !== 0) throw new Error(`${file} ${args.join(' ')}: exit ${ran.code}\n${ran.stderr}`);
}
