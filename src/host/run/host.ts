/**
 * `hyperedge run`: the host process. Order of start: settings, lock, files, kubelet (which starts the control plane as
 * static pods), then pod network and service proxy, which wait for the API server.
 */
import { readFile } from 'node:fs/promises';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { APPROVED_ANNOTATION } from '../../api/kinds/nodes/nodes/serving-addresses.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createEventRecorder, type EventRecorder, type InformerFactory, type LastKnown } from '../../client/index.ts';
import { createKubelet, type Kubelet, keepNodeRoleLabels } from '../../kubelet/index.ts';
import { createCgroupFileSystem } from '../../kubelet/io/cgroupfs/index.ts';
import { createKubeletFiles } from '../../kubelet/io/files/index.ts';
import {
  createFileWatch,
  createHostFacts,
  createMounter,
  raiseWatchLimits,
} from '../../kubelet/io/host-facts/index.ts';
import { listenKubelet } from '../../kubelet/io/kubelet-listener.ts';
import { probeNetwork } from '../../kubelet/io/probing/index.ts';
import { createStreamingServer } from '../../kubelet/io/streaming/server.ts';
import { createLoginManager, createServiceManager, type ServiceManager } from '../../kubelet/io/systemd/index.ts';
import { recordHostNetwork } from '../../network/pods/io/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { storeConditions } from '../../store/administration/fallback.ts';
import { type ScheduledSnapshots, scheduleSnapshots } from '../../store/administration/schedule.ts';
import { readSchedule } from '../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { type NodeCertificates, nodeCertificates } from '../certificates/node-certificates.ts';
import { checkPrivateFiles } from '../certificates/private-files.ts';
import { joinMasters, publishKeyring } from '../certificates/ring-keyring.ts';
import { resolvedLinks } from '../config/data-links.ts';
import { nodeConfigOf } from '../config/generate.ts';
import { type NodeConfig, readNodeConfig } from '../config/node-config.ts';
import { withPoolSettings } from '../config/pool-settings.ts';
import type { Settings } from '../config/settings.ts';
import { serveControl } from '../control/control.ts';
import { controlHandlers } from '../control/control-handlers.ts';
import { hostLogsOf } from '../control/host-logs.ts';
import { manifestFeeds } from '../control/manifest-feeds.ts';
import { openSubmittedPods, type SubmittedPods } from '../control/submitted-pods.ts';
import { keepMountOrder } from '../install/mount-drop-in.ts';
import { holdAddresses } from '../network/balanced-addresses.ts';
import { followApiServers, isOwnAddress, isPortKept, startBalancer } from '../network/balancer.ts';
import { startGossip } from '../network/gossip.ts';
import { networkRecordOf } from '../network/host-network.ts';
import { createNetworkRestorer, type NetworkRestorer, networkConditions } from '../network/network-restorer.ts';
import { startNetworkServices } from '../network/network-services.ts';
import { createNodeAddresses, type NodeAddresses } from '../network/node-addresses.ts';
import { followOwnAddress } from '../network/own-address.ts';
import { allPorts, ownPorts } from '../network/own-ports.ts';
import { followPodNetwork, type PodNetworkFollower } from '../network/pod-network.ts';
import { checkPorts, runningComponents } from '../network/port-check.ts';
import { startRouter } from '../network/router.ts';
import { type CgroupDriver, chooseCgroupDriver } from '../node/cgroup-driver.ts';
import { credentialProviders } from '../node/credentials.ts';
import { hostDevices } from '../node/devices.ts';
import { kubeletConfigOf } from '../node/kubelet-config.ts';
import { followHostGroup } from '../node/node-groups.ts';
import { restartableKubelet } from '../node/restartable-kubelet.ts';
import { type HostRuntime, startRuntime } from '../node/runtime.ts';
import { followSettings } from '../node/shown-settings.ts';
import { foreignPaths } from '../node/volume-calls.ts';
import { linkDriverRoot, volumeDeps } from '../node/volumes.ts';
import { replayMachineConfig } from '../openshift/machine-config-daemon.ts';
import { type ControlPlaneRevisions, prepareRevisions } from '../openshift/revisions.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { openAssets, selfCommand } from '../process/assets.ts';
import { useHelpers } from '../process/helpers.ts';
import { systemClock as clock, systemRandom as random, within } from '../process/process.ts';
import { takeInChild } from '../store/snapshot-child.ts';
import { storeFiles } from '../store/store-files.ts';
import { checkStorePresent, recordCluster } from './cluster-identity.ts';
import { type DiskReserve, openDiskReserve } from './disk-reserve.ts';
import { startEmbedded } from './embedded.ts';
import { isMachineShuttingDown, stopInTime } from './host-stop.ts';
import { type InstanceLock, takeInstanceLock } from './instance-lock.ts';
import { openLastKnown } from './last-known.ts';
import { settingsOnceJoined } from './once-joined.ts';
import { installHost } from './prepare-files.ts';
import type { Progress } from './progress.ts';
import { openTrustedTime, type TrustedTime } from './trusted-time.ts';
import { followVersions, type VersionFollower } from './version-skew.ts';

export interface Host {
  /** Resolves when the Node object was first reported Ready. */
  readonly ready: Promise<void>;
  /** Path of the administrator's kubeconfig; undefined on a host that is not a master. */
  readonly kubeconfig: string | undefined;
  /** True once a reset or uninstall has requested that the stop ends the pods. */
  endsPods(): boolean;
  /** True while the machine itself is being shut down or rebooted. */
  goingDown(): Promise<boolean>;
  /** Aborting `hurry` kills pods without their grace periods; a stop after its timeout does so too. */
  stop(options: { readonly keepPods: boolean; readonly hurry: AbortController }): Promise<void>;
}

export interface HostOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly progress: Progress;
  /** Reads the settings again, after this host has joined a cluster. */
  readonly reload: () => Promise<Settings>;
  /** Aborted if the process is stopped before the host has started. */
  readonly signal: AbortSignal;
}

const SHARED_ADDRESS_MS = 2_000;
/** Limit for a child process whose file system does not answer. */
const SNAPSHOT_MS = 2_000;
/** Delay of events, which leaves the CPU to the start of a pod. */
const EVENTS_MS = 200;

/** Throws CodedErrors of one line and then releases the instance lock. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { settings } = options;
  if (process.geteuid?.() !== 0) {
    throw new CodedError('not-root', 'hyperedge run creates cgroups and containers; start it as root');
  }
  if (!settings.roles.has('node')) {
    throw new CodedError(
      'bad-config',
      `${settings.bootstrapFile}: roles: a host without the node role runs no pods; start hyperedge etcd instead`,
    );
  }
  await raiseWatchLimits(options.log);
  const reserve = await openDiskReserve(settings.paths.diskReserve, clock, options.log.named('disk'));
  const lock = await takeInstanceLock(settings.paths.pidFile, settings.root);
  try {
    return await startLocked(options, lock, reserve);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startLocked(options: HostOptions, lock: InstanceLock, reserve: DiskReserve): Promise<Host> {
  const startedAt = new Date().toISOString();
  const { log, progress } = options;
  const settings = await settingsOnceJoined(options);
  const time = await openTrustedTime(settings.paths.timeFloor, log.named('clock'));
  const prepared = await prepareHost(settings, log, progress, time, options.signal);
  const { driver, runtime, serviceManager, reservedPorts, submitted, revisions } = prepared;
  const gossip = await startGossip(settings, log.named('gossip'));
  if (gossip.note !== undefined) progress.note(gossip.note);
  time.comparedBy(gossip.clockOffsetMs);
  const balancer = await startBalancer(settings, gossip, log.named('nodelb'));
  const nodeConfig = await readHostNodeConfig(settings, driver.name, log);
  const { nodeName } = nodeConfig;
  const api = await openClient(nodeFiles(settings.root).kubeconfig, 'kubelet/hyperedge', { clock, random, log });
  const recorder = kubeletRecorder(api, nodeName, log);
  const lastKnown = openLastKnown(settings, log.named('last-known'));
  const informers = api.newInformers(lastKnown);
  followApiServers(balancer, informers);
  await recordHostNetwork(settings.paths.networkRecord, networkRecordOf(settings));
  const network = await hostPodNetwork({ settings, log, progress }, runtime, informers, nodeName);
  joinMasters(gossip, balancer, informers, settings);
  const stopPublishing = publishKeyring(settings, gossip, log.named('gossip'));
  runtime.policies.open(settings, informers, nodeName, log);
  const streaming = createStreamingServer({ clock, log });
  const addresses = createNodeAddresses(settings, nodeConfig, log.named('addresses'));
  const stopRoleLabels = keepMasterLabel(settings, informers, nodeName, addresses, log.named('node-roles'));
  const versions = followVersions(api.client, log.named('versions'));
  const certificates = await nodeCertificates(settings, nodeName, api.client, time, log.named('certificates'));
  const restorer = createNetworkRestorer(runtime.network, clock, log.named('network'));
  const parts = {
    settings,
    log,
    prepared,
    api,
    lastKnown,
    recorder,
    network,
    streaming,
    certificates,
    versions,
    restorer,
  };
  const kubelet = await restartableKubelet((isFirst) => hostKubelet({ ...parts, addresses, time, isFirst }), log);
  await kubelet.start();
  certificates.start(kubelet);
  const named = { reinstall: prepared.reinstall, onRenewed: (): void => void kubelet.reloadCertificate(), log };
  const own = followOwnAddress({ settings, reload: options.reload, addresses, gossip, time, ...named });
  progress.step(`kubelet serves on ${kubelet.port}; static pods start from ${settings.paths.staticPods}`);
  const sharedAddress = holdAddresses(settings, informers, nodeName, log);
  addresses.onChange(() => balancer.addressesChanged(isOwnAddress));
  addresses.onChange(() => kubelet.addressesChanged());
  void network.synced.then(() => progress.step('API server answers'));
  const services = startNetworkServices({
    ...{ settings, informers, nodeName, runtime, addresses, restorer, reservedPorts, recorder, gossip, log },
  });
  let endPods = false;
  const stopGroups = await followHostGroup({
    ...{ settings, nodeName, informers, client: api.client, cgroupDriver: driver.name, clock, random },
    restartKubelet: () => kubelet.restart(),
    log: log.named('node-groups'),
  });
  const stopEmbedded = await startEmbedded({ ...parts, kubelet }, runtime.images, nodeName, informers);
  const stopRouter = startRouter(settings, informers, recorder, log.named('router'));
  const ready = Promise.all([kubelet.nodeReady, network.synced, prepared.recorded]).then(() => {});
  const snapshots = scheduledSnapshotsOf(settings, log);
  const stopReserve = reserve.keep();
  const control = await serveControl(
    settings.paths.controlSocket,
    controlHandlers({
      settings: own.settings,
      runtime,
      kubelet,
      startedAt,
      driver: driver.name,
      client: api.client,
      versions: () => versions.report(),
      snapshots,
      endPods: () => {
        endPods = true;
      },
      ...{ submitted, revisions },
    }),
    log.named('control'),
  );
  const stopAll = async (keepPods: boolean, hurry: AbortSignal): Promise<void> => {
    restorer.stop();
    stopRoleLabels();
    stopPublishing();
    // Before the API server of this host stops, so that the next holder takes the address immediately.
    await Promise.all([within(sharedAddress.stop(), SHARED_ADDRESS_MS), stopEmbedded(), stopRouter()]);
    versions.stop();
    stopGroups();
    await lastKnown.stop();
    await within(snapshots.stop(), SNAPSHOT_MS);
    stopReserve();
    own.stop();
    await certificates.stop();
    // The leave message is sent first, because gossip needs less time than the pods' grace periods.
    const left = gossip.stop().catch((error: unknown) => log.warn('gossip not stopped', { error: messageOf(error) }));
    await kubelet.stop({ stopPods: !keepPods, hurry });
    await Promise.all([services.stop(keepPods), streaming.stop()]);
    // After the static pods have ended, the API server may not accept events.
    await within(recorder.stop(), keepPods ? 2_000 : 200);
    await Promise.all([informers.stop(), left]);
    network.stop();
    await Promise.all([api.close(), control.stop()]);
    await balancer.stop({ handOver: keepPods });
    await runtime.stop({ keepPods });
    await lock.release();
  };
  return {
    ready,
    kubeconfig: settings.roles.has('master') ? masterFiles(settings.root).adminKubeconfig : undefined,
    endsPods: () => endPods,
    goingDown: async () => serviceManager !== undefined && isMachineShuttingDown(serviceManager, log),
    stop: async ({ keepPods, hurry }) => {
      if (!(await stopInTime(stopAll(keepPods, hurry.signal), hurry, log))) await lock.release();
    },
  };
}

/** Unsupported fields are reported, because files of OKD may contain them. Throws CodedError 'bad-config'. */
async function readHostNodeConfig(settings: Settings, cgroupDriver: string, log: Log): Promise<NodeConfig> {
  const file = settings.paths.nodeConfig;
  const { config, unknown } = await readNodeConfig(file, nodeConfigOf(settings, cgroupDriver));
  if (unknown.length > 0) log.warn('fields of node-config.yaml have no effect here', { file, fields: unknown });
  return config;
}

function kubeletRecorder({ client }: OpenedClient, host: string, log: Log): EventRecorder {
  return createEventRecorder({ client, component: 'kubelet', host, settleMs: EVENTS_MS, clock, random, log });
}

interface PreparedHost {
  readonly driver: CgroupDriver;
  readonly cgroups: ReturnType<typeof createCgroupFileSystem>;
  readonly serviceManager: ServiceManager | undefined;
  readonly runtime: HostRuntime;
  readonly reservedPorts: readonly ReservedPort[];
  readonly submitted: SubmittedPods;
  readonly revisions: ControlPlaneRevisions;
  /** Resolves when the cluster of this host's store is recorded. */
  readonly recorded: Promise<void>;
  /** Writes certificates, configuration and manifests again for these settings. */
  reinstall(settings: Settings): Promise<void>;
}

/** Prepares the container runtime, checks ports, and writes certificates and configuration files of this host. */
async function prepareHost(
  settings: Settings,
  log: Log,
  progress: Progress,
  time: TrustedTime,
  signal: AbortSignal,
): Promise<PreparedHost> {
  await replayMachineConfig(settings, log.named('machine-config'));
  await checkPrivateFiles(settings);
  const cgroups = createCgroupFileSystem();
  const driver = await chooseCgroupDriver(settings);
  const [assets, helpers] = await Promise.all([openAssets(), useHelpers(settings)]);
  const serviceManager = driver.name === 'systemd' ? createServiceManager() : undefined;
  let reservedPorts: readonly ReservedPort[] = [];
  const runtime = await startRuntime(settings, driver.name, serviceManager, () => reservedPorts, helpers, log);
  const kept = (await isPortKept(settings)) ? ['kube-system/balancer-keeper'] : [];
  await checkPorts(settings, new Set([...(await runningComponents(runtime)), ...kept]));
  await checkStorePresent(settings);
  progress.step(`node ${settings.nodeName} at ${settings.nodeIp}; ${driver.why}`);
  const install = (current: Settings) =>
    installHost(current, { nowMs: time.nowMs(), cgroupDriver: driver.name, assets: assets.directory, log });
  const report = await install(settings);
  await keepMountOrder(settings, log);
  reservedPorts = allPorts(await ownPorts(settings, log));
  for (const path of report.kept) progress.note(`${path} was edited and is kept`);
  progress.step(
    report.issued.length === 0
      ? 'certificates and configuration are in place'
      : `${report.issued.length} certificates and keys issued below ${settings.root}`,
  );
  const submitted = await openSubmittedPods(settings.paths.submittedPods, settings.nodeName, clock);
  const revisions = await prepareRevisions(settings, runtime, log);
  const reinstall = (current: Settings) => revisions.around(async () => void (await install(current)));
  const recorded = recordCluster(settings, signal, log.named('cluster'));
  return { driver, cgroups, serviceManager, runtime, reservedPorts, submitted, revisions, recorded, reinstall };
}

function hostPodNetwork(
  { settings, log, progress }: Pick<HostOptions, 'settings' | 'log' | 'progress'>,
  runtime: HostRuntime,
  informers: InformerFactory,
  nodeName: string,
): Promise<PodNetworkFollower> {
  return followPodNetwork({
    network: runtime.network,
    informers,
    nodeName,
    file: settings.paths.podCidr,
    // A host without an address uses its pod bridge's, so the bridge must exist before any server or client starts.
    initial: settings.nodeIpIsBridge ? settings.network.firstPodCidr : undefined,
    onReady: (cidr) => progress.step(`pod network ${cidr} on ${settings.network.bridge}`),
    log: log.named('network'),
  });
}

/** Labels the Node of a master and records its addresses. Returns the function that stops it. */
function keepMasterLabel(
  settings: Settings,
  informers: InformerFactory,
  nodeName: string,
  addresses: Pick<NodeAddresses, 'current'>,
  log: Log,
): () => void {
  if (!settings.roles.has('master')) return () => {};
  const { adminKubeconfig } = masterFiles(settings.root);
  return keepNodeRoleLabels({
    informers,
    nodeName,
    labels: { 'node-role.kubernetes.io/master': 'true' },
    annotations: () => ({ [APPROVED_ANNOTATION]: [nodeName, ...addresses.current()].join(',') }),
    openAdmin: () => openClient(adminKubeconfig, 'hyperedge', { clock, random, log }),
    clock,
    log,
  });
}

interface KubeletParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly prepared: PreparedHost;
  readonly api: OpenedClient;
  readonly lastKnown: LastKnown;
  readonly recorder: EventRecorder;
  readonly network: PodNetworkFollower;
  readonly streaming: ReturnType<typeof createStreamingServer>;
  readonly addresses: NodeAddresses;
  readonly certificates: NodeCertificates;
  readonly versions: VersionFollower;
  readonly restorer: NetworkRestorer;
  readonly time: TrustedTime;
  /** At the first start, the host starts even if the settings of its pool are invalid. */
  readonly isFirst: boolean;
}

/** Creates a kubelet from node-config.yaml and the current settings of the pool. */
async function hostKubelet({
  settings,
  log,
  prepared,
  api,
  lastKnown,
  recorder,
  network,
  streaming,
  addresses,
  certificates,
  versions,
  restorer,
  time,
  isFirst,
}: KubeletParts): Promise<Kubelet> {
  const files = nodeFiles(settings.root);
  const own = await readHostNodeConfig(settings, prepared.driver.name, log);
  const nodeConfig = await withPoolSettings(own, settings.root, isFirst ? log : undefined);
  const volumes = await resolvedLinks(nodeConfig.volumeDirectory);
  const mounts = createMounter();
  const driverRoot = await linkDriverRoot(settings.root, volumes);
  const places = { volumes, ...(driverRoot === undefined ? {} : { driverRoot }) };
  const config = kubeletConfigOf(settings, nodeConfig, prepared.reservedPorts, addresses.current, places);
  await followSettings(settings, config, log);
  await prepared.runtime.followLogLevel();
  return createKubelet({
    config,
    runtime: prepared.runtime.runtime,
    cgroups: prepared.cgroups,
    slices: prepared.serviceManager,
    login: prepared.serviceManager === undefined ? undefined : createLoginManager(),
    host: createHostFacts({ root: settings.root, nowMs: () => clock.nowMs() }),
    files: createKubeletFiles(mounts, await foreignPaths(settings.root, volumes)),
    fileWatch: createFileWatch(),
    hostLogs: hostLogsOf(settings.root),
    mounts,
    volumes: volumeDeps(log),
    trees,
    listen: listenKubelet,
    devices: hostDevices(settings, log.named('kubelet')),
    streaming,
    probeNetwork,
    credentials: await credentialProviders(settings, log),
    api: { client: api.client, informers: api.newInformers(lastKnown), recorder },
    lastKnown,
    feeds: manifestFeeds(settings, prepared.submitted, log.named('manifests')),
    servingCertificate: certificates.serving,
    clientCa: () => readFile(files.clientCa, 'utf8'),
    // CNI plug-ins may have their own addresses, so only the embedded network waits for the node's range.
    notReady: () =>
      versions.notReady() ??
      (prepared.runtime.network.setMtu === undefined ? undefined : (network.notReady() ?? restorer.problem())),
    conditions: async (present) => [
      ...(await time.conditions(present)),
      ...networkConditions(restorer.forwarding(), present),
      ...(ownsStore(settings) ? await storeConditions(settings.paths.etcdData, present) : []),
    ],
    clock,
    random,
    log: log.named('kubelet'),
  });
}

function scheduledSnapshotsOf(settings: Settings, log: Log): ScheduledSnapshots {
  if (!ownsStore(settings)) return { reload: async () => {}, stop: async () => {} };
  const { snapshotSchedule, snapshots } = settings.paths;
  return scheduleSnapshots({
    read: () => readSchedule(snapshotSchedule, snapshots),
    files: storeFiles,
    clock,
    log: log.named('snapshots'),
    take: takeInChild(selfCommand(), settings.root),
  });
}
