import type { Node, Pod } from '../api/generated/core/v1.ts';
import type { Uid } from '../base/brand.ts';
import { messageOf } from '../base/errors.ts';
import type { Timer } from '../base/time/clock.ts';
import { createParts, type Parts } from './create-parts.ts';
import type { ApiAccess, KubeletDeps } from './deps.ts';
import { FileOperations } from './housekeeping/file-operations.ts';
import { collectContainers, collectOrphans } from './housekeeping/garbage-collection.ts';
import { LogRotation } from './housekeeping/log-rotation.ts';
import { StorageLimits } from './housekeeping/storage-limits.ts';
import { NodeAgent } from './node/node-agent.ts';
import { nodeFacts } from './node/node-facts.ts';
import { nodeStatus } from './node/node-status.ts';
import type { RecentEvent } from './pods/events.ts';
import type { PodManager } from './pods/pod-manager.ts';
import { stopInStages } from './shutdown/stop-stages.ts';
import { followApiPods } from './sources/api-pods.ts';
import { directorySource, feedSource, type ManifestSource, urlSource } from './sources/manifest-sources.ts';
import { releaseVolumeRoot } from './volumes/compose.ts';

export interface Kubelet {
  /**
   * Creates the cgroup levels, adopts running pods of the runtime, starts reading the pod sources and starts the
   * server. Resolves when static pods are starting; does not wait for an API server. Rejects when the host cannot run
   * pods (no cgroups, port in use).
   */
  start(): Promise<void>;
  /**
   * Stops the kubelet and leaves the pods running. With `stopPods`, pods are stopped gracefully and start again at the
   * next start of the kubelet. When `hurry` is aborted, they are killed instead.
   */
  stop(options?: { readonly stopPods?: boolean; readonly hurry?: AbortSignal }): Promise<void>;
  /** Resets the restart back-off of a pod whose containers are needed now. */
  forgetBackOff(podUid: Uid): void;
  /** Reports `nodeIps` of the configuration immediately, for the node and its pods. */
  addressesChanged(): void;
  /** Uses the current result of `servingCertificate` for new connections. */
  reloadCertificate(): Promise<void>;
  /** Port of the HTTPS server, known after it listens. */
  readonly port: number;
  /** Resolves when the Node object was first reported Ready to the API server. */
  readonly nodeReady: Promise<void>;
  /** Ready condition of the Node as last reported. */
  readonly isNodeReady: boolean;
  /** Current pods and recent events; empty before the start. */
  report(): KubeletReport;
}

export interface KubeletReport {
  readonly pods: readonly Pod[];
  readonly events: readonly RecentEvent[];
}

/** Interval between checks for pods whose local storage is due for measurement. */
const STORAGE_LIMIT_MS = 500;
const COLLECTION_MS = 60_000;
/** Upstream's cpuManagerReconcilePeriod. */
const PLACEMENTS_MS = 10_000;
const IMAGE_COLLECTION_MS = 300_000;
/** Interval between releases of devices whose pods have left the node. */
const DEVICES_MS = 2_000;
/** Interval between checks of mounted claims for a new size. */
const EXPANSION_MS = 10_000;
/** Upstream's volumeStatsAggPeriod. */
const USAGE_MS = 60_000;

export function createKubelet(deps: KubeletDeps): Kubelet {
  return new NodeKubelet(deps);
}

class NodeKubelet implements Kubelet {
  port: number;
  readonly nodeReady: Promise<void>;
  private readonly deps: KubeletDeps;
  private readonly stopping = new AbortController();
  private readonly timers = new Map<string, Timer>();
  private readonly closers: (() => void | Promise<void>)[] = [];
  private becomeReady: () => void = () => {};
  private parts: Parts | undefined;
  private agent: NodeAgent | undefined;

  constructor(deps: KubeletDeps) {
    this.deps = deps;
    this.port = deps.config.listen.port;
    this.nodeReady = new Promise((resolve) => {
      this.becomeReady = resolve;
    });
  }

  async start(): Promise<void> {
    const { deps } = this;
    const parts = await createParts(deps);
    this.parts = parts;
    const { services, table, manager, mirrors, server, images, eviction } = parts;
    await services.view.start();
    await eviction.observe();
    await services.devices?.start();
    this.closers.push(async () => services.devices?.stop());
    this.closers.push(() => services.view.stop());
    await parts.history?.start();
    this.closers.push(async () => parts.history?.stop());
    this.port = await server.start();
    this.closers.push(() => server.stop());
    const sources = this.sources(manager);
    await Promise.all(sources.map((source) => source.start()));
    this.closers.push(...sources.map((source) => () => source.stop()), () => mirrors.stop());
    deps.log.info('kubelet started', {
      node: deps.config.nodeName,
      port: this.port,
      staticPods: table.allStaticPods().length,
      cgroups: `${services.cgroups.driver}/${services.cgroups.version}`,
    });
    this.every('sync', deps.config.syncFrequencyMs, async () => {
      table.wakeAll();
      mirrors.kick();
    });
    const rotation = new LogRotation(services);
    this.every('logs', deps.config.containerLogMonitorMs, () => rotation.rotate());
    if (services.containers.enabled) this.every('placements', PLACEMENTS_MS, () => parts.placements.apply());
    const limits = new StorageLimits(services, table);
    this.every('sizes', STORAGE_LIMIT_MS, () => limits.enforce());
    this.every('eviction', deps.config.evictionMonitoringMs, () => eviction.synchronize());
    this.every('containers', COLLECTION_MS, async () => {
      await collectContainers(services);
      await collectOrphans(services, table);
    });
    this.every('volumes', EXPANSION_MS, () => parts.volumes.expansion.run());
    this.every('usages', USAGE_MS, () => parts.volumes.usages.measure());
    this.every('images', IMAGE_COLLECTION_MS, () => images.collect());
    this.every('devices', DEVICES_MS, async () => services.devices?.maintain(table.knownPods(deps.api === undefined)));
    if (deps.api !== undefined) {
      parts.shutdown.start();
      this.closers.push(() => parts.shutdown.stop());
      Promise.resolve(deps.api).then(
        (api) => this.connect(api, parts),
        (error: unknown) => deps.log.error('no access to the API server', { error: messageOf(error) }),
      );
    }
  }

  get isNodeReady(): boolean {
    return this.agent?.isReady ?? false;
  }

  report(): KubeletReport {
    if (this.parts === undefined) return { pods: [], events: [] };
    const { table, services } = this.parts;
    return {
      pods: table.workers().map((worker) => ({ ...worker.pod, status: worker.status })),
      events: services.events.recent(),
    };
  }

  forgetBackOff(podUid: Uid): void {
    this.parts?.table.worker(podUid)?.forgetBackOff();
  }

  addressesChanged(): void {
    this.parts?.nodeChanged.emit();
    this.parts?.table.wakeAll();
  }

  async reloadCertificate(): Promise<void> {
    await this.parts?.server.reload();
  }

  async stop(options: { readonly stopPods?: boolean; readonly hurry?: AbortSignal } = {}): Promise<void> {
    if (this.stopping.signal.aborted) return;
    this.stopping.abort();
    for (const timer of this.timers.values()) timer.cancel();
    const { parts } = this;
    if (parts === undefined) return;
    const { services, table, manager } = parts;
    // A stopping kubelet does not end its pods, so their statuses must not be reported as terminated.
    services.statuses.stop();
    if (options.stopPods === true) await stopInStages(table, options.hurry);
    manager.stop();
    services.prober.stop();
    services.config.stop();
    for (const close of this.closers.reverse()) await close();
    if (options.stopPods === true) await releaseVolumeRoot(this.deps);
  }

  private sources(manager: PodManager): ManifestSource[] {
    const { config, clock, log, fileWatch, files, feeds = [] } = this.deps;
    const shared = {
      manifests: files.manifests,
      nodeName: config.nodeName,
      frequencyMs: config.fileCheckFrequencyMs,
      clock,
      log,
    };
    const sources = [
      directorySource({
        ...shared,
        path: config.paths.staticPods,
        fileWatch,
        onPods: (pods) => manager.setStaticPods('file', pods),
      }),
    ];
    if (config.manifestUrl !== undefined) {
      sources.push(
        urlSource({ ...shared, url: config.manifestUrl, onPods: (pods) => manager.setStaticPods('http', pods) }),
      );
    }
    for (const feed of feeds) {
      sources.push(feedSource({ ...shared, feed, onPods: (pods) => manager.setStaticPods(feed.source, pods) }));
    }
    return sources;
  }

  private connect(api: ApiAccess, parts: Parts): void {
    if (this.stopping.signal.aborted) return;
    const { deps } = this;
    const { services, manager, mirrors, access, hostInfo, eviction, nodeChanged } = parts;
    const { client, informers, recorder } = api;
    services.events.connect(recorder);
    services.config.connect(client);
    services.volumes.connect(client);
    parts.volumes.expansion.connect(client);
    services.tokens.connect(client);
    services.runtimeClasses.connect(client);
    services.statuses.connect(client);
    services.devices?.connect(client);
    access.connect(client);
    const pods = followApiPods({
      informers,
      manager,
      nodeName: deps.config.nodeName,
      clock: deps.clock,
      log: deps.log,
      onListed: (uids) => {
        services.config.retain(uids);
        services.tokens.retain(uids);
        mirrors.kick();
      },
    });
    parts.objects.follow(pods);
    this.closers.push(() => pods.stop());
    if (!deps.config.registerNode) {
      void this.followPlugins(parts);
      return;
    }
    const fileOperations = new FileOperations({
      host: deps.host,
      clock: deps.clock,
      log: deps.log,
      onChanged: nodeChanged.emit,
    });
    const facts = nodeFacts(deps, fileOperations);
    const agent = new NodeAgent({
      config: deps.config,
      info: hostInfo,
      client,
      events: services.events,
      clock: deps.clock,
      log: deps.log,
      status: async (previous) =>
        nodeStatus({
          ...(await facts(new Set(previous.map(({ type }) => type)))),
          config: deps.config,
          info: hostInfo,
          pressures: eviction.pressures,
          features: services.runtimeFacts(),
          port: this.port,
          ...(services.devices === undefined ? {} : { devices: services.devices.amounts() }),
          notReady: parts.shutdown.notReady ?? fileOperations.problem() ?? services.view.failure ?? deps.notReady?.(),
          previous,
          nowMs: deps.clock.nowMs(),
        }),
      volumesInUse: () => parts.volumes.inUse(),
      onRegistered: (node) => {
        mirrors.connect(client, node);
        void this.followPlugins(parts);
      },
      onReady: () => this.becomeReady(),
    });
    this.agent = agent;
    nodeChanged.add(() => agent.kick());
    const observe = (node: Node): void => {
      agent.observe(node);
      parts.volumes.nodeChanged();
    };
    const unfollow = pods.nodes.onChange({ added: observe, updated: observe });
    fileOperations.start();
    this.closers.push(() => fileOperations.stop());
    this.closers.push(() => agent.stop(), unfollow);
    void agent.start();
  }

  /**
   * Starts watching for volume and device plug-ins. Called after the Node is registered, because CSI drivers are
   * reported on the Node.
   */
  private async followPlugins({ services, volumes }: Parts): Promise<void> {
    const { plugins, pluginRegistry } = services.directories;
    for (const path of [plugins, pluginRegistry]) await services.files.pods.makeDirectory(path, 0o750);
    if (this.stopping.signal.aborted) return;
    volumes.start();
    this.closers.push(() => volumes.stop());
  }

  private every(name: string, periodMs: number, work: () => Promise<void>): void {
    const arm = (): void => {
      if (this.stopping.signal.aborted) return;
      this.timers.set(
        name,
        this.deps.clock.setTimer(periodMs, () => {
          work()
            .catch((error: unknown) =>
              this.deps.log.warn('maintenance task failed', { task: name, error: messageOf(error) }),
            )
            .finally(arm);
        }),
      );
    };
    arm();
  }
}
