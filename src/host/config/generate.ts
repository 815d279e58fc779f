/** Generates the configuration files of the components from the settings, with OKD's and etcd's fields. */
import { dirname, relative } from 'node:path';
import { addressKind } from '../../base/addresses/destinations.ts';
import { etcdFiles, masterFiles, nodeFiles } from '../../pki/index.ts';
import type { EtcdConfig } from '../../store/config/etcd-config-file.ts';
import { publishedSettings } from './joined.ts';
import type { MasterConfig } from './master-config.ts';
import type { NodeConfig } from './node-config.ts';
import { pathsBelow } from './paths.ts';
import type { Settings } from './settings.ts';

/** Every node has a /64 as its IPv6 pod CIDR, as in upstream. */
const IPV6_SUBNET_LENGTH = 64;

const anyAddress = (settings: Settings): string => (settings.nodeIp.includes(':') ? '[::]' : '0.0.0.0');
const host = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/**
 * Endpoints of the API server's store. The host's own member is first, on loopback so that it does not depend on the
 * host's address. The other members are used for failover.
 */
function storeUrls({ etcd, nodeName, ports }: Settings): string[] {
  const own = `https://127.0.0.1:${ports.etcd}`;
  const others = (etcd?.members ?? []).filter(({ name }) => name !== nodeName);
  return [own, ...others.map(({ peerUrl }) => `https://${new URL(peerUrl).hostname}:${ports.etcd}`)];
}

function apiServerArguments(
  { secretsEncryption, embedded, paths }: Settings,
  relativePath: (path: string) => string,
): Pick<NonNullable<MasterConfig['kubernetesMasterConfig']>, 'apiServerArguments'> {
  const flags = new Map<string, string[]>();
  if (secretsEncryption !== undefined) flags.set('encryption-provider-config', [relativePath(paths.encryptionConfig)]);
  const apis = [...embedded.runtimeConfig].map(([name, on]) => `${name}=${on}`);
  if (!embedded.metrics) apis.push('metrics.k8s.io/v1beta1=false');
  if (apis.length > 0) flags.set('runtime-config', [apis.join(',')]);
  return flags.size === 0 ? {} : { apiServerArguments: flags };
}

export function masterConfigOf(settings: Settings): MasterConfig {
  const files = masterFiles(settings.root);
  const { network, storage, ports } = settings;
  const relativePath = (path: string): string => relative(dirname(settings.paths.masterConfig), path);
  return {
    apiVersion: 'v1',
    kind: 'MasterConfig',
    masterPublicURL: `https://${host(settings.nodeIp)}:${ports.api}`,
    servingInfo: {
      bindAddress: `${anyAddress(settings)}:${ports.api}`,
      certFile: relativePath(files.server.cert),
      keyFile: relativePath(files.server.key),
      clientCA: relativePath(files.caBundle),
    },
    etcdClientInfo:
      storage === undefined
        ? {
            urls: storeUrls(settings),
            ca: relativePath(files.etcdCa),
            certFile: relativePath(files.etcdClient.cert),
            keyFile: relativePath(files.etcdClient.key),
          }
        : {
            urls: [...storage.endpoints],
            ...(storage.caFile === undefined ? {} : { ca: storage.caFile }),
            ...(storage.certFile === undefined ? {} : { certFile: storage.certFile }),
            ...(storage.keyFile === undefined ? {} : { keyFile: storage.keyFile }),
          },
    kubeletClientInfo: {
      ca: relativePath(files.kubeletCaBundle),
      certFile: relativePath(files.kubeletClient.cert),
      keyFile: relativePath(files.kubeletClient.key),
      port: ports.kubelet,
    },
    serviceAccountConfig: {
      masterCA: relativePath(files.caBundle),
      privateKeyFile: relativePath(files.serviceAccountsPrivateKey),
      publicKeyFiles: [relativePath(files.serviceAccountsPublicKey)],
    },
    authConfig: {
      requestHeader: {
        clientCA: relativePath(files.frontProxyCaBundle),
        clientCommonNames: ['aggregator-front-proxy'],
      },
    },
    aggregatorConfig: {
      proxyClientInfo: {
        certFile: relativePath(files.aggregatorFrontProxy.cert),
        keyFile: relativePath(files.aggregatorFrontProxy.key),
      },
    },
    kubernetesMasterConfig: {
      masterIP: settings.nodeIp,
      servicesSubnet: network.serviceCidrs.join(),
      servicesNodePortRange: '30000-32767',
      ...apiServerArguments(settings, relativePath),
    },
    masterClients: {
      openshiftLoopbackKubeConfig: relativePath(files.controllersKubeconfig),
      schedulerKubeConfig: relativePath(files.schedulerKubeconfig),
    },
    controllerConfig: {
      healthBindAddress: `127.0.0.1:${ports.controllers}`,
      ...(settings.localVolumes ? {} : { localVolumes: false }),
      ...serviceLoadBalancerOf(settings),
      ...(settings.schedulerConfigFile === undefined ? {} : { schedulerConfigFile: settings.schedulerConfigFile }),
      signer: { certFile: relativePath(files.ca.cert), keyFile: relativePath(files.ca.key) },
    },
    networkConfig: {
      clusterNetworks: network.clusterCidrs.map((cidr) => ({
        cidr,
        hostSubnetLength: cidr.includes(':') ? IPV6_SUBNET_LENGTH : network.hostSubnetLength,
      })),
      serviceNetworkCIDR: network.serviceCidrs.join(),
    },
    // `console` is omitted if enabled, because earlier releases reject unknown fields.
    ...(settings.embedded.console ? {} : { console: { enabled: false } }),
    openshift: settings.openshift,
    clusterSettings: new Map(Object.entries(publishedSettings(settings))),
  };
}

function serviceLoadBalancerOf({ serviceLoadBalancer: { enabled, addresses } }: Settings): object {
  return enabled && addresses.length === 0 ? {} : { serviceLoadBalancer: { enabled, addresses } };
}

export function etcdConfigOf(settings: Settings): EtcdConfig {
  const files = etcdFiles(settings.root);
  const relativePath = (path: string): string => relative(dirname(settings.paths.etcdConfig), path);
  const { ports, nodeIp } = settings;
  const several = settings.etcd === undefined ? undefined : oneOfSeveral(settings, settings.etcd);
  return {
    name: settings.nodeName,
    'data-dir': settings.paths.etcdData,
    ...listenersOf(settings),
    'initial-advertise-peer-urls': `https://${host(nodeIp)}:${ports.etcdPeer}`,
    'client-transport-security': {
      'cert-file': relativePath(files.server.cert),
      'key-file': relativePath(files.server.key),
      'trusted-ca-file': relativePath(files.ca),
      'client-cert-auth': true,
    },
    'peer-transport-security': {
      'cert-file': relativePath(files.peer.cert),
      'key-file': relativePath(files.peer.key),
      'trusted-ca-file': relativePath(files.ca),
      'client-cert-auth': true,
    },
    ...several,
  };
}

/**
 * Listeners of the store. A single member also listens on the network, so that other hosts can join. Peers can read
 * every key, so only certificates of the store's own authority are accepted. The wildcard address does not depend on
 * the host's address.
 */
function listenersOf({
  ports,
  nodeIp,
  nodeIpIsBridge,
}: Settings): Pick<EtcdConfig, 'listen-client-urls' | 'advertise-client-urls' | 'listen-peer-urls'> {
  const local = `https://127.0.0.1:${ports.etcd}`;
  const own = `https://${host(nodeIp)}`;
  if (nodeIpIsBridge) {
    return {
      'listen-client-urls': local,
      'advertise-client-urls': local,
      'listen-peer-urls': `https://127.0.0.1:${ports.etcdPeer}`,
    };
  }
  const any = nodeIp.includes(':') ? 'https://[::]' : 'https://0.0.0.0';
  // Several test hosts share the loopback link, so each host listens on its own address only.
  const isLoopback = addressKind(nodeIp) === 'loopback';
  return {
    'listen-client-urls': isLoopback ? `${local},${own}:${ports.etcd}` : `${any}:${ports.etcd}`,
    'advertise-client-urls': `${own}:${ports.etcd}`,
    'listen-peer-urls': `${isLoopback ? own : any}:${ports.etcdPeer}`,
  };
}

function oneOfSeveral(
  settings: Settings,
  { members, state, token }: NonNullable<Settings['etcd']>,
): Partial<EtcdConfig> {
  const { nodeName, nodeIp, ports } = settings;
  // The address may have changed since the join. For a host that has not joined, the administrator sets the address in
  // the bootstrap file.
  const current = settings.joined ? `https://${host(nodeIp)}:${ports.etcdPeer}` : undefined;
  const urlOf = ({ name, peerUrl }: { name: string; peerUrl: string }): string =>
    name === nodeName ? (current ?? peerUrl) : peerUrl;
  const own = members.find(({ name }) => name === nodeName);
  return {
    'initial-advertise-peer-urls': own === undefined ? '' : urlOf(own),
    'initial-cluster': members.map((member) => `${member.name}=${urlOf(member)}`).join(),
    'initial-cluster-state': state,
    ...(token === undefined ? {} : { 'initial-cluster-token': token }),
  };
}

export function nodeConfigOf(settings: Settings, cgroupDriver: string): NodeConfig {
  const files = nodeFiles(settings.root);
  const relativePath = (path: string): string => relative(dirname(settings.paths.nodeConfig), path);
  const pairs = (values: Readonly<Record<string, string>>): string[] =>
    Object.entries(values).map(([key, value]) => `${key}=${value}`);
  const labels = pairs(settings.nodeLabels);
  const reserved = pairs(settings.systemReserved);
  return {
    apiVersion: 'v1',
    kind: 'NodeConfig',
    nodeName: settings.nodeName,
    // A detected address is not written here, because it can change while the host runs.
    ...(settings.nodeIpGiven === undefined ? {} : { nodeIP: settings.nodeIpGiven }),
    dnsDomain: settings.network.clusterDomain,
    dnsIP: settings.network.dnsIp,
    masterKubeConfig: relativePath(files.kubeconfig),
    servingInfo: {
      bindAddress: `${anyAddress(settings)}:${settings.ports.kubelet}`,
      certFile: relativePath(files.serverCurrent),
      keyFile: relativePath(files.serverCurrent),
      clientCA: relativePath(files.clientCa),
    },
    podManifestConfig: { path: settings.paths.staticPods, fileCheckIntervalSeconds: 20 },
    volumeDirectory: pathsBelow(settings.root).volumes,
    kubeletArguments: {
      'max-pods': [String(settings.maxPods)],
      'cgroup-driver': [cgroupDriver],
      'cgroup-root': [settings.cgroup.root],
      ...(labels.length === 0 ? {} : { 'node-labels': labels }),
      ...(reserved.length === 0 ? {} : { 'system-reserved': reserved }),
    },
    proxyArguments: { 'proxy-mode': [settings.network.proxyMode] },
  };
}
