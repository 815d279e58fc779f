import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  HOST_PROGRAMS_IMAGE,
  HOST_ROOT_ID,
  hostRootRefusal,
  isHostRootImage,
} from '../../../api/podspec/host-root-image.ts';
import { together } from '../../../base/concurrency/all-or-first-error.ts';
import { ignore, isDiskFull, messageOf } from '../../../base/errors.ts';
import { type ContainerConfig, RuntimeError } from '../../port.ts';
import { cgroupsOf } from '../cgroups.ts';
import { runCommand } from '../command.ts';
import { removeExecCgroups } from '../exec/exec-cgroup.ts';
import type { ImageConfig } from '../port.ts';
import { isRunning, processStart } from '../processes.ts';
import { appArmorProfile } from '../spec/apparmor.ts';
import { allHostDevices, hostDevice, type OciDevice } from '../spec/devices.ts';
import { localSeccompProfile } from '../spec/local-seccomp.ts';
import { checkMounts } from '../spec/mount-guard.ts';
import { mergeMounts, normalisePath, type OciMount, podMount, systemMounts } from '../spec/mounts.ts';
import { withLowerDirectories } from '../spec/overlay-lowers.ts';
import { buildSpec, type JoinedNamespaces } from '../spec/spec.ts';
import { MappedRoot } from '../spec/user-namespace.ts';
import { type ContainerUser, resolveUser } from '../spec/users.ts';
import { startMonitor, type WaitingMonitor } from '../streams/conmon.ts';
import { type ContainerTable, hasEnded } from './container-table.ts';
import type { RuntimeContext } from './context.ts';
import { prepareHostPrograms } from './host-programs.ts';
import { prepareHostRoot } from './host-root.ts';
import { type ContainerRecord, newId, type SandboxRecord } from './records.ts';
import { namespaceFiles, namespacesFor, shmDirectory, unmountBelow } from './sandbox.ts';

/** Slice of the host's own services. Monitors run there, so that pods are not charged for them. */
const MONITOR_SLICE = 'system.slice';
const NO_IMAGE_CONFIG: ImageConfig = { entrypoint: [], cmd: [], env: [], workingDir: '', user: '', stopSignal: '' };

/** A root file system prepared before its container is created. */
interface PreparedRoot {
  readonly id: string;
  readonly imageId: string;
  readonly root: Promise<Root>;
}

interface Root {
  readonly image: ImageConfig;
  readonly mounts: readonly OciMount[];
  readonly overlay: boolean;
  /** Undefined if the pod has no user namespace of its own. */
  readonly mapped: MappedRoot | undefined;
}

/** Input of a creation. */
interface Creation {
  readonly id: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly runtime: Handler;
  /** Bundle of the container. */
  readonly directory: string;
  /** Whether the container uses the root of the host instead of an image. */
  readonly hostRoot: boolean;
}

interface PreparedParts {
  readonly root: Root;
  readonly namespaces: JoinedNamespaces;
  readonly devices: Awaited<ReturnType<typeof deviceList>>;
}

interface CreatedParts {
  readonly root: Root;
  readonly user: ContainerUser;
  readonly logPath: string;
  readonly started: StartedProcesses;
}

type Handler = ReturnType<RuntimeContext['handlers']['get']>;
type MonitoredPids = Awaited<ReturnType<WaitingMonitor['create']>>;
type StartedProcesses = Pick<ContainerRecord, 'pid' | 'pidStart' | 'monitorPid' | 'monitorStart' | 'cgroups'>;

/** Creates containers under their monitors and deletes all resources of a container on the host. */
export class ContainerBundles {
  readonly #context: RuntimeContext;
  readonly #table: ContainerTable;
  /** Prepared roots by sandbox. */
  readonly #prepared = new Map<string, PreparedRoot>();

  constructor(context: RuntimeContext, table: ContainerTable) {
    this.#context = context;
    this.#table = table;
  }

  prepareRoot(sandboxId: string, imageId: string): void {
    const id = newId();
    const directory = this.#table.bundle(id);
    const root = mkdir(directory, { mode: 0o700 }).then(() => this.#overlayRoot(id, imageId, undefined));
    root.catch((error: unknown) =>
      this.#context.log.v(2, 'root not prepared', { container: id, error: messageOf(error) }),
    );
    this.#prepared.set(sandboxId, { id, imageId, root });
  }

  async discardRoot(sandboxId: string): Promise<void> {
    const prepared = this.#prepared.get(sandboxId);
    if (prepared === undefined) return;
    this.#prepared.delete(sandboxId);
    await prepared.root.catch(ignore('the caller that prepared the root gets its error'));
    await this.discard(prepared.id);
  }

  /**
   * Returns the prepared root for a container. The prepared root is unusable if the container needs another image, for
   * example because a tag was pulled meanwhile.
   */
  async #takePrepared(sandboxId: string, { imageId, hostRoot }: ContainerConfig): Promise<PreparedRoot | undefined> {
    const prepared = this.#prepared.get(sandboxId);
    if (prepared === undefined || hostRoot === true) return undefined;
    if (prepared.imageId !== imageId) await this.discardRoot(sandboxId);
    return this.#prepared.delete(sandboxId) ? prepared : undefined;
  }

  /**
   * Returns the new container's id. On failure, and when `signal` cancels it, it removes everything it created and
   * throws RuntimeError 'create-failed'.
   */
  async create(
    sandbox: SandboxRecord,
    config: ContainerConfig,
    joined: () => Promise<void>,
    signal?: AbortSignal,
  ): Promise<string> {
    const context = this.#context;
    const hostRoot = config.hostRoot === true;
    if (!hostRoot && (isHostRootImage(config.imageId) || isHostRootImage(config.image)))
      throw new RuntimeError('create-failed', hostRootRefusal(`container ${config.name}`));
    const runtime = context.handlers.get(sandbox.runtimeHandler);
    const prepared = await this.#takePrepared(sandbox.id, config);
    const id = prepared?.id ?? newId();
    const directory =
      prepared === undefined
        ? await this.#table.directories.choose(id, sandbox.mayUseMemory === true && hostRoot)
        : this.#table.bundle(id);
    const creation: Creation = { id, sandbox, config, runtime, directory, hostRoot };
    let release: (() => void) | undefined;
    let monitor: WaitingMonitor | undefined;
    try {
      if (prepared === undefined) await mkdir(directory, { mode: 0o700 });
      const logPath = await this.#logPath(id, join(sandbox.logDirectory, config.logPath));
      release = await context.starts.take(sandbox.namespace);
      signal?.throwIfAborted();
      monitor = this.#startMonitor(creation, logPath);
      const [root, namespaces, devices] = await together([
        prepared?.root ?? this.#makeRoot(id, sandbox, config),
        this.#namespacesOf(sandbox, config),
        deviceList(config),
      ]);
      const user = await this.#writeSpec(creation, { root, namespaces, devices });
      const pids = await monitor.create(signal);
      release();
      const [started] = await Promise.all([
        this.#startedProcesses(pids),
        this.#moveMonitor(id, pids.monitorPid),
        joined(),
      ]);
      await this.#table.save(this.#recordOf(creation, { root, user, logPath, started }));
      return id;
    } catch (error) {
      release?.();
      monitor?.abandon();
      await prepared?.root.catch(ignore('the caller gets the first error'));
      await this.discard(id);
      throw error instanceof RuntimeError
        ? error
        : new RuntimeError('create-failed', messageOf(error), { cause: error });
    }
  }

  #startMonitor({ id, config, runtime, directory }: Creation, logPath: string): WaitingMonitor {
    const { programs, deps, paths } = this.#context;
    return startMonitor({
      conmon: programs.conmon,
      runc: runtime.runc,
      driver: deps.cgroupDriver,
      id,
      bundle: directory,
      exits: paths.exits,
      logPath,
      logLimitBytes: config.logLimitBytes,
      tty: config.tty,
      stdin: config.stdin,
      leaveStdinOpen: config.stdin && !config.stdinOnce,
    });
  }

  async #namespacesOf(sandbox: SandboxRecord, config: ContainerConfig): Promise<JoinedNamespaces> {
    const own = await namespacesFor(this.#context.paths, sandbox);
    if (config.pidNamespaceOf === undefined) return own;
    return { ...own, pid: await this.#pidNamespaceOf(config.pidNamespaceOf) };
  }

  /** Writes the runtime specification into the bundle. Returns the user of the container. */
  async #writeSpec(
    { id, sandbox, config, runtime, directory, hostRoot }: Creation,
    { root, namespaces, devices }: PreparedParts,
  ): Promise<ContainerUser> {
    const context = this.#context;
    const rootfs = join(directory, 'rootfs');
    const user = await resolveUser(rootfs, root.image.user, config.security);
    const affected = await runtime.affected();
    if (affected !== undefined && !hostRoot && !config.security.privileged)
      await checkMounts(rootfs, config.mounts, affected);
    const { spec, warnings } = buildSpec({
      containerId: id,
      config,
      sandbox,
      image: root.image,
      user,
      devices,
      namespaces,
      mounts: await this.#mountList(sandbox, config, root, hostRoot),
      rootPath: (await root.mapped?.showRoot(rootfs)) ?? 'rootfs',
      readOnlyRoot: hostRoot || config.security.readOnlyRootFilesystem,
      driver: context.deps.cgroupDriver,
      pureV2: context.cgroupMounts.pureV2,
      own: context.own,
      nodeArch: process.arch,
      seccomp: await localSeccompProfile(config.security),
      appArmor: await appArmorProfile(config.security),
    });
    for (const warning of warnings) context.warnOnce(warning);
    await writeFile(join(directory, 'config.json'), JSON.stringify(spec), { mode: 0o600 });
    return user;
  }

  async #startedProcesses({ pid, monitorPid }: MonitoredPids): Promise<StartedProcesses> {
    const [pidStart = '', monitorStart = '', cgroups] = await Promise.all([
      processStart(pid),
      processStart(monitorPid),
      cgroupsOf(pid, this.#context.cgroupMounts),
    ]);
    return { pid, pidStart, monitorPid, monitorStart, cgroups };
  }

  /** Record of a created container that has not been started. */
  #recordOf(
    { id, sandbox, config, hostRoot }: Creation,
    { root, user, logPath, started }: CreatedParts,
  ): ContainerRecord {
    const { bootId, deps } = this.#context;
    return {
      id,
      sandboxId: sandbox.id,
      bootId,
      name: config.name,
      attempt: config.attempt,
      image: config.image,
      imageId: hostRoot ? HOST_ROOT_ID : config.imageId,
      labels: config.labels,
      annotations: config.annotations,
      logPath,
      stdin: config.stdin,
      tty: config.tty,
      stopSignal: config.stopSignal ?? root.image.stopSignal,
      createdAtMs: deps.clock.nowMs(),
      startedAtMs: 0,
      finishedAtMs: 0,
      exitCode: 0,
      reason: '',
      message: '',
      user: { uid: user.uid, gid: user.gid, supplementalGroups: user.additionalGids },
      ...started,
      ...(sandbox.runtimeHandler === undefined ? {} : { runtimeHandler: sandbox.runtimeHandler }),
      overlay: root.overlay,
      ...(hostRoot ? { ofHost: true } : {}),
    };
  }

  /**
   * Creates the directory of the log and returns the log's path. If the disk is full and the container's state is in
   * memory, the log is beside its record.
   */
  async #logPath(id: string, wanted: string): Promise<string> {
    try {
      await mkdir(dirname(wanted), { recursive: true, mode: 0o755 });
      if (this.#table.directories.isInMemory(id)) await open(wanted, 'a', 0o600).then((file) => file.close());
      return wanted;
    } catch (error) {
      if (!this.#table.directories.isInMemory(id) || !isDiskFull(error)) throw error;
      return join(this.#table.bundle(id), 'log');
    }
  }

  /** Deletes the container with its cgroups, mounts and files, also if its creation was interrupted. */
  async discard(id: string): Promise<void> {
    const directory = this.#table.bundle(id);
    const record = this.#table.find(id);
    if (record !== undefined && record.bootId === this.#context.bootId)
      await removeExecCgroups(record.cgroups, this.#context.deps.clock);
    // An interrupted creation left no record of its runtime.
    const { handlers } = this.#context;
    const runtimes = record === undefined ? handlers.all() : [handlers.of(record)];
    for (const { runc } of runtimes)
      await runc
        .deleteForce(id)
        .catch((error: unknown) =>
          this.#context.log.v(2, 'runc delete failed', { container: id, error: messageOf(error) }),
        );
    const mapped = join(this.#context.paths.mappedRoots, id);
    for (const each of [mapped, directory]) await unmountBelow(each);
    await Promise.all([mapped, directory].map((each) => this.#context.deps.trees.remove(each)));
    await Promise.all([
      rm(join(this.#context.paths.exits, id), { force: true }),
      this.#context.deps.images.release(id),
    ]);
    this.#table.delete(id);
  }

  async #makeRoot(id: string, sandbox: SandboxRecord, config: ContainerConfig): Promise<Root> {
    const directory = this.#table.bundle(id);
    if (config.hostRoot === true) {
      const rootfs = join(directory, 'rootfs');
      await mkdir(rootfs, { mode: 0o755 });
      const visible = this.#context.deps.hostRootVisible ?? [];
      const prepare = config.image === HOST_PROGRAMS_IMAGE ? prepareHostPrograms : prepareHostRoot;
      const mounts = await prepare(rootfs, join(directory, 'skeleton'), config.mounts, visible);
      return { image: NO_IMAGE_CONFIG, mounts, overlay: false, mapped: undefined };
    }
    return this.#overlayRoot(id, config.imageId, await this.#mappedRoot(id, sandbox));
  }

  async #overlayRoot(id: string, imageId: string, mapped: MappedRoot | undefined): Promise<Root> {
    const directory = this.#table.bundle(id);
    const rootfs = join(directory, 'rootfs');
    const [held] = await together([
      this.#context.deps.images.hold(imageId, id),
      mkdir(rootfs, { mode: 0o755 }),
      mkdir(join(directory, 'upper'), { mode: 0o755 }),
      mkdir(join(directory, 'work'), { mode: 0o700 }),
    ]);
    await mapped?.own(join(directory, 'upper'));
    const { directory: base, layers } = (await mapped?.mapLayers(
      held.layers.map((layer) => join(held.layerRoot, layer)),
    )) ?? { directory: held.layerRoot, layers: held.layers };
    const upper = `upperdir=${join(directory, 'upper')},workdir=${join(directory, 'work')}`;
    const overlay = layers.length > 0;
    if (!overlay) await mapped?.own(rootfs);
    else
      await withLowerDirectories(base, layers, (cwd, lowerdir) =>
        runCommand('mount', ['-t', 'overlay', '-o', `lowerdir=${lowerdir},${upper}`, 'overlay', rootfs], { cwd }),
      );
    return { image: held.config, mounts: [], overlay, mapped };
  }

  /** Returns undefined if the pod uses the host's user namespace. */
  async #mappedRoot(id: string, sandbox: SandboxRecord): Promise<MappedRoot | undefined> {
    const { paths } = this.#context;
    const { user } = namespaceFiles(paths, sandbox);
    if (user === undefined || sandbox.userNamespace === undefined) return undefined;
    const mapped = new MappedRoot(join(paths.mappedRoots, id), user, sandbox.userNamespace);
    await mapped.make();
    return mapped;
  }

  /** PID namespace of a running container. Throws if the container is not running. */
  async #pidNamespaceOf(id: string): Promise<string> {
    const record = this.#table.get(id);
    if (hasEnded(record) || !(await isRunning(record.pid, record.pidStart)))
      throw new RuntimeError(
        'create-failed',
        `container ${record.name}, whose process namespace is shared, is not running`,
      );
    return `/proc/${record.pid}/ns/pid`;
  }

  /** Moves a monitor to its own scope. A failure is only logged, because the monitor works without the move. */
  async #moveMonitor(id: string, pid: number): Promise<void> {
    await this.#context.deps.monitorScopes
      ?.scope(`hyperedge-conmon-${id}.scope`, { slice: MONITOR_SLICE, description: `monitor of container ${id}`, pid })
      .catch((error: unknown) =>
        this.#context.log.warn('container monitor not moved', { container: id, error: messageOf(error) }),
      );
  }

  async #mountList(
    sandbox: SandboxRecord,
    config: ContainerConfig,
    { mounts, mapped }: Root,
    hostRoot: boolean,
  ): Promise<readonly OciMount[]> {
    const nameService = (file: string): OciMount => ({
      destination: `/etc/${file}`,
      type: 'bind',
      source: join(this.#context.paths.sandboxes, sandbox.id, file),
      options: ['rbind', 'rprivate', config.security.readOnlyRootFilesystem ? 'ro' : 'rw'],
    });
    const system = systemMounts({
      shm: shmDirectory(this.#context.paths, sandbox),
      writableSys: config.security.privileged,
    });
    const files = hostRoot ? [] : [nameService('resolv.conf'), nameService('hostname')];
    const volumes = config.mounts.map(podMount);
    const own = mapped === undefined ? volumes : await together(volumes.map((each) => mapped.mapVolume(each)));
    return mergeMounts(system, mounts, files, own);
  }
}

async function deviceList(config: ContainerConfig): Promise<readonly (OciDevice & { readonly permissions: string })[]> {
  const requested = await Promise.all(
    config.devices.map(async (device) => ({
      ...(await hostDevice(device.hostPath, normalisePath(device.containerPath))),
      permissions: device.permissions,
    })),
  );
  if (!config.security.privileged) return requested;
  const own = new Set(requested.map(({ path }) => path));
  const all = (await allHostDevices()).filter(({ path }) => !own.has(path));
  return [...all.map((device) => ({ ...device, permissions: 'rwm' })), ...requested];
}
