/**
 * Parts of the kubelet in the order of their construction: each part receives only parts that exist already. Two things
 * make that possible: the table of pods comes first and is filled by the PodManager, which comes last; and a part whose
 * changes concern a later one emits them to listeners (`nodeChanged`, `cpusChanged`).
 */

import { Listeners } from '../base/listeners.ts';
import type { Quantity } from '../base/quantity.ts';
import type { RuntimeFeatures } from '../runtime/port.ts';
import type { KubeletDeps } from './deps.ts';
import { NodeDevices } from './devices/node-devices.ts';
import { UsageRecorder } from './history/recorder.ts';
import { EvictionManager } from './housekeeping/eviction.ts';
import { ImageCollector } from './housekeeping/garbage-collection.ts';
import { allocatableOf, capacityOf } from './node/node-status.ts';
import { ImagePuller, pullVolumeImage } from './pods/containers/image-puller.ts';
import { openUserNamespaces } from './pods/containers/user-namespaces.ts';
import { isSystemCritical } from './pods/critical.ts';
import { PodDirectories } from './pods/directories.ts';
import { KubeletEvents } from './pods/events.ts';
import { PodManager } from './pods/pod-manager.ts';
import { PodTable } from './pods/pod-table.ts';
import { RuntimeClasses } from './pods/runtime-classes.ts';
import { RuntimeView } from './pods/runtime-view.ts';
import type { PodServices } from './pods/services.ts';
import { StatusManager } from './pods/status-manager.ts';
import type { HostInfo } from './port.ts';
import { Prober } from './probes/prober.ts';
import type { PodCgroups } from './resources/cgroups.ts';
import { openContainerManager } from './resources/open.ts';
import { Placements } from './resources/placements.ts';
import { startCgroups } from './resources/start-cgroups.ts';
import { Access } from './server/access.ts';
import { KubeletServer } from './server/server.ts';
import { StatsProvider } from './server/stats.ts';
import { ShutdownManager } from './shutdown/manager.ts';
import { ApiObjects } from './sources/api-objects.ts';
import { MirrorPods } from './sources/mirror-pods.ts';
import { makeVolumeRoot, type NodeVolumes, nodeVolumes } from './volumes/compose.ts';
import { ConfigObjects } from './volumes/config-objects.ts';
import { VolumeManager } from './volumes/manager.ts';
import { TokenSource } from './volumes/tokens.ts';

export interface Parts {
  readonly services: PodServices;
  readonly hostInfo: HostInfo;
  readonly table: PodTable;
  readonly objects: ApiObjects;
  /** Emitted when the status of the Node should be reported. */
  readonly nodeChanged: Listeners<void>;
  readonly volumes: NodeVolumes;
  readonly placements: Placements;
  readonly images: ImageCollector;
  readonly eviction: EvictionManager;
  readonly shutdown: ShutdownManager;
  readonly mirrors: MirrorPods;
  readonly manager: PodManager;
  readonly access: Access;
  readonly server: KubeletServer;
  readonly history: UsageRecorder | undefined;
}

/** The host as it was when the kubelet started. */
interface Host {
  readonly info: HostInfo;
  readonly directories: PodDirectories;
  readonly allocatable: Readonly<Record<string, Quantity>>;
  readonly cgroups: PodCgroups;
  readonly features: RuntimeFeatures;
  readonly runtimeName: string;
}

/** Creates the directory of volumes and the cgroup levels. */
async function openHost(deps: KubeletDeps): Promise<Host> {
  const { config, host, runtime } = deps;
  const info = await host.info();
  const directories = new PodDirectories(config.paths, deps.trees);
  await makeVolumeRoot(deps);
  const disk = await host.fileSystem(config.paths.volumes);
  const allocatable = allocatableOf(config, capacityOf(config, info, disk));
  const cgroups = await startCgroups(deps, info, allocatable);
  const [{ runtimeName }, features] = await Promise.all([runtime.version(), runtime.features()]);
  return { info, directories, allocatable, cgroups, features, runtimeName };
}

/** Creates the parts without starting them. The cgroup levels exist afterwards. */
export async function createParts(deps: KubeletDeps): Promise<Parts> {
  const { config, clock, log, runtime } = deps;
  const host = await openHost(deps);
  const table = new PodTable();
  const objects = new ApiObjects();
  const nodeChanged = new Listeners<void>();
  const cpusChanged = new Listeners<void>();
  const { shared, volumes } = await createShared(deps, host, { table, objects, nodeChanged, cpusChanged });

  const placements = new Placements(shared, table);
  cpusChanged.add(() => placements.kick());
  const images = new ImageCollector(shared, () => table.knownPods(deps.api === undefined));
  const eviction = new EvictionManager({ services: shared, pods: table, images, onPressures: nodeChanged.emit });
  const shutdown = new ShutdownManager({
    login: deps.login,
    periods: config.shutdownPeriods,
    services: shared,
    pods: table,
    clock,
    onChanged: nodeChanged.emit,
    log: log.named('shutdown'),
  });
  const services: PodServices = {
    ...shared,
    underPressure: (pod) => shutdown.rejection() ?? eviction.rejection(pod, isSystemCritical(pod)),
  };
  const mirrors = new MirrorPods({
    clock,
    log: log.named('mirror'),
    staticPods: () => table.allStaticPods(),
    mirrors: () => table.allMirrors(),
  });
  const manager = new PodManager(services, table, () => mirrors.kick());
  const access = new Access({ nodeName: config.nodeName, clock, log: log.named('server') });
  const stats = new StatsProvider(services, table, (uid) => volumes.usages.ofPod(uid));
  const history =
    deps.history === undefined
      ? undefined
      : new UsageRecorder({
          ...deps.history,
          nodeName: config.nodeName,
          cgroupRoot: config.cgroupRoot,
          measure: () => stats.measure(),
          cgroups: services.cgroups,
          clock,
          log: log.named('history'),
        });
  const server = new KubeletServer({
    listen: deps.listen,
    address: config.listen.address,
    port: config.listen.port,
    certificate: deps.servingCertificate,
    clientCa: deps.clientCa,
    access,
    pods: table,
    view: services.view,
    runtime,
    streaming: deps.streaming,
    devices: services.devices,
    stats,
    history,
    config,
    probeMetrics: () => services.prober.metrics(),
    moreMetrics: deps.moreMetrics ?? (() => ''),
    hostLogs: deps.hostLogs,
    administration: deps.administration,
    doctor: deps.hostDoctor,
    files: deps.files.logs,
    fileWatch: deps.fileWatch,
    clock,
    log: log.named('server'),
  });
  const node = { hostInfo: host.info, table, objects, nodeChanged };
  return {
    services,
    ...node,
    volumes,
    placements,
    images,
    eviction,
    shutdown,
    mirrors,
    manager,
    access,
    server,
    history,
  };
}

interface Base {
  readonly table: PodTable;
  readonly objects: ApiObjects;
  readonly nodeChanged: Listeners<void>;
  /** Emitted when containers may have to move to other CPUs. */
  readonly cpusChanged: Listeners<void>;
}

/** Creates the services that do not depend on node policies such as eviction. */
async function createShared(
  deps: KubeletDeps,
  { info, directories, allocatable, cgroups, features, runtimeName }: Host,
  { table, objects, nodeChanged, cpusChanged }: Base,
): Promise<{ readonly shared: Omit<PodServices, 'underPressure'>; readonly volumes: NodeVolumes }> {
  const { config, clock, log, random, runtime, credentials, lastKnown } = deps;
  const node = objects.node.bind(objects);
  const events = new KubeletEvents(deps.clock);
  const tokens = new TokenSource({ clock, log: log.named('tokens'), lastKnown });
  const configObjects = new ConfigObjects({
    clock,
    log: log.named('config'),
    lastKnown,
    onChanged: (uid) => table.worker(uid)?.configChanged(),
  });
  const puller = new ImagePuller(
    { images: runtime.images, clock, maxParallel: config.maxParallelImagePulls },
    () => table.isCutOff,
  );
  const devices = createDevices(deps, { table, objects, nodeChanged, events });
  const volumes = nodeVolumes({
    ...deps.volumes,
    directories,
    tokens,
    events,
    clock,
    random,
    log,
    node,
    runtime,
    nodeName: config.nodeName,
    files: deps.files,
    fileWatch: deps.fileWatch,
    mounts: deps.mounts,
    host: deps.host,
    trees: deps.trees,
    pluginHandlers: devices?.pluginHandlers ?? new Map(),
    pod: (uid) => table.worker(uid)?.pod,
    pullImage: (pod, source) => pullVolumeImage({ puller, config: configObjects, credentials, events }, pod, source),
  });
  const shared: Omit<PodServices, 'underPressure'> = {
    clock,
    log,
    runtime,
    credentials,
    cgroups,
    tokens,
    puller,
    events,
    directories,
    devices,
    node,
    files: deps.files,
    trees: deps.trees,
    host: deps.host,
    probeNetwork: deps.probeNetwork,
    settings: config,
    config: configObjects,
    hostInfo: info,
    view: new RuntimeView({ runtime, clock, log, onChanged: (uids) => table.wake(uids) }),
    containers: await openContainerManager(deps, cpusChanged.emit),
    userNamespaces: await openUserNamespaces(deps, directories, features),
    runtimeClasses: new RuntimeClasses(),
    statuses: new StatusManager({ clock, log: log.named('status') }),
    prober: new Prober({
      runtime,
      network: deps.probeNetwork,
      clock,
      random,
      onResult: (uid) => table.wake([uid]),
      event: (pod, container, reason, message) => events.pod(pod, 'Warning', reason, message, container),
    }),
    volumes: new VolumeManager({
      directories,
      config: configObjects,
      plugins: volumes.plugins,
      tokens,
      clock,
      features,
      files: deps.files.volumes,
      foreign: deps.files.foreign,
      mounts: deps.mounts,
      allocatable: () => allocatable,
    }),
    runtimeFacts: () => ({ ...features, runtimeName }),
    allocatable: () => allocatable,
    services: () => objects.services(),
    addresses: (pod, { ips }) => ({
      podIps: pod.spec?.hostNetwork === true ? config.nodeIps : ips,
      hostIps: config.nodeIps,
    }),
    otherPods: (pod) => table.otherPods(pod),
  };
  return { shared, volumes };
}

/** Returns undefined when no devices were passed in. */
function createDevices(
  { devices, config, files, clock, log }: KubeletDeps,
  { table, objects, nodeChanged, events }: Omit<Base, 'cpusChanged'> & { readonly events: KubeletEvents },
): NodeDevices | undefined {
  if (devices === undefined) return undefined;
  return new NodeDevices({
    ...devices,
    nodeName: config.nodeName,
    files,
    clock,
    log,
    pods: () => table.activePods(),
    onChanged: nodeChanged.emit,
    node: () => objects.node(),
    warn: (reason, message) => {
      const node = objects.node();
      if (node !== undefined) events.about(node, 'Warning', reason, message);
    },
    failPod: (uid, reason, message) => table.worker(uid)?.fail(reason, message),
    warnOfPod: (pod, reason, message) => events.pod(pod, 'Warning', reason, message),
  });
}
