/**
 * `/etc/origin/node/joined.yaml`: settings that this host received when it joined a cluster. They are equal on all
 * hosts and take precedence over the bootstrap file. `hyperedge run` writes this file last during a join.
 */
import { stringify } from 'yaml';
import { CodedError } from '../../base/errors.ts';
import { PROFILES, type Profile } from '../../openshift/oauth/config/login-config.ts';
import { writeWhole } from '../../pki/index.ts';
import {
  dictionary,
  list,
  object,
  oneOf,
  type Parsed,
  parseConfig,
  readConfigFile,
  string,
} from '../../wire/strict-yaml.ts';
import { apiUrl, type BootstrapFile, cidrs, DOMAIN, peerUrl, ROLES, type Role } from './bootstrap.ts';
import type { Settings } from './settings.ts';

const clusterShape = {
  clusterCIDR: cidrs(),
  serviceCIDR: cidrs(),
  clusterDomain: string(DOMAIN),
  ipFamilies: list(oneOf('IPv4', 'IPv6')),
  openshiftProfile: oneOf(...PROFILES),
} as const;

const CLUSTER_FIELDS = ['clusterCIDR', 'serviceCIDR', 'clusterDomain', 'ipFamilies'] as const;

const shape = {
  apiVersion: oneOf('hyperedge.dev/v1'),
  kind: oneOf('Joined'),
  /** URL of the API server at which this host joined. */
  server: apiUrl(),
  apiServers: list(apiUrl()),
  roles: list(oneOf(...ROLES)),
  cluster: object(clusterShape, CLUSTER_FIELDS),
  /** Only on a host with a store member: the members at the time of the join, including the host's own member. */
  etcd: object({ members: dictionary(peerUrl()), token: string() }, ['members']),
} as const;

export type Joined = Parsed<typeof shape, 'apiVersion' | 'kind' | 'server' | 'apiServers' | 'roles' | 'cluster'>;
export type ClusterSettings = Joined['cluster'];

const field = object(shape, ['apiVersion', 'kind', 'server', 'apiServers', 'roles', 'cluster']);

/** Reads the file; undefined if this host has not joined a cluster. Throws CodedError 'bad-config'. */
export function readJoined(file: string): Promise<Joined | undefined> {
  return readConfigFile(file, field);
}

/** Writes the file and flushes it to disk before it resolves. Throws CodedError 'unwritable'. */
export function writeJoined(
  file: string,
  joined: Omit<Joined, 'apiVersion' | 'kind'> & { readonly roles: readonly Role[] },
): Promise<void> {
  const text = stringify({ apiVersion: 'hyperedge.dev/v1', kind: 'Joined', ...joined }, { lineWidth: 0 });
  return writeWhole(file, `# Written by hyperedge when this host joined its cluster.\n${text}`, {
    mode: 0o644,
    durable: true,
  });
}

/**
 * Parses the cluster's settings in a config map. Throws CodedError 'bad-config' that names the config map and the key.
 */
export function parseClusterSettings(source: string, data: Readonly<Record<string, string>>): ClusterSettings {
  const { clusterCIDR = '', serviceCIDR = '', clusterDomain = '', ipFamilies = '' } = data;
  const openshiftProfile = profileOf(data);
  const document = {
    clusterCIDR,
    serviceCIDR,
    clusterDomain,
    ipFamilies: ipFamilies.split(','),
    ...(openshiftProfile === undefined ? {} : { openshiftProfile }),
  };
  return parseConfig(stringify(document), `config map ${source}`, object(clusterShape, CLUSTER_FIELDS));
}

/**
 * The published profile; undefined if masters of another release publish no profile or one that this release does not
 * know.
 */
export const profileOf = (data: Readonly<Record<string, string>>): Profile | undefined =>
  PROFILES.find((profile) => profile === data['openshiftProfile']);

/**
 * Roles of a host. A host without configured roles that joins a cluster is a node, until its token determines its
 * roles.
 */
export function rolesOf(file: BootstrapFile | undefined, joined: Joined | undefined): readonly Role[] {
  return file?.roles ?? joined?.roles ?? ((file?.join ?? file?.offer) === undefined ? ROLES : ['node']);
}

/** The cluster's profile. Undefined on masters, which use the profile in their bootstrap file. */
export function joinedProfile(file: BootstrapFile | undefined, joined: Joined | undefined): Profile | undefined {
  const isMaster = (file?.roles ?? joined?.roles)?.includes('master') === true;
  return isMaster ? undefined : joined?.cluster.openshiftProfile;
}

/** Settings for joining hosts, as published in `kube-system/hyperedge-config`. */
export function publishedSettings({
  network,
  ipFamilies,
  podNetwork,
  openshift,
}: Settings): Readonly<Record<string, string>> {
  return {
    clusterCIDR: network.clusterCidrs.join(),
    serviceCIDR: network.serviceCidrs.join(),
    clusterDomain: network.clusterDomain,
    ipFamilies: ipFamilies.join(),
    podNetworkBackend: podNetwork.backend,
    podNetworkEncrypt: String(podNetwork.encrypt),
    openshiftProfile: openshift.profile,
  };
}

/** Throws CodedError 'bad-config' if the bootstrap file contradicts a setting of the cluster. */
export function checkAgainstCluster(file: string, given: BootstrapFile | undefined, cluster: ClusterSettings): void {
  const pairs = [
    ['network.clusterCIDR', given?.network?.clusterCIDR, cluster.clusterCIDR],
    ['network.serviceCIDR', given?.network?.serviceCIDR, cluster.serviceCIDR],
    ['network.clusterDomain', given?.network?.clusterDomain, cluster.clusterDomain],
    ['ipFamilies', given?.ipFamilies?.join(), cluster.ipFamilies.join()],
  ] as const;
  for (const [name, own, wanted] of pairs) {
    if (own !== undefined && own !== wanted)
      throw new CodedError('bad-config', `${file}: ${name}: is ${own}, the cluster has ${wanted}; remove the field`);
  }
}
