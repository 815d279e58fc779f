import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { HOST_ROOT_ID, isHostRootImage } from '../../api/podspec/host-root-image.ts';
import {
  type AttachOptions,
  type ByteStream,
  type ContainerConfig,
  type ContainerStats,
  type ContainerStatus,
  type ExecOptions,
  type ExecResult,
  type ExecSyncOptions,
  type ImageService,
  type LinuxResources,
  type ProcessStreams,
  type Runtime,
  RuntimeError,
  type RuntimeFeatures,
  type SandboxConfig,
  type SandboxStatus,
} from '../port.ts';
import { readCgroupMounts, readStats } from './cgroups.ts';
import { checkpoint } from './containers/checkpoint.ts';
import { Containers } from './containers/containers.ts';
import type { OciRuntimeDeps, RuntimeContext } from './containers/context.ts';
import { openHandlers } from './containers/handlers.ts';
import { HOST_ROOT_STATUS } from './containers/host-root.ts';
import { mountImage, unmountImage } from './containers/image-mounts.ts';
import { type ContainerRecord, makePaths, runtimePaths } from './containers/records.ts';
import { namespaceFiles } from './containers/sandbox.ts';
import { Sandboxes } from './containers/sandboxes.ts';
import { StartLimit } from './containers/start-limit.ts';
import { type ExecDeps, type ExecTarget, execInContainer, execToEnd } from './exec/exec.ts';
import { chargeToPod } from './exec/exec-cgroup.ts';
import { createKeyedLimit } from './keyed-limit.ts';
import { hasRecursiveAttributes, readBootId, readBootTimeMs, readOwnLimits } from './processes.ts';
import { findPrograms } from './programs.ts';
import { appArmorEnabled } from './spec/apparmor.ts';
import { whyNoUserNamespaces } from './spec/user-namespace.ts';
import { attachToContainer } from './streams/attach.ts';
import { reopenLog } from './streams/conmon.ts';
import { ExitWatch } from './streams/exit-watch.ts';
import { LogRate } from './streams/log-rate.ts';
import { connectInNamespace, connectOnHost } from './streams/port-connect.ts';

export interface OciRuntime extends Runtime {
  /**
   * Finds the programs, reads the records and adopts running containers. Must be called before all other methods.
   * Throws RuntimeError 'internal' with the name of what is missing.
   */
  start(): Promise<void>;
  /** Stops watching. Containers continue to run under their monitors. */
  stop(): Promise<void>;
}

/** Minimum number of concurrent creations of sandboxes and containers, for machines with few processors. */
const LEAST_STARTS = 4;
/** Concurrent exec starts per pod. */
const EXEC_STARTS_OF_POD = 2;

/** The embedded runtime: runc under conmon, sandboxes without a pause process. */
export function createOciRuntime(deps: OciRuntimeDeps): OciRuntime {
  return new EmbeddedRuntime(deps);
}

/** State that exists only between `start` and `stop`. */
interface Running {
  readonly context: RuntimeContext;
  readonly containers: Containers;
  readonly sandboxes: Sandboxes;
  readonly watch: ExitWatch;
  readonly logRate: LogRate;
}

class EmbeddedRuntime implements OciRuntime {
  readonly images: ImageService;
  readonly #deps: OciRuntimeDeps;
  readonly #listeners = new Set<(hint: { readonly sandboxId: string }) => void>();
  readonly #starts = createKeyedLimit(EXEC_STARTS_OF_POD);
  readonly #warned = new Set<string>();
  #running: Running | undefined;

  constructor(deps: OciRuntimeDeps) {
    this.#deps = deps;
    this.images = withHostRoot(deps.images);
  }

  async start(): Promise<void> {
    if (this.#running !== undefined) return;
    const context = await this.#open();
    const containers = new Containers(context);
    const sandboxes = new Sandboxes(context, containers);
    // Watching starts before the records are read, so that no exit is missed in between.
    const watch = new ExitWatch(context.paths.exits, this.#deps.watchPath, containers, this.#deps.clock, context.log);
    const logRate = new LogRate({ containers: () => containers.all(), clock: this.#deps.clock, log: context.log });
    this.#running = { context, containers, sandboxes, watch, logRate };
    try {
      await sandboxes.adopt();
      logRate.start();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const running = this.#running;
    running?.watch.close();
    running?.logRate.stop();
    this.#running = undefined;
    await running?.sandboxes.settled();
  }

  mountImage(imageId: string, target: string): Promise<void> {
    return mountImage(this.#deps.images, imageId, target);
  }

  unmountImage(target: string): Promise<void> {
    return unmountImage(this.#deps.images, target);
  }

  async #open(): Promise<RuntimeContext> {
    const deps = this.#deps;
    const log = deps.log.named('oci');
    const paths = runtimePaths(deps.stateRoot, deps.runRoot);
    const [programs, bootId, bootTimeMs, cgroupMounts, own] = await Promise.all([
      findPrograms(deps.programs),
      readBootId(),
      readBootTimeMs(),
      readCgroupMounts(),
      readOwnLimits(),
      makePaths(paths),
    ]);
    const handlers = await openHandlers({
      runc: programs.runc,
      more: deps.handlers ?? {},
      roots: { runc: paths.runcRoot, handlers: paths.handlers },
      driver: deps.cgroupDriver,
    });
    const standard = handlers.get('');
    const affectedRuntime = await standard.affected();
    if (affectedRuntime !== undefined)
      log.info('volumes over /dev, /proc and /sys are rejected: CVE-2025-31133', { runtime: affectedRuntime });
    const unmappable = await whyNoUserNamespaces();
    if (unmappable !== undefined) log.info('user namespaces for pods not available', { why: unmappable });
    const described = await handlers.describe({
      recursiveReadOnly: hasRecursiveAttributes(),
      userNamespaces: unmappable === undefined,
    });
    return {
      deps,
      log,
      paths,
      programs,
      runc: standard.runc,
      handlers,
      bootId,
      bootTimeMs,
      cgroupMounts,
      own,
      starts: new StartLimit(Math.max(LEAST_STARTS, 2 * availableParallelism()), deps.clock),
      features: {
        recursiveReadOnlyMounts: described[0]?.recursiveReadOnlyMounts === true,
        handlers: described,
        appArmor: await appArmorEnabled(),
        selinux: existsSync('/sys/fs/selinux/enforce'),
      },
      changed: (sandboxId) => {
        for (const listener of this.#listeners) listener({ sandboxId });
      },
      warnOnce: (text) => {
        if (this.#warned.has(text)) return;
        this.#warned.add(text);
        log.warn(text);
      },
    };
  }

  #up(): Running {
    if (this.#running === undefined) throw new RuntimeError('internal', 'the runtime has not been started');
    return this.#running;
  }

  async features(): Promise<RuntimeFeatures> {
    return this.#up().context.features;
  }

  async version(): Promise<{ readonly runtimeName: string; readonly runtimeVersion: string }> {
    return { runtimeName: 'runc', runtimeVersion: await this.#up().context.runc.version() };
  }

  async runPodSandbox(config: SandboxConfig): Promise<string> {
    return this.#up().sandboxes.run(config);
  }

  async stopPodSandbox(id: string): Promise<void> {
    await this.#up().sandboxes.stop(id);
  }

  async removePodSandbox(id: string): Promise<void> {
    await this.#up().sandboxes.remove(id);
  }

  async listPodSandboxes(): Promise<readonly SandboxStatus[]> {
    return this.#up().sandboxes.list();
  }

  async createContainer(sandboxId: string, config: ContainerConfig, signal?: AbortSignal): Promise<string> {
    const { containers, sandboxes } = this.#up();
    const sandbox = sandboxes.get(sandboxId);
    if (sandbox.stopped) throw new RuntimeError('create-failed', `pod sandbox ${sandboxId} has been stopped`);
    try {
      return await containers.create(sandbox, config, () => sandboxes.joined(sandboxId), signal);
    } catch (error) {
      throw (await sandboxes.failure(sandboxId)) ?? error;
    }
  }

  async startContainer(id: string): Promise<void> {
    await this.#up().containers.start(id);
  }

  async stopContainer(id: string, graceSeconds: number): Promise<void> {
    await this.#up().containers.stop(id, graceSeconds);
  }

  async removeContainer(id: string): Promise<void> {
    await this.#up().containers.remove(id);
  }

  async listContainers(): Promise<readonly ContainerStatus[]> {
    return this.#up().containers.list();
  }

  async execSync(id: string, command: readonly string[], options: ExecSyncOptions): Promise<ExecResult> {
    return execToEnd(this.#execDeps(id), this.#execTarget(id), command, options);
  }

  async exec(id: string, options: ExecOptions): Promise<ProcessStreams> {
    return execInContainer(this.#execDeps(id), this.#execTarget(id), options, { killsRest: false });
  }

  async attach(id: string, options: AttachOptions): Promise<ProcessStreams> {
    const { context, containers } = this.#up();
    const record = this.#runningContainer(id);
    const host = { socat: context.programs.socat, watchPath: this.#deps.watchPath };
    return attachToContainer(host, containers.bundle(id), record, options, containers.ended(id));
  }

  async portForward(sandboxId: string, port: number): Promise<ByteStream> {
    const { context, containers, sandboxes } = this.#up();
    const record = sandboxes.get(sandboxId);
    if (record.stopped) throw new RuntimeError('not-found', `pod sandbox ${sandboxId} has been stopped`);
    const { forwards } = sandboxes;
    const { net } = namespaceFiles(context.paths, record);
    if (net === undefined) return forwards.track(sandboxId, await connectOnHost(port));
    const charge = (pid: number): void => {
      const [container] = containers.inSandbox(sandboxId);
      if (container !== undefined) void chargeToPod(container.cgroups, pid);
    };
    return forwards.track(sandboxId, await connectInNamespace(context.programs.socat, net, port, charge));
  }

  async updateContainerResources(id: string, resources: LinuxResources): Promise<void> {
    const { context } = this.#up();
    const { runc } = context.handlers.of(this.#runningContainer(id));
    await runc.updateResources(id, resources, context.cgroupMounts.pureV2);
  }

  async containerStats(id: string): Promise<ContainerStats | undefined> {
    const record = this.#up().containers.get(id);
    return record.finishedAtMs > 0 ? undefined : readStats(record.cgroups, this.#deps.clock.nowMs());
  }

  async writableLayers(
    ids: readonly string[],
    options: { readonly unit: 'bytes' | 'inodes'; readonly timeoutMs: number },
  ): Promise<ReadonlyMap<string, number>> {
    const { containers, sandboxes } = this.#up();
    const known = ids.filter((id) => containers.has(id));
    // The sandbox's files are mounted into each of its containers.
    const places = (id: string): string[] => [
      containers.writableLayer(id),
      sandboxes.directory(containers.get(id).sandboxId),
    ];
    const used = await this.#deps.trees.usage([...new Set(known.flatMap(places))], options);
    return new Map(known.map((id) => [id, places(id).reduce((sum, path) => sum + (used.get(path) ?? 0), 0)]));
  }

  async checkpointContainer(id: string, location: string): Promise<void> {
    const { containers, context } = this.#up();
    const record = this.#runningContainer(id);
    const { runc } = context.handlers.of(record);
    const paths = { bundle: containers.bundle(id), upper: containers.writableLayer(id), location };
    await checkpoint({ runc, record, ...paths, trees: this.#deps.trees });
  }

  async reopenContainerLog(id: string): Promise<void> {
    const { containers } = this.#up();
    await reopenLog(containers.bundle(containers.get(id).id));
  }

  onChange(listener: (hint: { readonly sandboxId: string }) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #execDeps(id: string): ExecDeps {
    const { handlers, programs, paths } = this.#up().context;
    const { runc } = handlers.of(this.#up().containers.get(id));
    const { conmon, socat } = programs;
    return { runc, conmon, socat, execs: paths.execs, clock: this.#deps.clock, starts: this.#starts };
  }

  #execTarget(id: string): ExecTarget {
    const { cgroups, sandboxId } = this.#runningContainer(id);
    return { id, sandboxId, bundle: this.#up().containers.bundle(id), cgroups };
  }

  #runningContainer(id: string): ContainerRecord {
    const record = this.#up().containers.get(id);
    if (record.startedAtMs === 0 || record.finishedAtMs > 0)
      throw new RuntimeError('not-found', `container ${record.name} is not running`);
    return record;
  }
}

/** Adds the host-root image, which always exists and is never pulled. */
function withHostRoot(images: ImageService): ImageService {
  return {
    pull: (image, auth, onProgress) =>
      isHostRootImage(image) ? Promise.resolve(HOST_ROOT_ID) : images.pull(image, auth, onProgress),
    status: (image) => (isHostRootImage(image) ? Promise.resolve(HOST_ROOT_STATUS) : images.status(image)),
    list: async () => [HOST_ROOT_STATUS, ...(await images.list())],
    remove: (image) => (isHostRootImage(image) ? Promise.resolve() : images.remove(image)),
  };
}
