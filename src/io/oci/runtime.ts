import { watch } from 'node:fs';
import { access, constants, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HOST_ROOT_ID, isHostRootImage } from '../../api/podspec/host-root-image.ts';
import type { Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import {
  type ImageService,
  type Runtime,
  RuntimeError,
  type SandboxConfig,
  type SandboxStatus,
} from '../../core/podplan/port.ts';
import { attachToContainer } from './attach.ts';
import { readCgroupMounts, readStats } from './cgroups.ts';
import { childEnvironment } from './command.ts';
import { reopenLog } from './conmon.ts';
import { Containers } from './containers.ts';
import type { OciRuntimeDeps, RuntimeContext, RuntimePrograms } from './context.ts';
import { type ExecDeps, type ExecTarget, execInContainer, execToEnd } from './exec.ts';
import { chargeToPod } from './exec-cgroup.ts';
import { HOST_ROOT_STATUS } from './host-root.ts';
import { createKeyedLimit } from './keyed-limit.ts';
import { createKeyedLock } from './keyed-lock.ts';
import { isMountSafe } from './mount-guard.ts';
import { connectInNamespace, connectOnHost, createForwards } from './port-connect.ts';
import { hasRecursiveAttributes, isRunning, readBootId, readBootTimeMs, readOwnLimits } from './processes.ts';
import { loadRecords, makePaths, newId, runtimePaths, type SandboxRecord, saveEnd, saveRecord } from './records.ts';
import { createRunc } from './runc.ts';
import { arePinned, namespaceFiles, setUp, startPidHolder, tearDown, unmountBelow } from './sandbox.ts';

export interface OciRuntime extends Runtime {
  /**
   * Finds the programs, reads the records and adopts what still runs. Throws RuntimeError 'internal' naming what is
   * missing. Everything else may be called only after it.
   */
  start(): Promise<void>;
  /** Stops watching. Containers go on running under their monitors. */
  stop(): Promise<void>;
}

/** Of one pod at a time. */
const EXEC_STARTS_OF_POD = 2;
/** How soon the end of a container is seen whose monitor was killed. */
const UNMONITORED_LOOK_MS = 1_000;

/** The embedded runtime: runc under conmon, sandboxes without a pause process. */
export function createOciRuntime(deps: OciRuntimeDeps): OciRuntime {
  const log = deps.log.named('oci');
  const paths = runtimePaths(deps.stateRoot, deps.runRoot);
  const listeners = new Set<(hint: { readonly sandboxId: string }) => void>();
  const sandboxes = new Map<string, SandboxRecord>();
  const locks = createKeyedLock();
  const forwards = createForwards();
  const starts = createKeyedLimit(EXEC_STARTS_OF_POD);
  const warned = new Set<string>();
  let running:
    | { readonly context: RuntimeContext; readonly containers: Containers; readonly close: () => void }
    | undefined;

  const changed = (sandboxId: string): void => {
    for (const listener of listeners) listener({ sandboxId });
  };

  const up = () => {
    if (running === undefined) throw new RuntimeError('internal', 'the runtime has not been started');
    return running;
  };

  function sandboxOf(id: string): SandboxRecord {
    const record = sandboxes.get(id);
    if (record === undefined) throw new RuntimeError('not-found', `pod sandbox ${id} does not exist`);
    return record;
  }

  async function saveSandbox(record: SandboxRecord): Promise<void> {
    await saveRecord(join(paths.sandboxes, record.id), record);
    sandboxes.set(record.id, record);
  }

  async function saveStopped(record: SandboxRecord): Promise<void> {
    const stopped = { ...record, stopped: true };
    if (!(await saveEnd(join(paths.sandboxes, record.id), stopped))) {
      log.v(2, 'the disk is full: that a sandbox has stopped is only remembered in memory', { sandbox: record.id });
    }
    sandboxes.set(record.id, stopped);
  }

  async function start(): Promise<void> {
    if (running !== undefined) return;
    const [programs, bootId, bootTimeMs, cgroupMounts, own] = await Promise.all([
      findPrograms(deps.programs),
      readBootId(),
      readBootTimeMs(),
      readCgroupMounts(),
      readOwnLimits(),
      makePaths(paths),
    ]);
    const runc = createRunc(programs.runc, paths.runcRoot, deps.cgroupDriver);
    const runcVersion = await runc.versionText();
    const affectedRuntime = isMountSafe(runcVersion) ? undefined : runcVersion.split('\n')[0]?.replace(' version', '');
    if (affectedRuntime !== undefined)
      log.warn('volumes over /dev, /proc and /sys are refused: CVE-2025-31133', { runtime: affectedRuntime });
    const context: RuntimeContext = {
      deps,
      log,
      paths,
      programs,
      runc,
      affectedRuntime,
      bootId,
      bootTimeMs,
      cgroupMounts,
      own,
      features: { recursiveReadOnlyMounts: hasRecursiveAttributes() && (await runc.mountOptions()).includes('rro') },
      changed,
      warnOnce: (text) => {
        if (warned.has(text)) return;
        warned.add(text);
        log.warn(text);
      },
    };
    const containers = new Containers(context);
    // Watching begins before the records are read, so that no end falls between.
    const watcher = watch(paths.exits, (_event, file) => {
      if (file !== null && /^[0-9a-f]{64}$/.test(file)) {
        containers
          .settle(file)
          .catch((error: unknown) => log.warn('exit not recorded', { container: file, error: messageOf(error) }));
      }
    });
    watcher.on('error', (error) => log.error('watching for container exits failed', { error: messageOf(error) }));
    let looking: Timer | undefined;
    const look = (): void => {
      looking = deps.clock.setTimer(UNMONITORED_LOOK_MS, () => {
        containers
          .settleUnmonitored()
          .catch((error: unknown) => log.warn('containers without monitor', { error: messageOf(error) }))
          .finally(() => {
            if (looking !== undefined) look();
          });
      });
    };
    look();
    const close = (): void => {
      looking?.cancel();
      looking = undefined;
      watcher.close();
    };
    running = { context, containers, close };
    try {
      await adopt(context, containers);
    } catch (error) {
      running = undefined;
      close();
      throw error;
    }
  }

  async function adopt(context: RuntimeContext, containers: Containers): Promise<void> {
    const { records, broken } = await loadRecords<SandboxRecord>(paths.sandboxes);
    const stale = records.filter((record) => record.bootId !== context.bootId);
    if (stale.length > 0) {
      // Another boot's runc state describes processes that do not exist; pids in it may belong to others by now.
      await unmountBelow(paths.runSandboxes);
      for (const directory of [paths.runSandboxes, paths.runcRoot]) {
        for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
      }
    }
    for (const record of records) {
      sandboxes.set(record.id, record);
      if (record.stopped) continue;
      const sameBoot = record.bootId === context.bootId;
      // A host that is itself a container shares the boot id with the machine, and is started again without what it had
      // in /run.
      if (sameBoot && (await arePinned(namespaceFiles(paths, record)))) continue;
      if (sameBoot) {
        log.warn('namespaces of a pod are missing; re-creating its sandbox', {
          pod: `${record.namespace}/${record.name}`,
        });
        await tearDown(paths, context.runc, record);
      }
      await saveStopped(record);
    }
    for (const id of broken) {
      await tearDown(paths, context.runc, { id, pidHolder: { pid: 0, start: '' } });
      await rm(join(paths.sandboxes, id), { recursive: true, force: true });
    }
    for (const name of await readdir(paths.execs)) await rm(join(paths.execs, name), { recursive: true, force: true });
    await containers.load();
    const alive = new Set([...sandboxes.values()].filter((record) => !record.stopped).map((record) => record.id));
    await deps.network.retain(alive);
    log.v(2, 'runtime adopted', { sandboxes: sandboxes.size, alive: alive.size });
  }

  async function runPodSandbox(config: SandboxConfig): Promise<string> {
    const { context } = up();
    const id = newId();
    try {
      await setUp(paths, id, config);
      const files = namespaceFiles(paths, { id, hostNetwork: config.hostNetwork, hostIpc: config.hostIpc });
      const { uid, name, namespace, portMappings } = config;
      const [network, pidHolder] = await Promise.all([
        files.net === undefined
          ? { ips: [] }
          : deps.network.attach(files.net, { sandboxId: id, uid, name, namespace, portMappings }),
        config.shareProcessNamespace && !config.hostPid
          ? startPidHolder(paths, context.runc, id, config, deps.cgroupDriver, deps.clock)
          : undefined,
      ]);
      await saveSandbox({
        id,
        bootId: context.bootId,
        name,
        namespace,
        uid,
        attempt: config.attempt,
        hostname: config.hostname,
        labels: config.labels,
        annotations: config.annotations,
        logDirectory: config.logDirectory,
        cgroupParent: config.cgroupParent,
        hostNetwork: config.hostNetwork,
        hostPid: config.hostPid,
        hostIpc: config.hostIpc,
        portMappings,
        sysctls: config.sysctls,
        createdAtMs: deps.clock.nowMs(),
        ips: network.ips,
        pidHolder,
        stopped: false,
      });
      return id;
    } catch (error) {
      await deps.network.detach(id).catch(() => {});
      await tearDown(paths, context.runc, { id, pidHolder: { pid: 0, start: '' } });
      await rm(join(paths.sandboxes, id), { recursive: true, force: true });
      throw error instanceof RuntimeError
        ? error
        : new RuntimeError('create-failed', messageOf(error), { cause: error });
    }
  }

  async function stopSandboxLocked(id: string): Promise<void> {
    const { context, containers } = up();
    const record = sandboxes.get(id);
    if (record === undefined) return;
    await Promise.all(containers.inSandbox(id).map((container) => containers.stop(container.id, 0)));
    if (record.stopped) return;
    forwards.end(id);
    await deps.network.detach(id);
    await tearDown(paths, context.runc, record);
    await saveStopped({ ...record, ips: [] });
    changed(id);
  }

  async function describe(record: SandboxRecord): Promise<SandboxStatus> {
    const holderLost =
      record.pidHolder !== undefined && !(await isRunning(record.pidHolder.pid, record.pidHolder.start));
    return {
      id: record.id,
      name: record.name,
      namespace: record.namespace,
      uid: record.uid,
      attempt: record.attempt,
      state: record.stopped || holderLost ? 'notready' : 'ready',
      createdAtMs: record.createdAtMs,
      ips: record.ips,
      hostNetwork: record.hostNetwork,
      labels: record.labels,
      annotations: record.annotations,
    };
  }

  const execDeps = (): ExecDeps => {
    const { runc, programs } = up().context;
    return { runc, conmon: programs.conmon, socat: programs.socat, execs: paths.execs, clock: deps.clock, starts };
  };

  function runningContainer(id: string) {
    const { containers } = up();
    const record = containers.get(id);
    if (record.startedAtMs === 0 || record.finishedAtMs > 0)
      throw new RuntimeError('not-found', `container ${record.name} is not running`);
    return record;
  }

  const execTarget = (id: string): ExecTarget => {
    const { cgroups, sandboxId } = runningContainer(id);
    return { id, sandboxId, bundle: up().containers.bundle(id), cgroups };
  };

  return {
    start,

    async stop() {
      running?.close();
      running = undefined;
      await Promise.resolve();
    },

    features: async () => up().context.features,

    async version() {
      return { runtimeName: 'runc', runtimeVersion: await up().context.runc.version() };
    },

    runPodSandbox,
    stopPodSandbox: (id) => locks.run(id, () => stopSandboxLocked(id)),

    removePodSandbox: (id) =>
      locks.run(id, async () => {
        const { containers } = up();
        if (!sandboxes.has(id)) return;
        await stopSandboxLocked(id);
        await Promise.all(containers.inSandbox(id).map((container) => containers.remove(container.id)));
        await rm(join(paths.sandboxes, id), { recursive: true, force: true });
        sandboxes.delete(id);
        changed(id);
      }),

    listPodSandboxes: () => Promise.all([...sandboxes.values()].map(describe)),

    async createContainer(sandboxId, config) {
      const { containers } = up();
      const sandbox = sandboxOf(sandboxId);
      if (sandbox.stopped) throw new RuntimeError('create-failed', `pod sandbox ${sandboxId} has been stopped`);
      return containers.create(sandbox, config);
    },

    startContainer: (id) => up().containers.start(id),
    stopContainer: (id, graceSeconds) => up().containers.stop(id, graceSeconds),
    removeContainer: (id) => up().containers.remove(id),
    listContainers: () => up().containers.list(),

    async execSync(id, command, options) {
      return execToEnd(execDeps(), execTarget(id), command, options);
    },

    async exec(id, options) {
      return execInContainer(execDeps(), execTarget(id), options, { killsRest: false });
    },

    async attach(id, options) {
      const { context, containers } = up();
      const record = runningContainer(id);
      return attachToContainer(context.programs.socat, containers.bundle(id), record, options, containers.ended(id));
    },

    async portForward(sandboxId, port) {
      const { context, containers } = up();
      const record = sandboxOf(sandboxId);
      if (record.stopped) throw new RuntimeError('not-found', `pod sandbox ${sandboxId} has been stopped`);
      const { net } = namespaceFiles(paths, record);
      if (net === undefined) return forwards.track(sandboxId, await connectOnHost(port));
      const charge = (pid: number): void => {
        const [container] = containers.inSandbox(sandboxId);
        if (container !== undefined) void chargeToPod(container.cgroups, pid);
      };
      return forwards.track(sandboxId, await connectInNamespace(context.programs.socat, net, port, charge));
    },

    async updateContainerResources(id, resources) {
      const { context } = up();
      runningContainer(id);
      await context.runc.updateResources(id, resources, context.cgroupMounts.pureV2);
    },

    async containerStats(id) {
      const record = up().containers.get(id);
      return record.finishedAtMs > 0 ? undefined : readStats(record.cgroups, deps.clock.nowMs());
    },

    async writableLayers(ids, options) {
      const { containers } = up();
      const known = ids.filter((id) => containers.has(id));
      // The sandbox's files are mounted into each of its containers.
      const places = (id: string): string[] => [
        containers.writableLayer(id),
        join(paths.sandboxes, containers.get(id).sandboxId),
      ];
      const used = await deps.trees.usage([...new Set(known.flatMap(places))], options);
      return new Map(known.map((id) => [id, places(id).reduce((sum, path) => sum + (used.get(path) ?? 0), 0)]));
    },

    reopenContainerLog: (id) => {
      const { containers } = up();
      return reopenLog(containers.bundle(containers.get(id).id));
    },

    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },

    images: withHostRoot(deps.images),
  };
}

/** The host-root image is always there and never pulled. */
function withHostRoot(images: ImageService): ImageService {
  return {
    pull: (image, auth) => (isHostRootImage(image) ? Promise.resolve(HOST_ROOT_ID) : images.pull(image, auth)),
    status: (image) => (isHostRootImage(image) ? Promise.resolve(HOST_ROOT_STATUS) : images.status(image)),
    list: async () => [HOST_ROOT_STATUS, ...(await images.list())],
    remove: (image) => (isHostRootImage(image) ? Promise.resolve() : images.remove(image)),
  };
}

async function findPrograms(given: Partial<RuntimePrograms> = {}): Promise<RuntimePrograms> {
  const required = async (name: 'runc' | 'conmon'): Promise<string> => {
    const path = given[name] ?? (await findOnPath(name));
    if (path === undefined) throw new RuntimeError('internal', `${name} is not installed; install the package ${name}`);
    return path;
  };
  const [runc, conmon] = await Promise.all([required('runc'), required('conmon')]);
  return { runc, conmon, socat: given.socat ?? (await findOnPath('socat')) ?? 'socat' };
}

async function findOnPath(name: string): Promise<string | undefined> {
  for (const directory of (childEnvironment['PATH'] ?? '').split(':')) {
    const path = join(directory, name);
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return path;
  }
  return undefined;
}
