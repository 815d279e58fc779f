/**
 * `hyperedge run`: the host process. Settings → lock → files → kubelet (which starts the control plane as static pods) → pod network
 * and service proxy, which follow the API as soon as there is one.
 */
import { readFile } from 'node:fs/promises';
import type { ReservedPort } from '../api/kinds/nodes/host-ports.ts';
import { CodedError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { PRODUCT_VERSION } from '../base/version.ts';
import { createEventRecorder } from '../client/index.ts';
import { createKubelet, type Kubelet } from '../components/kubelet/index.ts';
import { createProxy } from '../components/proxy/index.ts';
import type { ContainerStatus } from '../core/podplan/port.ts';
import { createCgroupFileSystem } from '../io/cgroupfs/index.ts';
import { createStreamForwarder } from '../io/forwarding/index.ts';
import { createFileWatch, createHostFacts, createMounter } from '../io/host/index.ts';
import { createNftFilter } from '../io/netfilter/index.ts';
import { masterFiles, nodeFiles } from '../io/pki/index.ts';
import { createStreamingServer } from '../io/streaming/index.ts';
import { createServiceManager, systemdRuns } from '../io/systemd/index.ts';
import { trees } from '../io/trees/index.ts';
import { type OpenedClient, openClient } from './api-access.ts';
import { openAssets, selfCommand } from './assets.ts';
import { COMPONENTS } from './component-names.ts';
import { readNodeConfig } from './config/node-config.ts';
import { type ControlServer, type HostStatus, serveControl } from './control.ts';
import { storeConditions } from './etcd-fallback.ts';
import { readSecret } from './files.ts';
import { startGossip } from './gossip.ts';
import { installHost } from './install.ts';
import { type InstanceLock, takeInstanceLock } from './instance-lock.ts';
import { kubeletConfigOf } from './kubelet-config.ts';
import { keepNodeRoles } from './node-roles.ts';
import { allPorts, ownAddresses, ownPorts } from './own-ports.ts';
import { followPodNetwork, type PodNetworkFollower } from './pod-network.ts';
import { checkPort } from './ports.ts';
import { checkPrivateFiles } from './private-files.ts';
import { systemClock as clock, systemRandom as random, within } from './process.ts';
import type { Progress } from './progress.ts';
import { type HostRuntime, startRuntime } from './runtime.ts';
import type { Settings } from './settings.ts';
import { type ScheduledSnapshots, scheduleSnapshots, takeInChild } from './snapshot-schedule.ts';

export interface Host {
  /** Resolves when the Node object was first reported Ready. */
  readonly ready: Promise<void>;
  readonly kubeconfig: string;
  /** True while the machine itself is being shut down or rebooted. */
  goingDown(): Promise<boolean>;
  /** Aborting `hurry` ends pods without waiting for their grace periods; a stop that takes too long does so itself. */
  stop(options: { readonly keepPods: boolean; readonly hurry: AbortController }): Promise<void>;
}

export interface HostOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly progress: Progress;
}

/** Long enough for a pod's default 30 s of grace, and then some. */
const STOP_TIMEOUT_MS = 45_000;
const KILL_TIMEOUT_MS = 10_000;
const SYSTEMD_ANSWER_MS = 2_000;

/** Throws CodedErrors that are one line each; what had been started by then has been stopped. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { settings } = options;
  if (process.geteuid?.() !== 0) {
    throw new CodedError('not-root', 'hyperedge run makes cgroups and containers: start it as root');
  }
  if (!settings.roles.has('node')) {
    throw new CodedError('bad-config', `${settings.bootstrapFile}: roles without node run no pods: use hyperedge etcd`);
  }
  const lock = await takeInstanceLock(settings.paths.pidFile, settings.root);
  try {
    return await startLocked(options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startLocked({ settings, log, progress }: HostOptions, lock: InstanceLock): Promise<Host> {
  const startedAt = new Date().toISOString();
  await checkPrivateFiles(settings);
  const cgroups = createCgroupFileSystem();
  const driver = await chooseCgroupDriver(settings);
  const assets = await openAssets();
  const serviceManager = driver.name === 'systemd' ? createServiceManager() : undefined;
  let reservedPorts: readonly ReservedPort[] = [];
  const runtime = await startRuntime(settings, driver.name, serviceManager, () => reservedPorts, log);
  await checkPorts(settings, runtime);
  progress.step(`node ${settings.nodeName} at ${settings.nodeIp}; ${driver.why}`);

  const report = await installHost(settings, {
    nowMs: clock.nowMs(),
    cgroupDriver: driver.name,
    assets: assets.directory,
    log,
  });
  reservedPorts = allPorts(await ownPorts(settings, log));
  for (const path of report.kept) progress.note(`${path} was edited and is kept`);
  progress.step(
    report.issued.length === 0
      ? 'certificates and configuration are in place'
      : `${report.issued.length} certificates and keys made below ${settings.root}`,
  );

  const gossip = await startGossip(settings, log.named('gossip'));
  if (gossip.note !== undefined) progress.note(gossip.note);
  const nodeConfig = await readNodeConfig(settings.paths.nodeConfig);
  const files = nodeFiles(settings.root);
  const api = await openClient(files.kubeconfig, 'kubelet/hyperedge', { clock, random, log });
  const recorder = createEventRecorder({
    client: api.client,
    component: 'kubelet',
    host: nodeConfig.nodeName,
    clock,
    random,
    log,
  });
  const informers = api.newInformers();
  const network = await followPodNetwork({
    network: runtime.network,
    informers,
    nodeName: nodeConfig.nodeName,
    file: settings.paths.podCidr,
    // A host without any address answers on that of its pod bridge, so the bridge has to be there before anything listens or calls.
    initial: settings.nodeIpIsBridge ? settings.network.firstPodCidr : undefined,
    onReady: (cidr) => progress.step(`pod network ${cidr} on ${settings.network.bridge}`),
    log: log.named('network'),
  });
  const forgetRoles = settings.roles.has('master')
    ? keepNodeRoles({
        informers,
        nodeName: nodeConfig.nodeName,
        adminKubeconfig: masterFiles(settings.root).adminKubeconfig,
        labels: { 'node-role.kubernetes.io/master': 'true' },
        clock,
        random,
        log: log.named('node-roles'),
      })
    : () => {};
  const streaming = createStreamingServer({ clock, log });
  const kubelet = createKubelet({
    config: kubeletConfigOf(settings, nodeConfig, reservedPorts),
    runtime: runtime.runtime,
    cgroups,
    slices: serviceManager,
    host: createHostFacts({ nowMs: () => clock.nowMs() }),
    files: createFileWatch(),
    mounts: createMounter(),
    trees,
    streaming,
    api: { client: api.client, informers: api.newInformers(), recorder },
    servingCertificate: async () => {
      const pem = await readSecret(files.serverCurrent, 'kubelet');
      return { cert: pem, key: pem };
    },
    clientCa: () => readFile(files.clientCa, 'utf8'),
    networkNotReady: network.notReady,
    conditions: async (said) => (ownsStore(settings) ? storeConditions(settings.paths.etcdData, said) : []),
    clock,
    random,
    log: log.named('kubelet'),
  });
  await kubelet.start();
  progress.step(`kubelet serves on ${kubelet.port}; static pods start from ${settings.paths.staticPods}`);

  const serviceLink = `${settings.network.bridge.slice(0, 11)}-svc`;
  const proxy = createProxy({
    informers,
    packetFilter: createNftFilter({ serviceRouteLink: settings.network.bridge, log: log.named('nft') }),
    forwarder: createStreamForwarder({
      dummyLink: serviceLink,
      fallbackLink: settings.network.bridge,
      log: log.named('proxy'),
    }),
    log: log.named('proxy'),
    clock,
    random,
    config: {
      nodeName: nodeConfig.nodeName,
      serviceCidr: settings.network.serviceCidr,
      clusterCidr: settings.network.clusterCidr,
      mode: settings.network.proxyMode,
      table: settings.network.nftTable,
      reservedPorts,
      hostAddresses: () => ownAddresses(serviceLink, settings.network.bridge),
    },
  });
  void network.synced.then(() => progress.step('API server answers'));
  // The proxy needs the API and the bridge; both come in their own time.
  const proxyStarted = proxy.start().catch((error: unknown) => {
    log.error('service proxy does not run', { error: messageOf(error) });
  });
  let nodeReady = false;
  const ready = Promise.all([kubelet.nodeReady, network.synced]).then(() => {
    nodeReady = true;
  });
  const snapshots = snapshotsOf(settings, log);
  const control = await serveControl(
    settings.paths.controlSocket,
    controlHandlers({
      settings,
      runtime,
      kubelet,
      startedAt,
      driver: driver.name,
      isReady: () => nodeReady,
      snapshots,
    }),
    log.named('control'),
  );
  return {
    ready,
    kubeconfig: masterFiles(settings.root).adminKubeconfig,
    goingDown: async () => {
      if (serviceManager === undefined) return false;
      const asked = serviceManager.goingDown();
      try {
        // Whoever stops this unit waits for it: a systemd that is busy gets no long time to say.
        if (await within(asked, SYSTEMD_ANSWER_MS)) return await asked;
        asked.catch(() => {});
        log.warn('systemd does not say whether the host goes down', { ms: SYSTEMD_ANSWER_MS });
      } catch (error) {
        log.warn('systemd does not say whether the host goes down', { error: messageOf(error) });
      }
      return false;
    },
    stop: async ({ keepPods, hurry }) => {
      forgetRoles();
      snapshots.stop();
      const parts: Stopping = { kubelet, runtime, api, network, control, lock };
      // The ring is to know at once, and its farewells take no longer than the pods'.
      const left = gossip.stop().catch((error: unknown) => log.warn('ring', { error: messageOf(error) }));
      const stopAll = async (): Promise<void> => {
        await kubelet.stop({ stopPods: !keepPods, hurry: hurry.signal });
        await Promise.all([proxy.stop({ keepRules: keepPods }), proxyStarted, streaming.stop()]);
        // With its pods stopped there may be no API server left that takes events.
        await within(recorder.stop(), keepPods ? 2_000 : 200);
        await Promise.all([informers.stop(), left]);
        await stopRest(parts, keepPods);
      };
      const stopping = stopAll();
      if (await within(stopping, STOP_TIMEOUT_MS)) return;
      log.warn('pods did not end in time and are killed', { ms: STOP_TIMEOUT_MS });
      hurry.abort();
      if (await within(stopping, KILL_TIMEOUT_MS)) return;
      log.warn('did not stop in time', { ms: STOP_TIMEOUT_MS + KILL_TIMEOUT_MS });
      await lock.release();
    },
  };
}

interface Stopping {
  readonly kubelet: Kubelet;
  readonly runtime: HostRuntime;
  readonly api: OpenedClient;
  readonly network: PodNetworkFollower;
  readonly control: ControlServer;
  readonly lock: InstanceLock;
}

async function stopRest(parts: Stopping, keepPods: boolean): Promise<void> {
  parts.network.stop();
  await Promise.all([parts.api.close(), parts.control.stop()]);
  await parts.runtime.stop({ keepPods });
  await parts.lock.release();
}

interface CgroupDriver {
  readonly name: 'systemd' | 'cgroupfs';
  readonly why: string;
}

/** systemd owns the tree where it is the service manager; elsewhere nobody else does. */
async function chooseCgroupDriver(settings: Settings): Promise<CgroupDriver> {
  const booted = await systemdRuns();
  switch (settings.cgroup.driver) {
    case 'systemd':
      if (!booted) {
        throw new CodedError(
          'bad-config',
          `${settings.bootstrapFile}: cgroup.driver: systemd is not this host's service manager; set cgroupfs or auto`,
        );
      }
      return { name: 'systemd', why: 'it uses the systemd cgroup driver as configured' };
    case 'cgroupfs':
      return { name: 'cgroupfs', why: 'it uses the cgroupfs driver as configured' };
    default:
      return booted
        ? { name: 'systemd', why: 'it uses the systemd cgroup driver' }
        : { name: 'cgroupfs', why: 'systemd does not run here, so it uses the cgroupfs driver' };
  }
}

/** Components that an earlier host process left running have their ports already, and are adopted. */
async function checkPorts(settings: Settings, runtime: HostRuntime): Promise<void> {
  const running = new Set(
    (await runtime.runtime.listContainers())
      .filter((container) => container.state === 'running')
      .map((container) => `${container.labels['io.kubernetes.pod.namespace'] ?? ''}/${container.name}`),
  );
  const { ports, roles } = settings;
  const any = settings.nodeIp.includes(':') ? '::' : '0.0.0.0';
  const wanted = [
    { address: any, port: ports.kubelet, field: 'ports.kubelet', what: 'the kubelet', component: undefined },
    ...(roles.has('etcd') && settings.storage === undefined
      ? [{ address: '127.0.0.1', port: ports.etcd, field: 'ports.etcd', what: 'etcd', component: 'etcd' }]
      : []),
    ...(roles.has('master')
      ? [
          { address: any, port: ports.api, field: 'ports.api', what: 'the API server', component: 'api' },
          {
            address: '127.0.0.1',
            port: ports.controllers,
            field: 'ports.controllers',
            what: 'the controllers',
            component: 'controllers',
          },
        ]
      : []),
  ];
  for (const each of wanted) {
    if (each.component === undefined || !running.has(`kube-system/${each.component}`)) await checkPort(each);
  }
}

/** A store of this host's own is saved now and then; what is somebody else's is theirs to save. */
const ownsStore = ({ roles, storage }: Settings): boolean => roles.has('etcd') && storage === undefined;

function snapshotsOf(settings: Settings, log: Log): ScheduledSnapshots {
  if (!ownsStore(settings)) return { reload: async () => {}, stop: () => {} };
  return scheduleSnapshots({
    file: settings.paths.snapshotSchedule,
    directory: settings.paths.snapshots,
    clock,
    log: log.named('snapshots'),
    take: takeInChild(selfCommand(), settings.root),
  });
}

interface ControlContext {
  readonly settings: Settings;
  readonly runtime: HostRuntime;
  readonly kubelet: Kubelet;
  readonly startedAt: string;
  readonly driver: string;
  readonly isReady: () => boolean;
  readonly snapshots: ScheduledSnapshots;
}

const RESTART_GRACE_SECONDS = 15;
const RESTART_TIMEOUT_MS = 10_000;

function newestOfEach(containers: readonly ContainerStatus[]): ContainerStatus[] {
  return COMPONENTS.flatMap((name) => {
    const runs = containers.filter((container) => container.name === name);
    return runs.sort((left, right) => right.createdAtMs - left.createdAtMs).slice(0, 1);
  });
}

function controlHandlers({ settings, runtime, kubelet, startedAt, driver, isReady, snapshots }: ControlContext) {
  const controlPlane = async () =>
    (await runtime.runtime.listContainers()).filter(
      (container) =>
        container.labels['io.kubernetes.pod.namespace'] === 'kube-system' &&
        COMPONENTS.some((name) => name === container.name) &&
        (container.labels['io.kubernetes.pod.name'] ?? '').startsWith(`master-${container.name}`),
    );
  return {
    status: async (): Promise<HostStatus> => {
      const containers = await controlPlane();
      const components = newestOfEach(containers);
      return {
        pid: process.pid,
        version: PRODUCT_VERSION,
        root: settings.root,
        node: settings.nodeName,
        nodeIp: settings.nodeIp,
        startedAt,
        // Without its control plane the node is as good as gone, whatever the API server last heard of it.
        ready: isReady() && components.every((container) => container.state === 'running'),
        cgroupDriver: driver,
        kubeconfig: masterFiles(settings.root).adminKubeconfig,
        components: components.map(({ name, state, attempt, startedAtMs, pid }) => ({
          name,
          state,
          restarts: attempt,
          startedAt: startedAtMs === 0 ? '' : new Date(startedAtMs).toISOString(),
          pid,
        })),
      };
    },
    reloadSnapshots: () => snapshots.reload(),
    restart: async (component: string): Promise<void> => {
      const [before] = newestOfEach(await controlPlane()).filter(({ name }) => name === component);
      if (before === undefined) throw new CodedError('not-found', `${component} does not run on this host`);
      const changed = Promise.withResolvers<void>();
      const started = async (): Promise<void> => {
        const [now] = newestOfEach(await controlPlane()).filter(({ name }) => name === component);
        if (now !== undefined && now.id !== before.id && now.state === 'running') changed.resolve();
      };
      const unsubscribe = runtime.runtime.onChange(() => void started().catch(changed.reject));
      try {
        if (before.state === 'running') await runtime.runtime.stopContainer(before.id, RESTART_GRACE_SECONDS);
        // It was asked for, so it is no crash and waits for nothing.
        kubelet.forgetBackOff(before.labels['io.kubernetes.pod.uid'] ?? '');
        if (!(await within(changed.promise, RESTART_TIMEOUT_MS))) {
          throw new CodedError(
            'not-started',
            `${component} has stopped but not started again: see master-logs ${component}`,
          );
        }
      } finally {
        unsubscribe();
      }
    },
  };
}
