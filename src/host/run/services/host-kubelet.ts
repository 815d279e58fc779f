/** Creates the kubelet of a host from node-config.yaml and the settings of the host's pool. */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Log } from '../../../base/log.ts';
import { createKubelet, type Kubelet } from '../../../kubelet/index.ts';
import { createKubeletFiles } from '../../../kubelet/io/files/index.ts';
import { createFileWatch, createHostFacts, createMounter } from '../../../kubelet/io/host-facts/index.ts';
import { listenKubelet } from '../../../kubelet/io/kubelet-listener.ts';
import { probeNetwork } from '../../../kubelet/io/probing/index.ts';
import { createLoginManager } from '../../../kubelet/io/systemd/index.ts';
import { nodeFiles } from '../../../pki/index.ts';
import { trees } from '../../../runtime/directory-removal/index.ts';
import { storeConditions } from '../../../store/administration/fallback.ts';
import { ownsStore } from '../../certificates/issue-certificates.ts';
import { resolvedLinks } from '../../config/data-links.ts';
import { nodeConfigOf } from '../../config/generate.ts';
import { type NodeConfig, readNodeConfig } from '../../config/node-config.ts';
import { withPoolSettings } from '../../config/pool-settings.ts';
import type { Settings } from '../../config/settings.ts';
import { hostLogsOf } from '../../control/host-logs.ts';
import { manifestFeeds } from '../../control/manifest-feeds.ts';
import { hostDoctorOf } from '../../doctor/child.ts';
import { networkConditions } from '../../network/network-restorer.ts';
import { credentialProviders } from '../../node/credentials.ts';
import { hostDevices } from '../../node/devices.ts';
import { kubeletConfigOf } from '../../node/kubelet-config.ts';
import { followSettings } from '../../node/shown-settings.ts';
import { historyDeps } from '../../node/usage-history.ts';
import { foreignPaths } from '../../node/volume-calls.ts';
import { linkDriverRoot, volumeDeps } from '../../node/volumes.ts';
import { selfCommand } from '../../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../../process/process.ts';
import { hostAdministration } from '../../remote/index.ts';
import { createMaintenanceConditions } from '../maintenance-conditions.ts';
import type { HostServices } from './values.ts';

/** Services whose values the kubelet needs. */
export const KUBELET_NEEDS = [
  'settings',
  'cgroups',
  'cgroupDriver',
  'serviceManager',
  'runtime',
  'reservedPorts',
  'files',
  'submittedPods',
  'revisions',
  'api',
  'lastKnown',
  'recorder',
  'podNetwork',
  'streaming',
  'nodeAddresses',
  'certificates',
  'versions',
  'restorer',
  'trustedTime',
  'alerts',
  'logForwarding',
] as const satisfies readonly (keyof HostServices)[];

export type KubeletParts = Pick<HostServices, (typeof KUBELET_NEEDS)[number]>;

/**
 * Reads node-config.yaml. Unsupported fields are logged instead of rejected, because files from OKD may contain them.
 * Throws CodedError 'bad-config'.
 */
export async function readHostNodeConfig(settings: Settings, cgroupDriver: string, log: Log): Promise<NodeConfig> {
  const file = settings.paths.nodeConfig;
  const { config, unknown } = await readNodeConfig(file, nodeConfigOf(settings, cgroupDriver));
  if (unknown.length > 0) log.warn('fields of node-config.yaml have no effect on this host', { file, fields: unknown });
  return config;
}

/**
 * Creates the kubelet. `isFirst`: whether this is the first kubelet of the process; then invalid settings of the pool
 * are logged and ignored.
 */
export async function hostKubelet(parts: KubeletParts, isFirst: boolean, log: Log): Promise<Kubelet> {
  const { settings, runtime, serviceManager, api, lastKnown, recorder, streaming, trustedTime, restorer } = parts;
  const files = nodeFiles(settings.root);
  const own = await readHostNodeConfig(settings, parts.cgroupDriver.name, log);
  const nodeConfig = await withPoolSettings(own, settings.root, isFirst ? log : undefined);
  const volumes = await resolvedLinks(nodeConfig.volumeDirectory);
  const mounts = createMounter();
  const driverRoot = await linkDriverRoot(settings.root, volumes);
  const places = { volumes, ...(driverRoot === undefined ? {} : { driverRoot }) };
  const reserved = parts.reservedPorts.current();
  const config = kubeletConfigOf(settings, nodeConfig, reserved, parts.nodeAddresses.current, places);
  await followSettings(settings, config, log);
  await runtime.followLogLevel();
  const maintenance = createMaintenanceConditions(settings, log);
  return createKubelet({
    config,
    runtime: runtime.runtime,
    cgroups: parts.cgroups,
    slices: serviceManager,
    login: serviceManager === undefined ? undefined : createLoginManager(),
    host: createHostFacts({ root: settings.root, nowMs: () => clock.nowMs() }),
    files: createKubeletFiles(mounts, await foreignPaths(settings.root, volumes)),
    fileWatch: createFileWatch(),
    hostLogs: hostLogsOf(settings.root),
    administration: hostAdministration(settings),
    hostDoctor: hostDoctorOf(selfCommand(), settings.root),
    mounts,
    volumes: volumeDeps(settings, log),
    trees,
    listen: listenKubelet,
    devices: hostDevices(settings, log.named('kubelet')),
    streaming,
    probeNetwork,
    credentials: await credentialProviders(settings, log),
    api: { client: api.client, informers: api.newInformers(lastKnown), recorder },
    lastKnown,
    feeds: manifestFeeds(settings, parts.submittedPods, log.named('manifests')),
    servingCertificate: parts.certificates.serving,
    clientCa: () => readFile(files.clientCa, 'utf8'),
    // Only the embedded network waits for the Node's podCIDRs, because CNI plug-ins may assign addresses from other
    // ranges.
    notReady: () =>
      parts.versions.notReady() ??
      (runtime.network.setMtu === undefined ? undefined : (parts.podNetwork.notReady() ?? restorer.problem())),
    moreMetrics: () => parts.logForwarding.metrics(),
    conditions: async (present) => [
      ...(await trustedTime.conditions(present)),
      ...(await parts.alerts.conditions(present)),
      ...(await maintenance(present)),
      ...networkConditions(restorer.forwarding(), present),
      ...(ownsStore(settings) ? await storeConditions(settings.paths.etcdData, present) : []),
    ],
    history: historyDeps(settings, config.paths.state ?? dirname(volumes), log.named('history')),
    clock,
    random,
    log: log.named('kubelet'),
  });
}
