/** Combines bootstrap file, flags and host facts into the immutable settings of this host. */

import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { type NodeName, toNodeName } from '../../base/brand.ts';
import { CodedError, ifMissing } from '../../base/errors.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { type RouterSettings, routerOf } from '../../network/router/config/router.ts';
import { type MachineConfigSettings, machineConfigOf } from '../../openshift/machine-config/config/daemon-settings.ts';
import { type OpenShiftSettings, openshiftOf } from '../../openshift/oauth/config/login-config.ts';
import { type UpdateSettings, updatesOf } from '../../openshift/updates/config/updates.ts';
import { declaredFixtures } from '../../rigs/config/fixtures.ts';
import type { DeclaredFixture } from '../../rigs/fixtures-port.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { firstSubnet, nthAddress } from '../network/addresses.ts';
import type { BootstrapFile, Role } from './bootstrap.ts';
import { type BootstrapFiles, readBootstrap } from './bootstrap-files.ts';
import { checkConflicts } from './conflicts.ts';
import { canonicalMountPaths } from './data-links.ts';
import { type Embedded, embeddedOf } from './embedded.ts';
import { type Families, familiesOf, podNetworkOf } from './families.ts';
import { checkAgainstCluster, type Joined, joinedProfile, readJoined, rolesOf } from './joined.ts';
import {
  type AddressChoice,
  chooseNodeIps,
  type HostAddresses,
  hostAddresses,
  ownAddresses,
  podLinksOf,
} from './node-addresses.ts';
import { canonicalRoot, type Paths, pathsBelow } from './paths.ts';
import { runtimeEndpointOf } from './runtime-endpoint.ts';

export interface Settings {
  readonly root: string;
  readonly bootstrapFile: string;
  readonly roles: ReadonlySet<Role>;
  /** Whether the bootstrap file names the roles. */
  readonly rolesGiven: boolean;
  readonly logLevel: number;
  readonly nodeName: NodeName;
  readonly nodeIp: string;
  /** One address per family of the cluster, `nodeIp` first. */
  readonly nodeIps: readonly string[];
  /** `node.ip` of the bootstrap file; undefined if the address is detected and updated when it changes. */
  readonly nodeIpGiven: string | undefined;
  /** Whether the host has no address yet. Then `nodeIp` is the future address of the pod bridge. */
  readonly nodeIpIsBridge: boolean;
  /** Every address under which other hosts can reach this one, `nodeIp` first. */
  readonly addresses: readonly string[];
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Taints with which the kubelet registers a new Node, as `key=value:effect`. */
  readonly nodeTaints: readonly string[];
  /** Whether this host has joined a cluster and received the cluster's settings. */
  readonly joined: boolean;
  /** Cluster to join, from the bootstrap file; the field stays after the join. Undefined on other hosts. */
  readonly join: { readonly server: string; readonly token: string; readonly caHash: string } | undefined;
  /** Cluster to which this host offers itself until a Machine claims the host, from the bootstrap file. */
  readonly offer: { readonly server: string; readonly caHash: string } | undefined;
  /** Temporary control plane, which ends when `masters` other masters run; undefined on other hosts. */
  readonly handover: { readonly masters: number } | undefined;
  readonly proxy: NonNullable<BootstrapFile['proxy']>;
  /** Mirrors by registry, and whether the registry is accessed by plain HTTP. */
  readonly registries: ReadonlyMap<string, { readonly mirrors?: readonly string[]; readonly insecure?: boolean }>;
  /** Whether the host's own runc, conmon, nft and ip are used instead of those in the executable. */
  readonly hostTools: boolean;
  /** Whether the storage class of the embedded local provisioner is created. */
  readonly localVolumes: boolean;
  /** Addresses of Services of type LoadBalancer. If `addresses` is empty, the addresses of the nodes are used. */
  readonly serviceLoadBalancer: {
    readonly enabled: boolean;
    readonly addresses: readonly string[];
    readonly link: string | undefined;
  };
  /** Path of a KubeSchedulerConfiguration; undefined if upstream's defaults apply. */
  readonly schedulerConfigFile: string | undefined;
  readonly embedded: Embedded;
  readonly openshift: OpenShiftSettings;
  readonly router: RouterSettings;
  readonly machineConfig: MachineConfigSettings;
  readonly updates: UpdateSettings;
  /** URLs of API servers, from the bootstrap file or received on joining. */
  readonly masters: readonly string[];
  readonly fixtures: readonly DeclaredFixture[];
  /** Programs with arguments that switch the power of boards, by name. */
  readonly rigPower: ReadonlyMap<string, readonly string[]>;
  /** Virtual address of the masters: the holder of a Lease has it on `link`, by default on the link of `nodeIp`. */
  readonly vip: { readonly address: string; readonly link: string | undefined } | undefined;
  /** Families of pods, services and nodes, the primary one first. */
  readonly ipFamilies: ReadonlyArray<'IPv4' | 'IPv6'>;
  readonly podNetwork: {
    /** `auto`: routes to hosts on the same link, VXLAN to others. */
    readonly backend: 'auto' | 'routes' | 'vxlan';
    readonly encrypt: boolean;
    /** Undefined if the MTU is detected. */
    readonly mtu: number | undefined;
    /** rtnetlink(7) protocol number of the routes that this host adds to pods of other hosts. */
    readonly routeProtocol: number;
    /** Names of the VXLAN devices, by the IP version of the hosts' addresses. */
    readonly tunnelNames: Readonly<Record<4 | 6, string>>;
  };
  readonly maxPods: number;
  readonly systemReserved: Readonly<Record<string, string>>;
  /** Path of the OCI runtime, by the handler of a RuntimeClass. */
  readonly runtimeHandlers: Readonly<Record<string, string>>;
  /** Socket of another container runtime; undefined if the embedded runtime is used. */
  readonly containerRuntimeEndpoint: string | undefined;
  readonly ports: {
    readonly api: number;
    readonly kubelet: number;
    readonly controllers: number;
    readonly etcd: number;
    readonly etcdPeer: number;
    /** Loopback port of the balancer that forwards to the API servers. */
    readonly balancer: number;
    /** Port of a master's machine config server, from which new hosts get the configuration of their pool. */
    readonly machineConfigServer: number;
  };
  readonly network: {
    /** Pod range and service range of the primary family. */
    readonly clusterCidr: string;
    readonly serviceCidr: string;
    /** Ranges of each family, the primary family first. */
    readonly clusterCidrs: readonly string[];
    readonly serviceCidrs: readonly string[];
    readonly clusterDomain: string;
    readonly bridge: string;
    readonly nftTable: string;
    readonly proxyMode: 'auto' | 'nftables' | 'userspace';
    /** Bits of the host part of a node's pod range. 9, as in OKD, gives each node an IPv4 /23. */
    readonly hostSubnetLength: number;
    /** First of the ranges into which `clusterCidr` is divided, one range per node. */
    readonly firstPodCidr: string;
    /** Cluster IP of the service `kubernetes`. */
    readonly apiServiceIp: string;
    /** Cluster IP of the DNS service. Every host answers queries to this address. */
    readonly dnsIp: string;
  };
  readonly dns: {
    /** Upstream DNS servers; undefined if those of the host's resolver configuration are used. */
    readonly upstreams: readonly string[] | undefined;
    readonly stubDomains: ReadonlyMap<string, readonly string[]>;
    readonly ttlSeconds: number;
    /** Link to which the host assigns the address of the DNS service. */
    readonly link: string;
  };
  readonly gossip: {
    readonly enabled: boolean;
    /** Whether the bootstrap file configures gossip. Only then is a failure to start gossip an error. */
    readonly configured: boolean;
    readonly bindAddress: string;
    readonly port: number;
    readonly advertiseAddress: string;
    /** Members to contact at start, as `host` or `host:port`. */
    readonly join: readonly string[];
    readonly keyringFile: string;
  };
  /** Members of the store; undefined if there is only one. `name` is the name of the member's node. */
  readonly etcd:
    | {
        readonly members: ReadonlyArray<{ readonly name: string; readonly peerUrl: string }>;
        readonly state: 'new' | 'existing';
        readonly token: string | undefined;
      }
    | undefined;
  /** Whether a damaged store with a single member is restored from its last snapshot. */
  readonly restoreDamaged: boolean;
  readonly cgroup: { readonly driver: 'auto' | 'systemd' | 'cgroupfs'; readonly root: string };
  /** External etcd that the API server uses as store; undefined if the store is that of the masters. */
  readonly storage:
    | {
        readonly endpoints: readonly string[];
        readonly caFile?: string;
        readonly certFile?: string;
        readonly keyFile?: string;
      }
    | undefined;
  /** Provider that encrypts Secrets at rest; undefined disables encryption. */
  readonly secretsEncryption: 'secretbox' | 'aesgcm' | 'aescbc' | undefined;
  /** Lifetime of the certificates that this host issues, except authorities; undefined means two years. */
  readonly certificateLifeMs: number | undefined;
  readonly paths: Paths;
}

export interface SettingsFlags {
  readonly root?: string | undefined;
  readonly config?: string | undefined;
  readonly logLevel?: number | undefined;
}

/** Throws CodedError 'bad-config' with file, line and field. */
export async function loadSettings(flags: SettingsFlags): Promise<Settings> {
  return (await loadWithOrigins(flags)).settings;
}

/** Loads the settings. `files`: the bootstrap files from which they come; undefined if there are none. */
export async function loadWithOrigins(
  flags: SettingsFlags,
): Promise<{ readonly settings: Settings; readonly files: BootstrapFiles | undefined }> {
  const root = await canonicalRoot(flags.root);
  const bootstrapFile = flags.config === undefined ? join(root, 'etc/origin/bootstrap.yaml') : resolve(flags.config);
  const bootstrap = await readBootstrap(bootstrapFile);
  if (bootstrap === undefined && flags.config !== undefined) {
    throw new CodedError('bad-config', `${bootstrapFile} does not exist; name an existing file or omit --config`);
  }
  const paths = pathsBelow(root);
  const joined = await readJoined(paths.joined);
  const remembered = await readFile(paths.podCidr, 'utf8').catch(ifMissing(''));
  const host = { ...(await hostAddresses()), podCidr: remembered.trim() === '' ? undefined : remembered.trim() };
  const settings = settingsOf({ root, bootstrapFile, file: bootstrap?.file, joined, host, logLevel: flags.logLevel });
  return { settings: { ...settings, paths: await canonicalMountPaths(settings.paths) }, files: bootstrap };
}

/** Inputs from which the settings of a host are computed. */
export interface SettingsSources {
  readonly root: string;
  /** Path of the bootstrap file, which error messages name. */
  readonly bootstrapFile: string;
  /** Content of the bootstrap file; undefined if the host has none. */
  readonly file?: BootstrapFile | undefined;
  /** Settings that the host received when it joined a cluster. */
  readonly joined?: Joined | undefined;
  readonly host: HostAddresses;
  /** Log level of the command line, which takes precedence over the bootstrap file. */
  readonly logLevel?: number | undefined;
}

/** A bootstrap file without optional fields. A host without a bootstrap file has the same settings. */
const MINIMAL_FILE: BootstrapFile = { apiVersion: 'hyperedge.dev/v1', kind: 'Bootstrap' };

const DEFAULT_PORTS: Settings['ports'] = {
  api: 8443,
  kubelet: 10_250,
  controllers: 8444,
  etcd: 2379,
  etcdPeer: 2380,
  balancer: 7443,
  machineConfigServer: 22_623,
};

/** Throws CodedError 'bad-config' if fields contradict each other or the settings of the cluster. */
export function settingsOf(sources: SettingsSources): Settings {
  const { root, bootstrapFile, file = MINIMAL_FILE, joined, host, logLevel } = sources;
  if (joined !== undefined) checkAgainstCluster(bootstrapFile, file, joined.cluster);
  const paths = pathsBelow(root);
  // On a shared machine, names of an instance have a suffix that is derived from its root. Only the instance at `/` has
  // no suffix.
  const suffix = root === '/' ? undefined : sha256Hex(root).slice(0, 6);
  const families = familiesOf(joined?.cluster ?? { ...file.network, ipFamilies: file.ipFamilies }, bootstrapFile);
  const network = networkOf(file, joined, families, suffix);
  const podNetwork = podNetworkOf(file, network.bridge, suffix, bootstrapFile);
  const nodeAddresses = nodeAddressesOf(file, host, network, {
    ipFamilies: families.ipFamilies,
    podLinks: podLinksOf(network.bridge, podNetwork.tunnelNames),
  });
  const nodeName = toNodeName(file.node?.name ?? nodeNameOf(hostname()));
  const settings: Settings = {
    root,
    bootstrapFile,
    paths,
    logLevel: logLevel ?? file.logLevel ?? 2,

    roles: new Set(rolesOf(file, joined)),
    rolesGiven: file.roles !== undefined,
    joined: joined !== undefined,
    join: file.join,
    offer: file.offer,
    handover: file.handover,
    masters: mastersOf(file, joined),
    vip: file.vip && { address: file.vip.address, link: file.vip.interface },

    nodeName,
    ...nodeAddresses,
    nodeLabels: Object.fromEntries([...(file.labels ?? []), ...(file.node?.labels ?? [])]),
    nodeTaints: file.taints ?? [],
    maxPods: file.node?.maxPods ?? 250,
    systemReserved: Object.fromEntries(file.node?.systemReserved ?? []),
    runtimeHandlers: Object.fromEntries(file.node?.runtimeHandlers ?? []),
    containerRuntimeEndpoint: runtimeEndpointOf(file, joined, bootstrapFile),
    hostTools: file.hostTools ?? false,
    cgroup: { driver: 'auto', root: '/', ...file.cgroup },

    ports: { ...DEFAULT_PORTS, ...file.ports },
    ipFamilies: families.ipFamilies,
    network,
    podNetwork,
    dns: dnsOf(file, network.bridge),
    gossip: gossipOf(file, nodeAddresses.nodeIp, paths.gossipKeyring, joined),
    proxy: file.proxy ?? {},
    registries: file.registries ?? new Map(),
    router: routerOf(file.router),
    serviceLoadBalancer: serviceLoadBalancerOf(file),

    etcd: etcdOf(file, nodeName, bootstrapFile) ?? joinedEtcd(joined),
    restoreDamaged: file.etcd?.restoreDamaged ?? true,
    storage: storageOf(file),
    secretsEncryption: file.secretsEncryption?.provider,
    certificateLifeMs: parseDuration(file.certificates?.lifetime ?? ''),

    localVolumes: file.localVolumes?.enabled ?? true,
    schedulerConfigFile: file.scheduler?.configFile,
    embedded: embeddedOf(root, file),
    openshift: openshiftOf(file.openshift, joinedProfile(file, joined)),
    machineConfig: machineConfigOf(file.machineConfig),
    updates: updatesOf(file.updates),
    fixtures: declaredFixtures(file.fixtures),
    rigPower: file.rigPower ?? new Map(),
  };
  checkConflicts(settings);
  return settings;
}

function networkOf(
  file: BootstrapFile,
  joined: Joined | undefined,
  { clusterCidrs, serviceCidrs }: Families,
  suffix: string | undefined,
): Settings['network'] {
  const [clusterCidr, serviceCidr] = [clusterCidrs[0] ?? '', serviceCidrs[0] ?? ''];
  const hostSubnetLength = 9;
  return {
    clusterCidr,
    serviceCidr,
    clusterCidrs,
    serviceCidrs,
    clusterDomain: joined?.cluster.clusterDomain ?? file.network?.clusterDomain ?? 'cluster.local',
    bridge: file.network?.bridge ?? (suffix === undefined ? 'hyper0' : `he-${suffix}`),
    nftTable: file.network?.nftTable ?? (suffix === undefined ? 'hyperedge' : `hyperedge-${suffix}`),
    proxyMode: file.network?.proxyMode ?? 'auto',
    hostSubnetLength,
    firstPodCidr: firstSubnet(clusterCidr, clusterCidr.includes(':') ? 64 : hostSubnetLength),
    apiServiceIp: nthAddress(serviceCidr, 1),
    dnsIp: nthAddress(serviceCidr, 10),
  };
}

type NodeAddresses = Pick<Settings, 'nodeIp' | 'nodeIps' | 'nodeIpGiven' | 'nodeIpIsBridge' | 'addresses'>;

/** Selects the addresses of the node. A host without an address uses the future address of its pod bridge. */
function nodeAddressesOf(
  file: BootstrapFile,
  host: HostAddresses,
  { serviceCidrs, firstPodCidr }: Settings['network'],
  links: Pick<AddressChoice, 'ipFamilies' | 'podLinks'>,
): NodeAddresses {
  const choice = { ...links, given: file.node?.ip, serviceCidrs, shared: movingAddresses(file) };
  const selected = chooseNodeIps(host, choice);
  const nodeIp = selected[0] ?? nthAddress(host.podCidr?.split(',')[0] ?? firstPodCidr, 1);
  return {
    nodeIp,
    nodeIps: selected.length === 0 ? [nodeIp] : selected,
    nodeIpGiven: file.node?.ip,
    nodeIpIsBridge: selected.length === 0,
    addresses: [...new Set([nodeIp, ...ownAddresses(host, choice).map(({ address }) => address)])],
  };
}

function dnsOf({ dns }: BootstrapFile, bridge: string): Settings['dns'] {
  return {
    upstreams: dns?.upstreams,
    stubDomains: dns?.stubDomains ?? new Map(),
    ttlSeconds: dns?.ttlSeconds ?? 5,
    link: `${bridge.slice(0, 11)}-dns`,
  };
}

function storageOf({ storage }: BootstrapFile): Settings['storage'] {
  const { endpoints = [], ...files } = storage ?? {};
  return endpoints.length === 0 ? undefined : { endpoints, ...files };
}

function etcdOf(file: BootstrapFile, nodeName: NodeName, bootstrapFile: string): Settings['etcd'] {
  const members = [...(file.etcd?.initialCluster ?? [])].map(([name, peerUrl]) => ({ name, peerUrl }));
  if (members.length === 0) return undefined;
  if (!members.some(({ name }) => name === nodeName)) {
    throw new CodedError(
      'bad-config',
      `${bootstrapFile}: etcd.initialCluster does not name this node; ` +
        `add ${nodeName}: https://ADDRESS:2380, or set node.name`,
    );
  }
  return { members, state: file.etcd?.initialClusterState ?? 'new', token: file.etcd?.initialClusterToken };
}

function joinedEtcd(joined: Joined | undefined): Settings['etcd'] {
  if (joined?.etcd === undefined) return undefined;
  const members = [...joined.etcd.members].map(([name, peerUrl]) => ({ name, peerUrl }));
  return { members, state: 'existing', token: joined.etcd.token };
}

/** Addresses and ranges that can move between hosts: one host has each of them at a time. */
function movingAddresses(file: BootstrapFile): string[] {
  const vip = file.vip?.address;
  return [...(vip === undefined ? [] : [vip]), ...(file.serviceLoadBalancer?.addresses ?? [])];
}

function serviceLoadBalancerOf(file: BootstrapFile): Settings['serviceLoadBalancer'] {
  const { enabled = true, addresses = [], interface: link } = file.serviceLoadBalancer ?? {};
  return { enabled, addresses, link };
}

function mastersOf(file: BootstrapFile, joined: Joined | undefined): string[] {
  const learnt = joined === undefined ? [] : [joined.server, ...joined.apiServers];
  return [...new Set([...(file.masters ?? []), ...learnt])];
}

/** Default port, as in serf. */
const GOSSIP_PORT = 7946;

function gossipOf(
  file: BootstrapFile,
  nodeIp: string,
  keyringFile: string,
  joined: Joined | undefined,
): Settings['gossip'] {
  const given = file.gossip;
  const bindAddress = given?.bindAddress ?? (nodeIp.includes(':') ? '::' : '0.0.0.0');
  const any = bindAddress === '::' || bindAddress === '0.0.0.0';
  return {
    enabled: given?.enabled ?? true,
    configured: given !== undefined,
    bindAddress,
    port: given?.port ?? GOSSIP_PORT,
    advertiseAddress: given?.advertiseAddress ?? (any ? nodeIp : bindAddress),
    join: given?.join ?? (joined === undefined ? [] : mastersOf(MINIMAL_FILE, joined).map((url) => hostOf(url))),
    keyringFile: given?.keyringFile ?? keyringFile,
  };
}

/** Host of a URL as a peer of the ring. The port is omitted, so that the ring's default port is used. */
const hostOf = (url: string): string => new URL(url).hostname;

/** Converts a host name to a node name: characters that are invalid in a node name become dashes. */
function nodeNameOf(host: string): string {
  const name = host
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return name === '' ? 'localhost' : name;
}
