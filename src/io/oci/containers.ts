/** The life of containers: creation under a monitor, start, end, removal; and what is remembered of them. */
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { HOST_ROOT_ID, hostRootRefusal, isHostRootImage } from '../../api/podspec/host-root-image.ts';
import { messageOf } from '../../base/errors.ts';
import { type ContainerConfig, type ContainerStatus, RuntimeError } from '../../core/podplan/port.ts';
import { cgroupsOf, wasOomKilled } from './cgroups.ts';
import { runCommand } from './command.ts';
import { createMonitored } from './conmon.ts';
import type { RuntimeContext } from './context.ts';
import { allHostDevices, hostDevice, type OciDevice } from './devices.ts';
import { removeExecCgroups } from './exec-cgroup.ts';
import { prepareHostRoot } from './host-root.ts';
import { createKeyedLock } from './keyed-lock.ts';
import { checkMounts } from './mount-guard.ts';
import { arrange, normalisePath, type OciMount, podMount, systemMounts } from './mounts.ts';
import type { ImageConfig } from './port.ts';
import { hasProcess, isRunning, processStart } from './processes.ts';
import { type ContainerRecord, loadRecords, newId, type SandboxRecord, saveEnd, saveRecord } from './records.ts';
import { namespacesFor, shmDirectory, unmountBelow } from './sandbox.ts';
import { buildSpec } from './spec.ts';
import { resolveUser } from './users.ts';

/** After SIGKILL a process may still sit in the kernel; beyond this its container is reported as stuck. */
const KILL_TIMEOUT_MS = 10_000;
const EXIT_OF_LOST = 255;
/** Where systemd keeps the host's own services: monitors are not charged to their pods. */
const MONITOR_SLICE = 'system.slice';

export interface Containers {
  /** Reads the records, settles what ended meanwhile and clears away creations cut short. */
  load(): Promise<void>;
  get(id: string): ContainerRecord;
  has(id: string): boolean;
  bundle(id: string): string;
  /** What the container writes into its root file system; nothing is there for a container on the host's root. */
  writableLayer(id: string): string;
  inSandbox(sandboxId: string): readonly ContainerRecord[];
  list(): Promise<readonly ContainerStatus[]>;
  create(sandbox: SandboxRecord, config: ContainerConfig): Promise<string>;
  start(id: string): Promise<void>;
  stop(id: string, graceSeconds: number): Promise<void>;
  remove(id: string): Promise<void>;
  /** The monitor left an exit code (or vanished): records the end and frees what the container held. */
  settle(id: string): Promise<void>;
  /** Containers whose monitor exited end without an exit file: this polls them. */
  settleUnmonitored(): Promise<void>;
  /** Resolves when the container has ended. */
  ended(id: string): Promise<void>;
}

/** How often a container that is being stopped is looked at beside waiting for its exit file. */
const LOOK_MS = 1_000;
const DISK_FULL = 'the disk is full: that containers have ended is only remembered in memory';
const NO_IMAGE_CONFIG: ImageConfig = { entrypoint: [], cmd: [], env: [], workingDir: '', user: '', stopSignal: '' };

export function createContainers(context: RuntimeContext): Containers {
  const { deps, paths, runc, log } = context;
  const records = new Map<string, ContainerRecord>();
  const locks = createKeyedLock();
  const endings = new Map<string, { readonly promise: Promise<void>; resolve: () => void }>();

  const bundle = (id: string): string => join(paths.containers, id);

  function get(id: string): ContainerRecord {
    const record = records.get(id);
    if (record === undefined) throw new RuntimeError('not-found', `container ${id} does not exist`);
    return record;
  }

  async function save(record: ContainerRecord): Promise<void> {
    await saveRecord(bundle(record.id), record);
    records.set(record.id, record);
  }

  const hasEnded = (record: ContainerRecord): boolean => record.finishedAtMs > 0;

  function ended(id: string): Promise<void> {
    const record = records.get(id);
    if (record === undefined || hasEnded(record)) return Promise.resolve();
    let ending = endings.get(id);
    if (ending === undefined) {
      let resolve: () => void = () => {};
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      ending = { promise, resolve };
      endings.set(id, ending);
    }
    return ending.promise;
  }

  function announceEnd(record: ContainerRecord): void {
    endings.get(record.id)?.resolve();
    endings.delete(record.id);
    context.changed(record.sandboxId);
  }

  /** The exit code that the monitor left, and when. */
  async function readExit(id: string): Promise<{ readonly code: number; readonly atMs: number } | undefined> {
    const path = join(paths.exits, id);
    try {
      const text = (await readFile(path, 'utf8')).trim();
      if (!/^-?\d+$/.test(text)) return undefined;
      return { code: Number(text), atMs: (await stat(path)).mtimeMs };
    } catch {
      return undefined;
    }
  }

  async function release(record: ContainerRecord): Promise<void> {
    if (record.bootId === context.bootId) {
      await removeExecCgroups(record.cgroups, deps.clock);
      await runc.deleteForce(record.id);
      if (record.overlay) await unmountBelow(join(bundle(record.id), 'rootfs'));
    }
  }

  const settle = (id: string): Promise<void> => locks.run(id, () => settleLocked(id));

  async function settleLocked(id: string): Promise<void> {
    const record = records.get(id);
    if (record === undefined || hasEnded(record)) return;
    const exit = await readExit(id);
    let outcome: Pick<ContainerRecord, 'exitCode' | 'reason' | 'message' | 'finishedAtMs'>;
    if (exit !== undefined) {
      const noted = await stat(join(bundle(id), 'oom')).then(
        () => true,
        () => false,
      );
      const oom = exit.code !== 0 && (noted || (await wasOomKilled(record.cgroups)));
      outcome = {
        exitCode: exit.code,
        finishedAtMs: exit.atMs,
        reason: oom ? 'OOMKilled' : exit.code === 0 ? 'Completed' : 'Error',
        message: '',
      };
    } else if (record.bootId !== context.bootId) {
      outcome = {
        exitCode: EXIT_OF_LOST,
        finishedAtMs: context.bootTimeMs,
        reason: 'Error',
        message: 'the host was restarted',
      };
    } else {
      if (await isRunning(record.pid, record.pidStart)) return;
      if (await isRunning(record.monitorPid, record.monitorStart)) return;
      // The monitor may have written its file between the two looks.
      if ((await readExit(id)) !== undefined) return settleLocked(id);
      outcome = {
        exitCode: 137,
        finishedAtMs: deps.clock.nowMs(),
        reason: 'Error',
        message: 'the container and its monitor were killed; its exit code is unknown',
      };
    }
    const finished = { ...record, ...outcome };
    if (!(await saveEnd(bundle(id), finished))) context.warnOnce(DISK_FULL);
    records.set(id, finished);
    announceEnd(finished);
    await release(finished).catch((error: unknown) => {
      log.warn('an ended container could not be cleared away; its removal tries again', {
        container: id,
        error: messageOf(error),
      });
    });
  }

  async function makeRoot(
    id: string,
    config: ContainerConfig,
  ): Promise<{ readonly image: ImageConfig; readonly mounts: readonly OciMount[]; readonly overlay: boolean }> {
    const directory = bundle(id);
    const rootfs = join(directory, 'rootfs');
    await mkdir(rootfs, { mode: 0o755 });
    if (config.hostRoot === true) {
      const visible = deps.hostRootVisible ?? [];
      const mounts = await prepareHostRoot(rootfs, join(directory, 'skeleton'), config.mounts, visible);
      return { image: NO_IMAGE_CONFIG, mounts, overlay: false };
    }
    const [held] = await Promise.all([
      deps.images.hold(config.imageId, id),
      mkdir(join(directory, 'upper'), { mode: 0o755 }),
      mkdir(join(directory, 'work'), { mode: 0o700 }),
    ]);
    const upper = `upperdir=${join(directory, 'upper')},workdir=${join(directory, 'work')}`;
    const options = held.layers.length === 0 ? undefined : `lowerdir=${held.layers.join(':')},${upper}`;
    if (options !== undefined)
      await runCommand('mount', ['-t', 'overlay', '-o', options, 'overlay', rootfs], { cwd: held.layerRoot });
    return { image: held.config, mounts: [], overlay: options !== undefined };
  }

  async function create(sandbox: SandboxRecord, config: ContainerConfig): Promise<string> {
    const hostRoot = config.hostRoot === true;
    if (!hostRoot && (isHostRootImage(config.imageId) || isHostRootImage(config.image)))
      throw new RuntimeError('create-failed', hostRootRefusal(`container ${config.name}`));
    const id = newId();
    const directory = bundle(id);
    const logPath = join(sandbox.logDirectory, config.logPath);
    await Promise.all([mkdir(directory, { mode: 0o700 }), mkdir(dirname(logPath), { recursive: true, mode: 0o755 })]);
    try {
      const [root, namespaces, devices] = await Promise.all([
        makeRoot(id, config),
        namespacesFor(paths, sandbox).then(async (own) =>
          config.pidNamespaceOf === undefined ? own : { ...own, pid: await pidNamespaceOf(config.pidNamespaceOf) },
        ),
        deviceList(config),
      ]);
      const user = await resolveUser(join(directory, 'rootfs'), root.image.user, config.security);
      if (context.affectedRuntime !== undefined && !hostRoot && !config.security.privileged)
        await checkMounts(join(directory, 'rootfs'), config.mounts, context.affectedRuntime);
      const { spec, warnings } = buildSpec({
        containerId: id,
        config,
        sandbox,
        image: root.image,
        user,
        devices,
        namespaces,
        mounts: mountList(sandbox, config, root.mounts, hostRoot),
        readOnlyRoot: hostRoot || config.security.readOnlyRootFilesystem,
        driver: deps.cgroupDriver,
        pureV2: context.cgroupMounts.pureV2,
        own: context.own,
        nodeArch: process.arch,
      });
      for (const warning of warnings) context.warnOnce(warning);
      await writeFile(join(directory, 'config.json'), JSON.stringify(spec), { mode: 0o600 });
      const created = await createMonitored({
        conmon: context.programs.conmon,
        runc,
        driver: deps.cgroupDriver,
        id,
        bundle: directory,
        exits: paths.exits,
        logPath,
        tty: config.tty,
        stdin: config.stdin,
        leaveStdinOpen: config.stdin && !config.stdinOnce,
      });
      const [pidStart, monitorStart, cgroups] = await Promise.all([
        processStart(created.pid),
        processStart(created.monitorPid),
        cgroupsOf(created.pid, context.cgroupMounts),
        moveMonitor(id, created.monitorPid),
      ]);
      await save({
        id,
        sandboxId: sandbox.id,
        bootId: context.bootId,
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
        pid: created.pid,
        user: { uid: user.uid, gid: user.gid, supplementalGroups: user.additionalGids },
        pidStart: pidStart ?? '',
        monitorPid: created.monitorPid,
        monitorStart: monitorStart ?? '',
        cgroups,
        overlay: root.overlay,
      });
      return id;
    } catch (error) {
      await discard(id);
      throw error instanceof RuntimeError
        ? error
        : new RuntimeError('create-failed', messageOf(error), { cause: error });
    }
  }

  /** Throws when the container does not run (any more). */
  async function pidNamespaceOf(id: string): Promise<string> {
    const record = get(id);
    if (hasEnded(record) || !(await isRunning(record.pid, record.pidStart)))
      throw new RuntimeError('create-failed', `container ${record.name}, whose processes are to be seen, does not run`);
    return `/proc/${record.pid}/ns/pid`;
  }

  /** A monitor that stays where it is does its work as well. */
  async function moveMonitor(id: string, pid: number): Promise<void> {
    await deps.monitorScopes
      ?.scope(`hyperedge-conmon-${id}.scope`, { slice: MONITOR_SLICE, description: `monitor of container ${id}`, pid })
      .catch((error: unknown) => log.warn('container monitor not moved', { container: id, error: messageOf(error) }));
  }

  function mountList(
    sandbox: SandboxRecord,
    config: ContainerConfig,
    rootMounts: readonly OciMount[],
    hostRoot: boolean,
  ): readonly OciMount[] {
    const nameService = (file: string): OciMount => ({
      destination: `/etc/${file}`,
      type: 'bind',
      source: join(paths.sandboxes, sandbox.id, file),
      options: ['rbind', 'rprivate', config.security.readOnlyRootFilesystem ? 'ro' : 'rw'],
    });
    const system = systemMounts({
      shm: shmDirectory(paths, sandbox),
      writableSys: config.security.privileged,
    });
    const files = hostRoot ? [] : [nameService('resolv.conf'), nameService('hostname')];
    return arrange(system, rootMounts, files, config.mounts.map(podMount));
  }

  /** Removes every trace of a container, whatever state its creation or life had reached. */
  async function discard(id: string): Promise<void> {
    const directory = bundle(id);
    const record = records.get(id);
    if (record !== undefined && record.bootId === context.bootId) await removeExecCgroups(record.cgroups, deps.clock);
    await runc
      .deleteForce(id)
      .catch((error: unknown) => log.v(2, 'runc delete', { container: id, error: messageOf(error) }));
    await unmountBelow(directory);
    await deps.trees.remove(directory);
    await Promise.all([rm(join(paths.exits, id), { force: true }), deps.images.release(id)]);
    records.delete(id);
  }

  function signal(record: ContainerRecord, name: NodeJS.Signals | number): Promise<void> {
    return isRunning(record.pid, record.pidStart).then((running) => {
      if (!running) return;
      try {
        process.kill(record.pid, name);
      } catch (error) {
        log.v(2, 'signal', { container: record.id, error: messageOf(error) });
      }
    });
  }

  /** Resolves true when the container ended within `timeoutMs`. */
  /**
   * The monitor's exit file tells of an end. On a full disk there is none, so the process is looked at as well, now and
   * then.
   */
  async function endsWithin(id: string, timeoutMs: number): Promise<boolean> {
    const over = ended(id).then(() => true);
    for (let leftMs = timeoutMs; leftMs > 0; leftMs -= LOOK_MS) {
      let expire: () => void = () => {};
      const expired = new Promise<boolean>((resolve) => {
        expire = () => resolve(false);
      });
      const timer = deps.clock.setTimer(Math.min(leftMs, LOOK_MS), expire);
      const outcome = await Promise.race([over, expired]);
      timer.cancel();
      if (outcome) return true;
      await settle(id);
    }
    const record = records.get(id);
    return record === undefined || hasEnded(record);
  }

  async function stop(id: string, graceSeconds: number): Promise<void> {
    const record = records.get(id);
    if (record === undefined) return;
    await settle(id);
    if (hasEnded(get(id))) return;
    // A container that was never started has no process of its own to be asked.
    if (graceSeconds > 0 && record.startedAtMs > 0) {
      await signal(record, stopSignal(record.stopSignal));
      if (await endsWithin(id, graceSeconds * 1000)) return;
    }
    await signal(record, 'SIGKILL');
    if (await endsWithin(id, KILL_TIMEOUT_MS)) return;
    // Without its own pid namespace other processes may have survived the first; and an exit file may have been missed.
    await runCommand(runc.path, [...runc.globalArgs, 'kill', '--all', id, 'KILL']).catch(() => {});
    await settle(id);
    if (!hasEnded(get(id))) throw new RuntimeError('internal', `container ${id} does not end after SIGKILL`);
  }

  return {
    get,
    has: (id) => records.has(id),
    bundle,
    writableLayer: (id) => join(bundle(id), 'upper'),
    create,
    stop,
    settle,
    ended,
    inSandbox: (sandboxId) => [...records.values()].filter((record) => record.sandboxId === sandboxId),

    async settleUnmonitored() {
      const unheard = [...records.values()].filter((record) => !hasEnded(record) && !hasProcess(record.monitorPid));
      await Promise.all(unheard.map((record) => settle(record.id)));
    },

    async load() {
      const { records: found, broken } = await loadRecords<ContainerRecord>(paths.containers);
      for (const record of found) records.set(record.id, record);
      for (const id of broken) await discard(id);
      await Promise.all(found.map((record) => settle(record.id)));
      // Execs of the previous run of this host: their clients and probes ended with it.
      const running = found.filter((record) => record.bootId === context.bootId && !hasEnded(get(record.id)));
      await Promise.all(running.map((record) => removeExecCgroups(record.cgroups, deps.clock)));
    },

    async list() {
      await Promise.all(
        [...records.values()].filter((record) => !hasEnded(record)).map((record) => settleIfGone(record)),
      );
      return [...records.values()].map(describe);
    },

    start: (id) =>
      locks.run(id, async () => {
        const record = get(id);
        if (record.startedAtMs > 0) return;
        try {
          await runc.start(id);
        } catch (error) {
          throw new RuntimeError('start-failed', messageOf(error), { cause: error });
        }
        await save({ ...record, startedAtMs: deps.clock.nowMs() });
        context.changed(record.sandboxId);
      }),

    async remove(id) {
      const record = records.get(id);
      if (record === undefined) return;
      await stop(id, 0);
      await locks.run(id, async () => {
        await discard(id);
        context.changed(record.sandboxId);
      });
    },
  };

  async function settleIfGone(record: ContainerRecord): Promise<void> {
    if (!(await isRunning(record.pid, record.pidStart))) await settle(record.id);
  }
}

async function deviceList(config: ContainerConfig): Promise<readonly (OciDevice & { readonly permissions: string })[]> {
  const asked = await Promise.all(
    config.devices.map(async (device) => ({
      ...(await hostDevice(device.hostPath, normalisePath(device.containerPath))),
      permissions: device.permissions,
    })),
  );
  if (!config.security.privileged) return asked;
  const own = new Set(asked.map(({ path }) => path));
  const all = (await allHostDevices()).filter(({ path }) => !own.has(path));
  return [...all.map((device) => ({ ...device, permissions: 'rwm' })), ...asked];
}

/** `SIGTERM`, `TERM`, `15` or `SIGRTMIN+3`; SIGTERM for what is none. */
function stopSignal(name: string): number {
  if (/^\d{1,2}$/.test(name) && Number(name) > 0 && Number(name) <= REAL_TIME.MAX) return Number(name);
  const upper = name.toUpperCase().replace(/^SIG/, '');
  const realTime = /^RT(MIN|MAX)(?:([+-])(\d{1,2}))?$/.exec(upper);
  if (realTime !== null) {
    const offset = Number(realTime[3] ?? 0) * (realTime[2] === '-' ? -1 : 1);
    const number = REAL_TIME[realTime[1] as keyof typeof REAL_TIME] + offset;
    if (number >= REAL_TIME.MIN && number <= REAL_TIME.MAX) return number;
  }
  return Object.entries(constants.signals).find(([key]) => key === `SIG${upper}`)?.[1] ?? constants.signals.SIGTERM;
}

/** As the C library counts them: the first two real-time signals are its own. */
const REAL_TIME = { MIN: 34, MAX: 64 } as const;

function describe(record: ContainerRecord): ContainerStatus {
  const state = record.finishedAtMs > 0 ? 'exited' : record.startedAtMs > 0 ? 'running' : 'created';
  return {
    id: record.id,
    sandboxId: record.sandboxId,
    name: record.name,
    attempt: record.attempt,
    image: record.image,
    imageId: record.imageId,
    state,
    createdAtMs: record.createdAtMs,
    startedAtMs: record.startedAtMs,
    finishedAtMs: record.finishedAtMs,
    exitCode: record.exitCode,
    reason: record.reason,
    message: record.message,
    logPath: record.logPath,
    pid: state === 'exited' ? 0 : record.pid,
    ...(record.user === undefined ? {} : { user: record.user }),
    ...(record.stopSignal === '' ? {} : { stopSignal: record.stopSignal }),
    labels: record.labels,
    annotations: record.annotations,
  };
}
