/**
 * Pod sandboxes without a pause process: the pod's namespaces are pinned by bind mounts of their files (namespaces(7)),
 * and the shared memory is a small tmpfs. A shared pid namespace lives as long as its first process, so a tiny
 * container holds it.
 */
import { copyFile, mkdir, readdir, readFile, rm, rmdir, statfs, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { together } from '../../../base/concurrency/all-or-first-error.ts';
import { ifMissing, ignore, isDiskFull } from '../../../base/errors.ts';
import { MASKED_PATHS, READONLY_PATHS } from '../../../base/linux/masked-paths.ts';
import type { IdMapping, SandboxConfig } from '../../port.ts';
import { runCommand } from '../command.ts';
import { mountPoints } from '../mount-table.ts';
import { isRunning, isSleeping, processStart } from '../processes.ts';
import type { Runc } from '../runc.ts';
import { mergeMounts, systemMounts } from '../spec/mounts.ts';
import { defaultSeccompProfile } from '../spec/seccomp.ts';
import { cgroupsPath, type JoinedNamespaces } from '../spec/spec.ts';
import { pinNamespaces } from '../spec/user-namespace.ts';
import type { RuntimeContext } from './context.ts';
import { prepareHostRoot } from './host-root.ts';
import type { RuntimePaths, SandboxRecord } from './records.ts';

const SHM_SIZE = '64m';

type NamespaceOwner = Pick<SandboxRecord, 'id' | 'hostNetwork' | 'hostIpc' | 'userNamespace'>;

/** Files at which a sandbox's namespaces are pinned; undefined for namespaces of the host. */
export function namespaceFiles(paths: RuntimePaths, sandbox: NamespaceOwner): Omit<JoinedNamespaces, 'pid'> {
  const directory = join(paths.runSandboxes, sandbox.id);
  return {
    net: sandbox.hostNetwork ? undefined : join(directory, 'net'),
    ipc: sandbox.hostIpc ? undefined : join(directory, 'ipc'),
    uts: sandbox.hostNetwork ? undefined : join(directory, 'uts'),
    user: sandbox.userNamespace === undefined ? undefined : join(directory, 'user'),
  };
}

/** File system type in statfs(2) of a pinned namespace. Without its mount, the path is an empty regular file. */
const NSFS_MAGIC = 0x6e73_6673;

/** Whether all namespaces of a sandbox still exist. */
export async function arePinned(files: Omit<JoinedNamespaces, 'pid'>): Promise<boolean> {
  for (const file of Object.values(files)) {
    if (file === undefined) continue;
    const found = await statfs(file).catch(ifMissing(undefined));
    if (found?.type !== NSFS_MAGIC) return false;
  }
  return true;
}

export const shmDirectory = (paths: RuntimePaths, sandbox: Pick<SandboxRecord, 'id' | 'hostIpc'>): string =>
  sandbox.hostIpc ? '/dev/shm' : join(paths.runSandboxes, sandbox.id, 'shm');

/**
 * Creates namespaces, shared memory, name-service files in `directory`, and the log directory. On failure the caller
 * must run `tearDown`.
 */
export async function setUp(
  paths: RuntimePaths,
  { id, directory: stateDirectory }: { readonly id: string; readonly directory: string },
  config: SandboxConfig,
): Promise<void> {
  const runDirectory = join(paths.runSandboxes, id);
  await together([mkdir(stateDirectory, { mode: 0o700 }), mkdir(runDirectory, { mode: 0o700 })]);
  const files = namespaceFiles(paths, { ...config, id });
  const shm = shmDirectory(paths, { id, hostIpc: config.hostIpc });
  const mountShm = config.hostIpc ? undefined : shmMount(shm, config.userNamespace);
  if (mountShm !== undefined) await mkdir(shm);
  await together([
    config.userNamespace === undefined
      ? unshare(files, mountShm)
      : together([pinNamespaces(pinned(files), config.userNamespace), mountShm && runCommand(...mountShm)]),
    writeNameService(stateDirectory, config),
    mkdir(config.logDirectory, { recursive: true, mode: 0o755 }).catch((error: unknown) => {
      if (config.mayUseMemory !== true || !isDiskFull(error)) throw error;
    }),
  ]);
}

const pinned = (files: Omit<JoinedNamespaces, 'pid'>): ReadonlyMap<string, string> =>
  new Map(Object.entries(files).flatMap(([kind, file]) => (file === undefined ? [] : [[kind, file] as const])));

type Command = readonly [file: string, args: readonly string[]];

/**
 * Creates and pins the namespaces, and runs `then` in them, which saves one process per pod. Mounts made by `then` are
 * mounts of the host, because no mount namespace is created.
 */
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
    // A line break inside a value would start another directive.
    await writeFile(resolv, `${lines.map((line) => line.replaceAll(/[\r\n]/g, ' ')).join('\n')}\n`, { mode: 0o644 });
  }
  await writeFile(join(directory, 'hostname'), `${config.hostname}\n`, { mode: 0o644 });
}

/** Removes the mounts and files of the sandbox in `/run`. Succeeds if they do not exist. */
export async function tearDown(
  paths: RuntimePaths,
  runc: Runc,
  sandbox: Pick<SandboxRecord, 'id' | 'pidHolder'>,
): Promise<void> {
  const runDirectory = join(paths.runSandboxes, sandbox.id);
  if (sandbox.pidHolder !== undefined)
    await runc.deleteForce(holderId(sandbox.id)).catch(ignore('the holder may not exist'));
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

/** User and group id of the holder, which no file and no other process uses. */
const HOLDER_USER = 65_535;
const HOLDER_START_MS = 10_000;
const HOLDER_POLL_MS = 2;

/**
 * Starts the first process of a shared pid namespace: a sleeping process that ignores SIGCHLD (so that the kernel reaps
 * orphans), without privileges and without network. It is started from a read-only view of the host's programs; then
 * its root is emptied.
 */
export async function startPidHolder(
  { paths, runc, deps }: Pick<RuntimeContext, 'paths' | 'runc' | 'deps'>,
  id: string,
  config: SandboxConfig,
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
    mounts: mergeMounts(
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
      cgroupsPath: cgroupsPath(deps.cgroupDriver, config.cgroupParent, holderId(id)),
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
  // Before the process sleeps, it may still open its program and libraries.
  for (let leftMs = HOLDER_START_MS; !(await isSleeping(pid, 'sleep')); leftMs -= HOLDER_POLL_MS) {
    if (leftMs <= 0 || !(await isRunning(pid, start)))
      throw new Error("the process that holds the pod's pid namespace did not start");
    await new Promise<void>((resolve) => {
      deps.clock.setTimer(HOLDER_POLL_MS, resolve);
    });
  }
  await emptyRoot(pid, rootfs);
  return { pid, start };
}

/**
 * Unmounts and deletes everything in the holder's root, because containers of the pod can reach it as `/proc/1/root`.
 * The program itself stays in memory. Throws if anything is left, so that no container starts beside it.
 */
async function emptyRoot(pid: number, rootfs: string): Promise<void> {
  const points = (await mountPoints(pid)).map(({ path }) => path).filter((path) => path !== '/');
  const top = points.filter((path) => !points.some((other) => other !== path && path.startsWith(`${other}/`)));
  // /proc is unmounted last: umount(8) reads it, and it shows the holder's mounts only within the holder's pid
  // namespace.
  const ordered = [...new Set(top)].toSorted((a, b) => Number(a === '/proc') - Number(b === '/proc'));
  if (ordered.length > 0)
    await runCommand('nsenter', ['--target', String(pid), '--mount', '--pid', 'umount', '--lazy', ...ordered]);
  const left = (await mountPoints(pid)).filter(({ path }) => path !== '/');
  if (left.length > 0)
    throw new Error(
      `the holder of the pod's pid namespace still has ${left.map(({ path }) => path).join(', ')} mounted`,
    );
  // The deletion is not recursive on purpose: only links and empty mount points are expected.
  for (const entry of await readdir(rootfs, { withFileTypes: true }))
    await (entry.isDirectory() ? rmdir(join(rootfs, entry.name)) : unlink(join(rootfs, entry.name)));
}

/** Namespaces for a new container. Throws if the holder of the shared pid namespace has died. */
export async function namespacesFor(paths: RuntimePaths, sandbox: SandboxRecord): Promise<JoinedNamespaces> {
  const { pidHolder } = sandbox;
  if (pidHolder !== undefined && !(await isRunning(pidHolder.pid, pidHolder.start))) {
    throw new Error("the process that holds the pod's pid namespace has exited");
  }
  return {
    ...namespaceFiles(paths, sandbox),
    pid: sandbox.hostPid ? 'host' : pidHolder === undefined ? 'new' : `/proc/${pidHolder.pid}/ns/pid`,
  };
}
