/** Host programs that the appliance and its tests use, with their Debian packages. */
import { execFile, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface HostProgram {
  readonly program: string;
  readonly debianPackage: string;
}

/** Programs that a host needs to run pods. */
export const APPLIANCE_PROGRAMS: readonly HostProgram[] = [
  { program: 'runc', debianPackage: 'runc' },
  { program: 'conmon', debianPackage: 'conmon' },
  { program: 'nft', debianPackage: 'nftables' },
  { program: 'ip', debianPackage: 'iproute2' },
  { program: 'socat', debianPackage: 'socat' },
  { program: 'unshare', debianPackage: 'util-linux' },
  { program: 'mount', debianPackage: 'mount' },
];

/** Programs that the sample workload and its instructions need. */
export const SAMPLE_PROGRAMS: readonly HostProgram[] = [
  ...APPLIANCE_PROGRAMS,
  { program: 'busybox', debianPackage: 'busybox-static' },
  { program: 'kubectl', debianPackage: 'kubernetes-client' },
];

/** Programs that the tests need: real peers and tools. */
export const TEST_PROGRAMS: readonly HostProgram[] = [
  ...SAMPLE_PROGRAMS,
  { program: 'etcd', debianPackage: 'etcd-server' },
  { program: 'etcdctl', debianPackage: 'etcd-client' },
  { program: 'curl', debianPackage: 'curl' },
  { program: 'script', debianPackage: 'bsdutils' },
  { program: 'openssl', debianPackage: 'openssl' },
  { program: 'serf', debianPackage: 'serf' },
  { program: 'protoc', debianPackage: 'protobuf-compiler' },
  { program: 'unzip', debianPackage: 'unzip' },
  { program: 'systemd-nspawn', debianPackage: 'systemd-container' },
  { program: 'mmdebstrap', debianPackage: 'mmdebstrap' },
];

async function onPath(program: string): Promise<boolean> {
  // Debian has some of the programs in sbin, which is not in every user's PATH.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/bin', '/bin'];
  for (const directory of directories) {
    const found = await access(join(directory, program), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}

export async function missingPrograms(programs: readonly HostProgram[]): Promise<HostProgram[]> {
  const present = await Promise.all(programs.map((each) => onPath(each.program)));
  return programs.filter((_, index) => !present[index]);
}

/** Runs apt and shows its output. Throws if it fails. */
async function apt(args: readonly string[]): Promise<void> {
  const code = await new Promise<number>((resolve, reject) => {
    const child = spawn('apt-get', args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    child.on('error', reject);
    child.on('close', (exit) => resolve(exit ?? 1));
  });
  if (code !== 0) throw new Error(`apt-get ${args.join(' ')} ended with exit code ${code}`);
}

/**
 * Reports and installs missing programs, and returns them. Without root or apt it throws an error of one line with the
 * command to run.
 */
export async function ensurePrograms(
  programs: readonly HostProgram[],
  report: (line: string) => void,
): Promise<readonly HostProgram[]> {
  const missing = await missingPrograms(programs);
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.map((each) => each.debianPackage))];
  const line = `apt-get install -y --no-install-recommends ${packages.join(' ')}`;
  const hasApt = await onPath('apt-get');
  if (process.getuid?.() !== 0 || !hasApt)
    throw new Error(`this host lacks ${missing.map((each) => each.program).join(', ')}; install them first: ${line}`);
  report(`installing host packages: ${packages.join(' ')}`);
  await run('apt-get', ['update', '-qq']).catch(() => {});
  await apt(['install', '-y', '-qq', '--no-install-recommends', ...packages]);
  const still = await missingPrograms(missing);
  if (still.length > 0)
    throw new Error(
      `apt installed ${packages.join(' ')}, and still there is no ${still.map((each) => each.program).join(', ')}`,
    );
  return missing;
}
