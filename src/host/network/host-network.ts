/** The network of this host's pods: CNI plug-ins if they are configured on the host, otherwise the embedded network. */
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import type { Log } from '../../base/log.ts';
import { readNetworkConfig } from '../../network/pods/cni/config.ts';
import { createCniNetwork } from '../../network/pods/cni/network.ts';
import { createBridgeNetwork, type HostNetworkRecord, probeLinks, watchFilter } from '../../network/pods/io/index.ts';
import type { PodNetwork } from '../../runtime/oci/port.ts';
import { podLinksOf } from '../config/node-addresses.ts';
import type { Settings } from '../config/settings.ts';

export type FilterChanged = (foreign: ReadonlySet<string> | undefined) => void;

export interface HostNetwork extends PodNetwork {
  /**
   * Sets the MTU of pods. Undefined with CNI plug-ins, which set the MTU and the routes to pods of other hosts
   * themselves.
   */
  readonly setMtu?: (mtu: number) => Promise<void>;
  /**
   * Compares the links and routes with the expected ones and repairs them. Undefined with CNI plug-ins, which maintain
   * their own links.
   */
  readonly reconcile?: (options: { readonly filter: boolean }) => Promise<void>;
  /**
   * Calls `changed` after each change of the packet filter. Its argument lists this host's tables that another program
   * has changed, as `FAMILY NAME`; it is undefined if changes may have been missed.
   */
  readonly watchFilter?: (changed: FilterChanged) => { isRunning(): boolean; stop(): void };
  /** This host's nftables tables, as `FAMILY NAME`. The network restorer restores their content. */
  readonly filterTables?: () => readonly string[];
  /** Resolves with the fault that prevents the forwarding of pod packets; undefined if packets are forwarded. */
  readonly forwarding?: () => Promise<string | undefined>;
  /** The fault that the last `reconcile` could not repair; undefined if there is none. */
  readonly problem?: () => string | undefined;
  /** Whether a pod of this host has the address. */
  readonly holds?: (address: string) => boolean;
  destroy(): Promise<void>;
}

/** Names of this host's nftables tables whose content is restored. `name`: table of the service proxy. */
const filterTables = (name: string): string[] => [
  name,
  ...['pods', 'policy', 'idle', 'overlay'].map((part) => `${name}-${part}`),
];

/** Links, tables, route protocols and ranges that this instance uses on the host's network. Used for their removal. */
export function networkRecordOf({ network, dns, podNetwork }: Settings): HostNetworkRecord {
  const { bridge, nftTable, clusterCidrs } = network;
  return {
    links: [...new Set([...podLinksOf(bridge, podNetwork.tunnelNames), dns.link, probeLinks(bridge)[0]])],
    // The table of the forwarding probe is not restored, because the probe replaces it itself.
    tables: [...filterTables(nftTable), `${nftTable}-pods-probe`],
    routeProtocols: [podNetwork.routeProtocol],
    clusterCidrs,
  };
}

/** Directories of CNI plug-ins: the usual one, then Debian's. */
const PLUGIN_DIRECTORIES = ['/opt/cni/bin', '/usr/lib/cni'];

/** Creates the pod network. Throws CodedError 'bad-config' for an invalid configuration of CNI plug-ins. */
export async function createHostNetwork(
  settings: Settings,
  reservedPorts: () => readonly ReservedPort[],
  log: Log,
): Promise<HostNetwork> {
  const stateDirectory = settings.paths.networkState;
  const cni = await readNetworkConfig(settings.paths.cniConfig);
  if (cni !== undefined) {
    const { file, config } = cni;
    log.info('CNI plug-ins set up the pod network', { file, network: config.name });
    const network = createCniNetwork({ config, stateDirectory, pluginDirectories: PLUGIN_DIRECTORIES, log });
    return Object.assign(network, followedFilter(settings, log));
  }
  const bridge = createBridgeNetwork({
    stateDirectory,
    bridge: settings.network.bridge,
    // The table name without a suffix is that of the service proxy.
    nftTable: `${settings.network.nftTable}-pods`,
    clusterCidrs: settings.network.clusterCidrs,
    serviceCidrs: settings.network.serviceCidrs,
    reservedPorts,
    log,
  });
  return {
    reserve: bridge.reserve.bind(bridge),
    attach: (netnsPath, pod) => bridge.attach(netnsPath, pod),
    detach: (sandboxId) => bridge.detach(sandboxId),
    retain: (alive) => bridge.retain(alive),
    setPodCidrs: (cidrs) => bridge.setPodCidrs(cidrs),
    setMtu: (mtu) => bridge.setMtu(mtu),
    reconcile: (options) => bridge.reconcile(options),
    ...followedFilter(settings, log),
    problem: () => bridge.problem,
    forwarding: () => bridge.forwarding(),
    holds: (address) => bridge.holds(address),
    destroy: () => bridge.destroy(),
  };
}

/** Watches this host's nftables tables. With CNI plug-ins, it still has the tables of Services and network policies. */
function followedFilter({ network }: Settings, log: Log): Pick<HostNetwork, 'watchFilter' | 'filterTables'> {
  const tables = filterTables(network.nftTable);
  return {
    watchFilter: (changed) => watchFilter({ nft: 'nft', tables, changed, log }),
    filterTables: () => tables.flatMap((name) => ['ip', 'ip6', 'inet'].map((family) => `${family} ${name}`)),
  };
}
