/** The file system of lab hosts: Debian 12 with systemd and what the guide tells to install, made once per machine from its packages. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../e2e/harness.ts';

const SUITE = 'bookworm';
const PACKAGES = [
  ...['systemd', 'systemd-sysv', 'dbus', 'udev', 'kmod', 'procps', 'ca-certificates', 'curl', 'faketime'],
  ...['runc', 'conmon', 'nftables', 'iproute2', 'socat', 'busybox-static'],
];
const BUILD_TIMEOUT_MS = 10 * 60_000;

/** A cache that outlives the tests; below the temporary directory where the machine's cache is not ours to write. */
const cache = (): string => join(process.getuid?.() === 0 ? '/var/cache' : tmpdir(), 'hyperedge-lab');

/** Makes it if it is not there (half a minute). Throws in mmdebstrap's words. */
export async function labRootfs(say: (line: string) => void): Promise<string> {
  const target = join(cache(), `${SUITE}-1`);
  if (existsSync(target)) return target;
  say(`making a ${SUITE} root file system in ${target}`);
  await mkdir(cache(), { recursive: true });
  const partial = await mkdtemp(join(cache(), '.making-'));
  try {
    const made = await run(
      'mmdebstrap',
      ['--quiet', '--variant=minbase', `--include=${PACKAGES.join(',')}`, SUITE, partial],
      { timeoutMs: BUILD_TIMEOUT_MS },
    );
    if (made.code !== 0) throw new Error(`mmdebstrap: exit ${made.code}\n${made.stderr.slice(-2_000)}`);
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return target;
}
