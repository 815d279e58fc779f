import type { Node, Service } from '../api/generated/core/v1.ts';
import type { Timer } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Quantity } from '../base/quantity.ts';
import type { Informer } from '../client/types.ts';
import type { ApiAccess, KubeletDeps } from './deps.ts';
import { NodeDevices } from './devices/node-devices.ts';
import { collectContainers, collectOrphans, ImageCollector } from './housekeeping/collection.ts';
import { EvictionManager } from './housekeeping/eviction.ts';
import { FileOperations } from './housekeeping/file-operations.ts';
import { LogRotation } from './housekeeping/log-rotation.ts';
import { StorageLimits } from './housekeeping/storage-limits.ts';
import { NodeAgent } from './node/node-agent.ts';
import { nodeFacts } from './node/node-facts.ts';
import { allocatableOf, capacityOf, nodeStatus } from './node/node-status.ts';
import { ImagePuller, pullVolumeImage } from './pods/containers/image-puller.ts';
import { openUserNamespaces } from './pods/containers/user-namespaces.ts';
import { isSystemCritical } from './pods/critical.ts';
import { PodDirectories } from './pods/directories.ts';
import { KubeletEvents } from './pods/events.ts';
import { PodManager } from './pods/pod-manager.ts';
import { RuntimeClasses } from './pods/runtime-classes.ts';
import { RuntimeView } from './pods/runtime-view.ts';
import type { PodServices } from './pods/services.ts';
import { StatusManager } from './pods/status-manager.ts';
import type { HostInfo } from './port.ts';
import { Prober } from './probes/prober.ts';
import { openContainerManager } from './resources/open.ts';
import { Placements } from './resources/placements.ts';
import { startCgroups } from './resources/start-cgroups.ts';
import { Access } from './server/access.ts';
import { KubeletServer } from './server/server.ts';
import { StatsProvider } from './server/stats.ts';
import { ShutdownManager } from './shutdown/manager.ts';
import { stopInStages } from './shutdown/stop-stages.ts';
import { followApiPods } from './sources/api-pods.ts';
import { directorySource, feedSource, type ManifestSource, urlSource } from './sources/manifest-sources.ts';
import { MirrorPods } from './sources/mirror-pods.ts';
import { makeVolumeRoot, type NodeVolumes, nodeVolumes, releaseVolumeRoot } from './volumes/compose.ts';
import { ConfigObjects } from './volumes/config-objects.ts';
import { VolumeManager } from './volumes/manager.ts';
import { TokenSource } from './volumes/tokens.ts';

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
  forgetBackOff(podUid: string): void;
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
    const parts = await assemble(deps);
    this.parts = parts;
    const { services, manager, mirrors, server, images, eviction } = parts;
    await services.view.start();
    await eviction.observe();
    await services.devices?.start();
    this.closers.push(async () => services.devices?.stop());
    this.closers.push(() => services.view.stop());
    this.port = await server.start();
    this.closers.push(() => server.stop());
    const sources = this.sources(manager);
    await Promise.all(sources.map((source) => source.start()));
    this.closers.push(...sources.map((source) => () => source.stop()), () => mirrors.stop());
    deps.log.info('kubelet started', {
      node: deps.config.nodeName,
      port: this.port,
      staticPods: manager.allStaticPods().length,
      cgroups: `${services.cgroups.driver}/${services.cgroups.version}`,
    });
    this.every('sync', deps.config.syncFrequencyMs, async () => {
      manager.wakeAll();
      mirrors.kick();
    });
    const rotation = new LogRotation(services);
    this.every('logs', deps.config.containerLogMonitorMs, () => rotation.rotate());
    if (services.containers.enabled) this.every('placements', PLACEMENTS_MS, () => parts.placements.apply());
    const limits = new StorageLimits(services, manager);
    this.every('sizes', STORAGE_LIMIT_MS, () => limits.enforce());
    this.every('eviction', deps.config.evictionMonitoringMs, () => eviction.synchronize());
    this.every('containers', COLLECTION_MS, async () => {
      await collectContainers(services);
      await collectOrphans(services, manager);
    });
    this.every('volumes', EXPANSION_MS, () => parts.volumes.expansion.run());
    this.every('usages', USAGE_MS, () => parts.volumes.usages.measure());
    this.every('images', IMAGE_COLLECTION_MS, () => images.collect());
    this.every('devices', DEVICES_MS, async () =>
      services.devices?.maintain(manager.knownPods(deps.api === undefined)),
    );
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

  forgetBackOff(podUid: string): void {
    this.parts?.manager.worker(podUid)?.forgetBackOff();
  }

  addressesChanged(): void {
    this.parts?.reportNode.current();
    this.parts?.manager.wakeAll();
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
    const { services, manager } = parts;
    // A stopping kubelet does not end its pods, so their statuses must not be reported as terminated.
    services.statuses.stop();
    if (options.stopPods === true) await stopInStages(manager, options.hurry);
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
    const { services, manager, mirrors, access, hostInfo, eviction } = parts;
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
      ...{ informers, manager },
      nodeName: deps.config.nodeName,
      clock: deps.clock,
      log: deps.log,
      onListed: (uids) => {
        services.config.retain(uids);
        services.tokens.retain(uids);
        mirrors.kick();
      },
    });
    services.serviceInformer.current = pods.services;
    services.nodeInformer.current = pods.nodes;
    this.closers.push(() => pods.stop());
    if (!deps.config.registerNode) {
      void this.followPlugins(parts);
      return;
    }
    const fileOperations = new FileOperations({
      ...{ host: deps.host, clock: deps.clock, log: deps.log, onChanged: () => agent.kick() },
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
          ...{ config: deps.config, info: hostInfo, pressures: eviction.pressures },
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
    parts.reportNode.current = () => agent.kick();
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

  /** Starts after registration, because drivers are reported on the Node. */
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
            .catch((error: unknown) => this.deps.log.warn('upkeep failed', { task: name, error: messageOf(error) }))
            .finally(arm);
        }),
      );
    };
    arm();
  }
}

interface Parts {
  readonly services: PodServices & {
    readonly serviceInformer: { current: Informer<Service> | undefined };
    readonly nodeInformer: { current: Informer<Node> | undefined };
  };
  readonly manager: PodManager;
  readonly mirrors: MirrorPods;
  readonly server: KubeletServer;
  readonly access: Access;
  readonly hostInfo: HostInfo;
  readonly images: ImageCollector;
  readonly eviction: EvictionManager;
  readonly placements: Placements;
  readonly volumes: NodeVolumes;
  readonly shutdown: ShutdownManager;
  /** Schedules a report of the Node's status. */
  readonly reportNode: { current: () => void };
}

/** Creates the parts of the kubelet and connects them. The cgroup levels exist afterwards. */
async function assemble(deps: KubeletDeps): Promise<Parts> {
  const { config, clock, log, random, runtime, host } = deps;
  const hostInfo = await host.info();
  const directories = new PodDirectories(config.paths, deps.trees);
  await makeVolumeRoot(deps);
  const disk = await host.fileSystem(config.paths.volumes);
  const allocatable: Readonly<Record<string, Quantity>> = allocatableOf(config, capacityOf(config, hostInfo, disk));
  const cgroups = await startCgroups(deps, hostInfo, allocatable);
  const [{ runtimeName }, features] = await Promise.all([runtime.version(), runtime.features()]);
  const serviceInformer: { current: Informer<Service> | undefined } = { current: undefined };
  const nodeInformer: { current: Informer<Node> | undefined } = { current: undefined };
  const reportNode = { current: () => {} };
  const events = new KubeletEvents();
  const tokens = new TokenSource({ clock, log: log.named('tokens'), lastKnown: deps.lastKnown });
  const configObjects = new ConfigObjects({
    ...{ clock, log: log.named('config'), lastKnown: deps.lastKnown },
    onChanged: (uid) => manager.worker(uid)?.configChanged(),
  });
  const devices = nodeDevices(deps, () => ({ services, manager, reportNode }));
  const volumes = nodeVolumes({
    pluginHandlers: devices?.pluginHandlers ?? new Map(),
    ...{ ...deps.volumes, directories, tokens, events, clock, random, log, nodeName: config.nodeName },
    ...{ files: deps.files, fileWatch: deps.fileWatch, mounts: deps.mounts },
    node: () => nodeInformer.current?.list()[0],
    ...{ runtime, host, trees: deps.trees },
    pod: (uid) => manager.worker(uid)?.pod,
    pullImage: (pod, source) => pullVolumeImage(services, pod, source),
  });
  const services: Parts['services'] = {
    config: configObjects,
    settings: config,
    runtime,
    view: new RuntimeView({ runtime, clock, log, onChanged: (uids) => manager.wake(uids) }),
    cgroups,
    containers: await openContainerManager(deps, () => placements.kick()),
    volumes: new VolumeManager({
      directories,
      ...{ files: deps.files.volumes, foreign: deps.files.foreign, mounts: deps.mounts },
      config: configObjects,
      plugins: volumes.plugins,
      tokens,
      clock,
      allocatable: () => allocatable,
      features,
    }),
    tokens,
    userNamespaces: await openUserNamespaces(deps, directories, features),
    puller: new ImagePuller(
      { images: runtime.images, clock, maxParallel: config.maxParallelImagePulls },
      () => manager.isCutOff,
    ),
    runtimeClasses: new RuntimeClasses(),
    ...{ probeNetwork: deps.probeNetwork, credentials: deps.credentials },
    prober: new Prober({
      runtime,
      network: deps.probeNetwork,
      clock,
      random,
      onVerdict: (uid) => manager.wake([uid]),
      event: (pod, container, reason, message) => events.pod(pod, 'Warning', reason, message, container),
    }),
    statuses: new StatusManager({ clock, log: log.named('status') }),
    events,
    directories,
    ...{ trees: deps.trees, devices },
    files: deps.files,
    host,
    hostInfo,
    get hostIps() {
      return config.nodeIps;
    },
    clock,
    log,
    serviceInformer,
    nodeInformer,
    runtimeFacts: () => ({ ...features, runtimeName }),
    allocatable: () => allocatable,
    services: () => serviceInformer.current?.list() ?? [],
    node: () => nodeInformer.current?.list()[0],
    addresses: addressesOf(config),
    otherPods: (pod) => manager.podsBeside(pod),
    underPressure: (pod) => shutdown.rejection() ?? eviction.rejection(pod, isSystemCritical(pod)),
    onFinished: (uid) => manager.ended(uid),
  };
  const manager = new PodManager(services, () => mirrors.kick());
  const mirrors = new MirrorPods({
    clock,
    log: log.named('mirror'),
    staticPods: () => manager.allStaticPods(),
    mirrors: () => manager.allMirrors(),
  });
  const access = new Access({ nodeName: config.nodeName, clock, log: log.named('server') });
  const server = new KubeletServer({
    listen: deps.listen,
    address: config.listen.address,
    port: config.listen.port,
    certificate: deps.servingCertificate,
    clientCa: deps.clientCa,
    access,
    pods: manager,
    view: services.view,
    runtime,
    ...{ streaming: deps.streaming, devices: services.devices },
    stats: new StatsProvider(services, manager, (uid) => volumes.usages.ofPod(uid)),
    config,
    ...{ probeMetrics: () => services.prober.metrics(), hostLogs: deps.hostLogs },
    files: deps.files.logs,
    fileWatch: deps.fileWatch,
    clock,
    log: log.named('server'),
  });
  const images = new ImageCollector(services, () => manager.knownPods(deps.api === undefined));
  const placements = new Placements(services, manager);
  const eviction = new EvictionManager({ services, pods: manager, images, onPressures: () => reportNode.current() });
  const shutdown = shutdownManager(deps, services, manager, () => reportNode.current());
  const upkeep = { images, eviction, placements, shutdown };
  return { services, manager, mirrors, server, access, hostInfo, reportNode, volumes, ...upkeep };
}

const shutdownManager = (
  { login, config, clock, log }: KubeletDeps,
  services: PodServices,
  pods: PodManager,
  onChanged: () => void,
): ShutdownManager =>
  new ShutdownManager({
    ...{ login, periods: config.shutdownPeriods, services, pods, clock, onChanged },
    log: log.named('shutdown'),
  });

/** Current addresses of a pod and its host for the Downward API. */
const addressesOf =
  (config: KubeletDeps['config']): PodServices['addresses'] =>
  (pod, { ips }) => ({
    podIps: pod.spec?.hostNetwork === true ? config.nodeIps : ips,
    hostIps: config.nodeIps,
  });

/** Returns undefined when no devices were passed in. Other parts are read lazily, because they do not exist yet. */
function nodeDevices(
  { devices, config, files, clock, log }: KubeletDeps,
  parts: () => Pick<Parts, 'services' | 'manager' | 'reportNode'>,
): NodeDevices | undefined {
  if (devices === undefined) return undefined;
  return new NodeDevices({
    ...devices,
    ...{ nodeName: config.nodeName, files, clock, log },
    pods: () => parts().manager.activePods(),
    onChanged: () => parts().reportNode.current(),
    node: () => parts().services.node(),
    warn: (reason, message) => {
      const node = parts().services.node();
      if (node !== undefined) parts().services.events.about(node, 'Warning', reason, message);
    },
    failPod: (uid, reason, message) => parts().manager.worker(uid)?.fail(reason, message),
    warnOfPod: (pod, reason, message) => parts().services.events.pod(pod, 'Warning', reason, message),
  });
}
