/** Ports and addresses that this host uses. Ports are read from the configuration files of its components. */
import { readFile as readText } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { settingsOf as etcdSettingsOf, readFile as readEtcdFile } from '../../store/config/index.ts';
import { nodeConfigOf } from '../config/generate.ts';
import { parseBindAddress, readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';
import { readNodeConfig } from '../config/node-config.ts';
import type { Settings } from '../config/settings.ts';

export interface OwnPorts {
  readonly api: readonly ReservedPort[];
  readonly controllers: readonly ReservedPort[];
  readonly etcd: readonly ReservedPort[];
  /** Ports of the host process: kubelet, API balancer and gossip. */
  readonly host: readonly ReservedPort[];
}

const DEFAULT_HEALTH_PORT = 8444;
const HOST_MASK_6 = Array(8).fill('ffff').join(':');
/** Required by the function that reads the configuration. The ports do not depend on the driver. */
const ANY_DRIVER = 'cgroupfs';

/**
 * Never rejects. If a file cannot be read, the ports in the settings are reserved; the file's component cannot start
 * either.
 */
export async function ownPorts(settings: Settings, log: Log): Promise<OwnPorts> {
  const { roles, ports, gossip, router } = settings;
  const tcp = (...found: readonly number[]): ReservedPort[] =>
    [...new Set(found)].filter((port) => port > 0).map((port) => ({ protocol: 'TCP', port }));
  const read = async (file: string, from: () => Promise<number[]>, otherwise: readonly number[]): Promise<number[]> => {
    try {
      return await from();
    } catch (error) {
      log.warn('configuration unreadable; reserving the ports of the settings', { file, error: messageOf(error) });
      return [...otherwise];
    }
  };
  const { masterConfig, etcdConfig, nodeConfig } = settings.paths;
  const isMaster = roles.has('master');
  const ownsEtcd = roles.has('etcd') && settings.storage === undefined;
  return {
    api: isMaster ? tcp(...(await read(masterConfig, () => apiPorts(masterConfig), [ports.api]))) : [],
    controllers: isMaster
      ? tcp(...(await read(masterConfig, () => controllersPorts(masterConfig), [ports.controllers])))
      : [],
    etcd: ownsEtcd ? tcp(...(await read(etcdConfig, () => etcdPorts(etcdConfig), [ports.etcd, ports.etcdPeer]))) : [],
    host: [
      ...tcp(...(await read(nodeConfig, () => kubeletPorts(nodeConfig, settings), [ports.kubelet]))),
      ...tcp(ports.balancer),
      ...(isMaster ? tcp(ports.machineConfigServer) : []),
      ...(router.enabled ? tcp(router.httpPort, router.httpsPort, router.statsPort) : []),
      ...(gossip.enabled ? [...tcp(gossip.port), { protocol: 'UDP' as const, port: gossip.port }] : []),
    ],
  };
}

export const allPorts = ({ api, controllers, etcd, host }: OwnPorts): ReservedPort[] => [
  ...api,
  ...controllers,
  ...etcd,
  ...host,
];

async function apiPorts(file: string): Promise<number[]> {
  const { servingInfo, kubernetesMasterConfig } = await readMasterConfig(file);
  const argument = kubernetesMasterConfig?.apiServerArguments?.get('secure-port')?.at(-1);
  return [argument === undefined ? (parseBindAddress(servingInfo.bindAddress)?.port ?? 0) : Number(argument)];
}

async function controllersPorts(file: string): Promise<number[]> {
  const { controllerConfig } = await readMasterConfig(file);
  return [parseBindAddress(controllerConfig?.healthBindAddress ?? '')?.port ?? DEFAULT_HEALTH_PORT];
}

async function etcdPorts(file: string): Promise<number[]> {
  const given = readEtcdFile(file, await readText(file, 'utf8'));
  const locate = (path: string): string => resolveRelativeTo(file, path);
  const { listen } = etcdSettingsOf(given, { fromFile: true, locate, defaultHost: undefined }).settings;
  return [...listen.client, ...listen.clientHttp, ...listen.peer, ...listen.metrics].map(({ port }) => port);
}

async function kubeletPorts(file: string, settings: Settings): Promise<number[]> {
  const { config } = await readNodeConfig(file, nodeConfigOf(settings, ANY_DRIVER));
  return [parseBindAddress(config.servingInfo.bindAddress)?.port ?? 0];
}

/**
 * Addresses of this host, without those of the service proxy: all addresses on `serviceLink`, and addresses on `bridge`
 * with a /32 or /128 netmask.
 */
export function ownAddresses(serviceLink: string, bridge: string): string[] {
  return Object.entries(networkInterfaces()).flatMap(([link, addresses = []]) =>
    addresses
      .filter(({ netmask }) => link !== bridge || (netmask !== '255.255.255.255' && netmask !== HOST_MASK_6))
      .filter(() => link !== serviceLink)
      .map(({ address }) => address),
  );
}
