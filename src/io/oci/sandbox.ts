/**
 * Pod sandboxes without a pause process: the pod's namespaces are pinned by bind mounts of their files (namespaces(7)),
 * the shared memory is a small tmpfs. A shared pid namespace lives as long as its first process, so that one is held by
 * a tiny container.
 */
import { copyFile, mkdir, readdir, readFile, rm, rmdir, statfs, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { isDiskFull } from '../../base/errors.ts';
import { MASKED_PATHS, READONLY_PATHS } from '../../base/masked-paths.ts';
import type { IdMapping, SandboxConfig } from '../../core/podplan/port.ts';
import { runCommand } from './command.ts';
import { prepareHostRoot } from './host-root.ts';
import { mountPoints } from './mount-table.ts';
import { arrange, systemMounts } from './mounts.ts';
import { isAsleep, isRunning, processStart } from './processes.ts';
import type { RuntimePaths, SandboxRecord } from './records.ts';
import type { Runc } from './runc.ts';
import { defaultSeccompProfile } from './seccomp.ts';
import { type CgroupDriver, cgroupsPath, type JoinedNamespaces } from './spec.ts';
import { pinNamespaces } from './user-namespace.ts';

const SHM_SIZE = '64m';

type NamespaceOwner = Pick<SandboxRecord, 'id' | 'hostNetwork' | 'hostIpc' | 'userNamespace'>;

/** Where a sandbox's namespaces are pinned; undefined for those of the host. */
export function namespaceFiles(paths: RuntimePaths, sandbox: NamespaceOwner): Omit<JoinedNamespaces, 'pid'> {
  const directory = join(paths.runSandboxes, sandbox.id);
  return {
    net: sandbox.hostNetwork ? undefined : join(directory, 'net'),
    ipc: sandbox.hostIpc ? undefined : join(directory, 'ipc'),
    uts: sandbox.hostNetwork ? undefined : join(directory, 'uts'),
    user: sandbox.userNamespace === undefined ? undefined : join(directory, 'user'),
  };
}

/** statfs(2)'s type of a namespace that is held by a bind mount; the file below it is an empty ordinary one. */
const NSFS_MAGIC = 0x6e73_6673;

/** Whether all of a sandbox's namespaces are still there. */
export async function arePinned(files: Omit<JoinedNamespaces, 'pid'>): Promise<boolean> {
  for (const file of Object.values(files)) {
    if (file === undefined) continue;
    const type = await statfs(file).then(
      (found) => found.type,
      () => 0,
    );
    if (type !== NSFS_MAGIC) return false;
  }
  return true;
}

export const shmDirectory = (paths: RuntimePaths, sandbox: Pick<SandboxRecord, 'id' | 'hostIpc'>): string =>
  sandbox.hostIpc ? '/dev/shm' : join(paths.runSandboxes, sandbox.id, 'shm');

/**
 * Makes namespaces, shared memory, name-service files in `directory`, and the log directory. On failure the caller runs
 * `tearDown`.
 */
export async function setUp(
  paths: RuntimePaths,
  { id, directory: stateDirectory }: { readonly id: string; readonly directory: string },
  config: SandboxConfig,
): Promise<void> {
  const runDirectory = join(paths.runSandboxes, id);
  await Promise.all([mkdir(stateDirectory, { mode: 0o700 }), mkdir(runDirectory, { mode: 0o700 })]);
  const files = namespaceFiles(paths, { ...config, id });
  const shm = shmDirectory(paths, { id, hostIpc: config.hostIpc });
  const mountShm = config.hostIpc ? undefined : shmMount(shm, config.userNamespace);
  if (mountShm !== undefined) await mkdir(shm);
  await Promise.all([
    config.userNamespace === undefined
      ? unshare(files, mountShm)
      : Promise.all([pinNamespaces(pinned(files), config.userNamespace), mountShm && runCommand(...mountShm)]),
    writeNameService(stateDirectory, config),
    mkdir(config.logDirectory, { recursive: true, mode: 0o755 }).catch((error: unknown) => {
      if (config.mayUseMemory !== true || !isDiskFull(error)) throw error;
    }),
  ]);
}

const pinned = (files: Omit<JoinedNamespaces, 'pid'>): ReadonlyMap<string, string> =>
  new Map(Object.entries(files).flatMap(([kind, file]) => (file === undefined ? [] : [[kind, file] as const])));

type Command = readonly [file: string, args: readonly string[]];

/** `then` runs in the new namespaces, none of which is a mount namespace: one process less for each pod. */
async function unshare(files: Omit<JoinedNamespaces, 'pid'>, then: Command = ['true', []]): Promise<void> {
  const args: string[] = [];
  for (const [kind, file] of pinned(files)) {
    await writeFile(file, '', { flag: 'wx', mode: 0o600 });
    args.push(`--${kind}=${file}`);
  }
  const [file, own] = then;
  if (args.length > 0) await runCommand('unshare', [...args, file, ...own]);
  else await runCommand(...then);
}

function shmMount(path: string, { hostId }: Pick<IdMapping, 'hostId'> = { hostId: 0 }): Command {
  const options = `nosuid,nodev,noexec,mode=1777,uid=${hostId},gid=${hostId},size=${SHM_SIZE}`;
  return ['mount', ['-t', 'tmpfs', '-o', options, 'shm', path]];
}

async function writeNameService(directory: string, config: SandboxConfig): Promise<void> {
  const resolv = join(directory, 'resolv.conf');
  const { dns } = config;
  if (dns === undefined) {
    await copyFile('/etc/resolv.conf', resolv).catch(() => writeFile(resolv, ''));
  } else {
    const lines = dns.servers.map((server) => `nameserver ${server}`);
    if (dns.searches.length > 0) lines.push(`search ${dns.searches.join(' ')}`);
    if (dns.options.length > 0) lines.push(`options ${dns.options.join(' ')}`);
    // Line breaks inside a value would be further directives.
    await writeFile(resolv, `${lines.map((line) => line.replaceAll(/[\r\n]/g, ' ')).join('\n')}\n`, { mode: 0o644 });
  }
  await writeFile(join(directory, 'hostname'), `${config.hostname}\n`, { mode: 0o644 });
}

/** Unmounts and removes what lives only during a boot. Succeeds when there is nothing. */
export async function tearDown(
  paths: RuntimePaths,
  runc: Runc,
  sandbox: Pick<SandboxRecord, 'id' | 'pidHolder'>,
): Promise<void> {
  const runDirectory = join(paths.runSandboxes, sandbox.id);
  if (sandbox.pidHolder !== undefined) await runc.deleteForce(holderId(sandbox.id)).catch(() => {});
  await unmountBelow(runDirectory);
  await rm(runDirectory, { recursive: true, force: true });
}

/** Lazily unmounts every mount at or below `directory`. */
export async function unmountBelow(directory: string): Promise<void> {
  const mounted = (await mountPoints('self'))
    .map(({ path }) => path)
    .filter((path) => path === directory || path.startsWith(`${directory}/`));
  if (mounted.length > 0) await runCommand('umount', ['--lazy', ...mounted.toReversed()]);
}

const holderId = (sandboxId: string): string => `${sandboxId}-pid`;

/** User and group of the holder: no file and no other process has them. */
const HOLDER_USER = 65_535;
const HOLDER_START_MS = 10_000;
const HOLDER_LOOK_MS = 2;

/**
 * Starts the first process of a shared pid namespace: a sleeper that ignores SIGCHLD (so the kernel reaps orphans for
 * it), without rights and without network. It is started from a read-only view of the host's programs, and left with an
 * empty root.
 */
export async function startPidHolder(
  paths: RuntimePaths,
  runc: Runc,
  id: string,
  config: SandboxConfig,
  driver: CgroupDriver,
  clock: Clock,
): Promise<{ readonly pid: number; readonly start: string }> {
  const bundle = join(paths.runSandboxes, id, 'pid-holder');
  const rootfs = join(bundle, 'rootfs');
  await mkdir(bundle, { mode: 0o700 });
  await mkdir(rootfs, { mode: 0o755 });
  const files = namespaceFiles(paths, { ...config, id });
  const root = await prepareHostRoot(rootfs, join(bundle, 'skeleton'), [], []);
  const programs = root.filter(({ destination }) => /^\/(?:bin|sbin|usr|lib\w*)(?:\/|$)/.test(destination));
  const system = systemMounts({ shm: shmDirectory(paths, { id, hostIpc: config.hostIpc }), writableSys: false });
  const spec = {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: HOLDER_USER, gid: HOLDER_USER },
      args: ['/usr/bin/env', '--ignore-signal=CHLD', '/usr/bin/sleep', 'infinity'],
      env: ['PATH=/usr/bin:/bin'],
      cwd: '/',
      capabilities: {},
      noNewPrivileges: true,
    },
    root: { path: 'rootfs', readonly: true },
    mounts: arrange(
      system.filter(({ destination }) => destination === '/proc' || destination === '/dev'),
      programs,
    ),
    linux: {
      namespaces: [
        { type: 'mount' },
        { type: 'pid' },
        ...(files.net === undefined ? [] : [{ type: 'network', path: files.net }]),
        ...(files.ipc === undefined ? [] : [{ type: 'ipc', path: files.ipc }]),
      ],
      cgroupsPath: cgroupsPath(driver, config.cgroupParent, holderId(id)),
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READONLY_PATHS,
      seccomp: defaultSeccompProfile([], process.arch),
    },
  };
  await writeFile(join(bundle, 'config.json'), JSON.stringify(spec), { mode: 0o600 });
  const pidFile = join(bundle, 'pid');
  await runc.runDetached(holderId(id), bundle, pidFile);
  const pid = Number(await readFile(pidFile, 'utf8'));
  const start = (await processStart(pid)) ?? '';
  // Until then it still opens its program and libraries.
  for (let leftMs = HOLDER_START_MS; !(await isAsleep(pid, 'sleep')); leftMs -= HOLDER_LOOK_MS) {
    if (leftMs <= 0 || !(await isRunning(pid, start)))
      throw new Error("the process that holds the pod's pid namespace did not start");
    await new Promise<void>((resolve) => {
      clock.setTimer(HOLDER_LOOK_MS, resolve);
    });
  }
  await emptyRoot(pid, rootfs);
  return { pid, start };
}

/**
 * Takes everything out of the holder's root: containers of the pod reach it as `/proc/1/root`. The program itself stays
 * in memory. Throws when anything is left, so that no container starts beside it.
 */
async function emptyRoot(pid: number, rootfs: string): Promise<void> {
  const points = (await mountPoints(pid)).map(({ path }) => path).filter((path) => path !== '/');
  const top = points.filter((path) => !points.some((other) => other !== path && path.startsWith(`${other}/`)));
  // umount(8) comes from the programs it takes away, and reads /proc, which shows it itself in the holder's pid
  // namespace only.
  const ordered = [...new Set(top)].toSorted((a, b) => Number(a === '/proc') - Number(b === '/proc'));
  if (ordered.length > 0)
    await runCommand('nsenter', ['--target', String(pid), '--mount', '--pid', 'umount', '--lazy', ...ordered]);
  const left = (await mountPoints(pid)).filter(({ path }) => path !== '/');
  if (left.length > 0)
    throw new Error(
      `the holder of the pod's pid namespace still has ${left.map(({ path }) => path).join(', ')} mounted`,
    );
  // Never recursive: only links and empty mount points are expected.
  for (const entry of await readdir(rootfs, { withFileTypes: true }))
    await (entry.isDirectory() ? rmdir(join(rootfs, entry.name)) : unlink(join(rootfs, entry.name)));
}

/** The namespaces for a new container. Throws when the sandbox's shared pid namespace has died. */
export async function namespacesFor(paths: RuntimePaths, sandbox: SandboxRecord): Promise<JoinedNamespaces> {
  const { pidHolder } = sandbox;
  if (pidHolder !== undefined && !(await isRunning(pidHolder.pid, pidHolder.start))) {
    throw new Error("the process that holds the pod's pid namespace is gone");
  }
  return {
    ...namespaceFiles(paths, sandbox),
    pid: sandbox.hostPid ? 'host' : pidHolder === undefined ? 'new' : `/proc/${pidHolder.pid}/ns/pid`,
  };
}
