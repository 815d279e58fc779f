/**
 * The bootstrap file, `/etc/origin/bootstrap.yaml`: roles and settings of this host. The file and all its fields are
 * optional.
 */
import { isIP } from 'node:net';
import { parseAddressRange } from '../../base/addresses/address-pool.ts';
import { parseNetworks } from '../../base/addresses/networks.ts';
import { labelValueErrors, qualifiedNameErrors } from '../../base/names.ts';
import { tryParseQuantity } from '../../base/quantity.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { parseDomain, parseServer } from '../../network/dns/index.ts';
import { routerField } from '../../network/router/config/router.ts';
import { machineConfigField } from '../../openshift/machine-config/config/daemon-settings.ts';
import { openshiftField } from '../../openshift/oauth/config/login-config.ts';
import { updatesField } from '../../openshift/updates/config/updates.ts';
import { fixturesField, rigPowerField } from '../../rigs/config/fixtures.ts';
import type { Field, JsonSchema, Parsed } from '../../wire/strict-yaml.ts';
import {
  boolean,
  checkedString,
  dictionary,
  integer,
  list,
  object,
  oneOf,
  schemaOf,
  string,
} from '../../wire/strict-yaml.ts';
import { embeddedShape } from './embedded.ts';
import { proxyField } from './outbound.ts';

export const ROLES = ['master', 'etcd', 'node'] as const;
export type Role = (typeof ROLES)[number];

const NODE_NAME = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  fix: 'use lower-case letters, digits, "-" and "."',
};
const ip = (): Field<string> =>
  checkedString((text) => (isIP(text) === 0 ? 'give an IP address' : undefined), 'IP address');
/** One CIDR range, or one range of each family: `10.128.0.0/14,fd00:10::/48`. */
export const cidrs = (): Field<string> =>
  checkedString((text) => {
    const networks = parseNetworks(text);
    if (networks === undefined) return 'give an address range such as 172.30.0.0/16';
    if (networks.length > 2 || new Set(networks.map(({ family }) => family)).size < networks.length)
      return 'give at most one range of each address family';
    return undefined;
  }, 'address range such as 172.30.0.0/16, or one of each family with a comma between them');
const absolutePath = (): Field<string> => string({ pattern: /^\//, fix: 'give an absolute path' });
const port = (): Field<number> => integer(1, 65_535);
const dnsServer = (): Field<string> =>
  checkedString(
    (text) => (parseServer(text) === undefined ? 'give an address such as 10.0.0.2 or 10.0.0.2:5353' : undefined),
    'IP address, with or without a port',
  );
/** Upstream DNS servers for the names in a domain, by domain. */
const stubDomains = (): Field<ReadonlyMap<string, readonly string[]>> => {
  const servers = dictionary(list(dnsServer()));
  return {
    ...servers,
    parse: (at) => {
      const parsed = servers.parse(at);
      const wrong = [...parsed].find(([domain, each]) => parseDomain(domain) === undefined || each.length === 0);
      if (wrong !== undefined) throw at.fail(`"${wrong[0]}" needs a domain as key and a list of servers as value`);
      return parsed;
    },
  };
};
const linkName = (): Field<string> =>
  string({
    pattern: /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$/,
    fix: 'a link name has up to 15 letters, digits, "-", "_" or "."',
  });

/** Whether `text` has the form `host`, `host:port` or `[address]:port`. */
function isPeer(text: string): boolean {
  const [, literal, name, digits] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([a-zA-Z0-9][a-zA-Z0-9.-]{0,252}))(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (literal === undefined && name === undefined) return false;
  if (literal !== undefined && isIP(literal) !== 6) return false;
  return digits === undefined || (Number(digits) >= 1 && Number(digits) <= 65_535);
}

export const apiUrl = (): Field<string> =>
  string({ pattern: /^https:\/\/[^/,=]+:\d+$/, fix: 'give the URL of an API server such as https://10.0.0.5:8443' });
export const peerUrl = (): Field<string> =>
  string({ pattern: /^https:\/\/[^/,=]+:\d+$/, fix: 'give its peer URL such as https://10.0.0.5:2380' });
export const DOMAIN = { pattern: /^[a-z0-9.-]+$/, fix: 'give a DNS domain such as cluster.local' };
const taint = (): Field<string> =>
  string({
    pattern: /^[A-Za-z0-9][-A-Za-z0-9_./]*(=[-A-Za-z0-9_.]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$/,
    fix: 'write KEY=VALUE:EFFECT or KEY:EFFECT; EFFECT is NoSchedule, PreferNoSchedule or NoExecute',
  });

/** Labels of the Node. The API server rejects a Node with an invalid label, so the host would never join. */
const nodeLabels = (): Field<ReadonlyMap<string, string>> =>
  checkedDictionary((key, value) => qualifiedNameErrors(key)[0] ?? labelValueErrors(value)[0]);

const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid'];
/** Resources that the kubelet keeps for the host. */
const reservedResources = (): Field<ReadonlyMap<string, string>> =>
  checkedDictionary((key, value) => {
    if (!RESERVABLE.includes(key)) return `the resource must be one of ${RESERVABLE.join(', ')}`;
    return tryParseQuantity(value) === undefined ? 'give a quantity such as 500m or 1Gi' : undefined;
  });

/** Mapping whose entries `test` accepts; otherwise `test` returns the fix. */
function checkedDictionary(
  test: (key: string, value: string) => string | undefined,
): Field<ReadonlyMap<string, string>> {
  const entries = dictionary(string());
  return {
    ...entries,
    parse: (at) => {
      const parsed = entries.parse(at);
      for (const [key, value] of parsed) {
        const fix = test(key, value);
        if (fix !== undefined)
          throw at.fail(`${JSON.stringify(key)}: ${JSON.stringify(value)} is not accepted; ${fix}`);
      }
      return parsed;
    },
  };
}

/** Field with a registry, as `host` or `host:port`. */
const registryHost = (): Field<string> =>
  string({
    pattern: /^([a-zA-Z0-9][a-zA-Z0-9.-]*|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$/,
    fix: 'give a registry such as mirror.lab:5000',
  });

const MIN_CERTIFICATE_MS = 10_000;
const certificateLife = (): Field<string> =>
  checkedString((text) =>
    (parseDuration(text) ?? 0) >= MIN_CERTIFICATE_MS ? undefined : 'give a duration such as 8760h, 10s or more',
  );

/** Field with a range of addresses: `10.0.0.240-10.0.0.250`, `10.0.1.0/28` or one address. */
export const addressRange = (): Field<string> =>
  checkedString(
    (text) =>
      parseAddressRange(text) === undefined
        ? 'give addresses such as 10.0.0.240-10.0.0.250, 10.0.1.0/28 or 10.0.0.240'
        : undefined,
    'address, range of addresses or network',
  );

const shape = {
  apiVersion: oneOf('hyperedge.dev/v1'),
  kind: oneOf('Bootstrap'),
  roles: list(oneOf(...ROLES)),
  join: object(
    {
      server: apiUrl(),
      token: string({
        pattern: /^[a-z0-9]{6}\.[a-z0-9]{16,}$/,
        fix: 'give a token of "hyperedge token create"',
        secret: true,
      }),
      caHash: string({ pattern: /^sha256:[0-9a-f]{64}$/, fix: 'give the hash that "hyperedge token create" printed' }),
    },
    ['server', 'token', 'caHash'],
  ),
  offer: object(
    {
      server: apiUrl(),
      caHash: string({ pattern: /^sha256:[0-9a-f]{64}$/, fix: 'give the hash that "hyperedge token create" printed' }),
    },
    ['server', 'caHash'],
  ),
  handover: object({ masters: integer(1, 9) }, ['masters']),
  masters: list(apiUrl()),
  vip: object({ address: ip(), interface: linkName() }, ['address']),
  labels: nodeLabels(),
  taints: list(taint()),
  ipFamilies: list(oneOf('IPv4', 'IPv6')),
  podNetwork: object({
    backend: oneOf('auto', 'routes', 'vxlan'),
    encrypt: boolean(),
    mtu: integer(1280, 65_535),
  }),
  proxy: proxyField(),
  registries: dictionary(object({ mirrors: list(registryHost()), insecure: boolean() })),
  hostTools: boolean(),
  localVolumes: object({ enabled: boolean() }),
  scheduler: object(
    { configFile: string({ pattern: /^\w[\w.-]*$/, fix: 'give the name of a file in /etc/origin/master' }) },
    ['configFile'],
  ),
  fixtures: fixturesField(),
  rigPower: rigPowerField(),
  serviceLoadBalancer: object({ enabled: boolean(), addresses: list(addressRange()), interface: linkName() }),
  ...embeddedShape,
  openshift: openshiftField(),
  router: routerField(),
  machineConfig: machineConfigField(),
  updates: updatesField(),
  logLevel: integer(0, 10),
  node: object({
    name: string(NODE_NAME),
    ip: ip(),
    labels: nodeLabels(),
    maxPods: integer(1, 10_000),
    systemReserved: reservedResources(),
    runtimeHandlers: dictionary(absolutePath()),
    containerRuntimeEndpoint: string({ pattern: /^unix:\/\/\/\S+$/, fix: 'give unix:///PATH' }),
  }),
  ports: object({
    api: port(),
    kubelet: port(),
    controllers: port(),
    etcd: port(),
    etcdPeer: port(),
    balancer: port(),
    machineConfigServer: port(),
  }),
  network: object({
    clusterCIDR: cidrs(),
    serviceCIDR: cidrs(),
    clusterDomain: string(DOMAIN),
    bridge: linkName(),
    nftTable: string({ pattern: /^[a-zA-Z_][a-zA-Z0-9_-]{0,62}$/, fix: 'use letters, digits, "-" and "_"' }),
    proxyMode: oneOf('auto', 'nftables', 'userspace'),
  }),
  dns: object({
    upstreams: list(dnsServer()),
    stubDomains: stubDomains(),
    ttlSeconds: integer(0, 3600),
  }),
  gossip: object({
    enabled: boolean(),
    bindAddress: ip(),
    port: port(),
    advertiseAddress: ip(),
    join: list(
      checkedString((text) => (isPeer(text) ? undefined : 'give an address such as 10.0.0.2:7946 or host-2.lab:7946')),
    ),
    keyringFile: absolutePath(),
  }),
  etcd: object({
    initialCluster: dictionary(peerUrl()),
    initialClusterState: oneOf('new', 'existing'),
    initialClusterToken: string(),
    restoreDamaged: boolean(),
  }),
  cgroup: object({ driver: oneOf('auto', 'systemd', 'cgroupfs'), root: absolutePath() }),
  certificates: object({ lifetime: certificateLife() }),
  secretsEncryption: object({ provider: oneOf('secretbox', 'aesgcm', 'aescbc') }, ['provider']),
  storage: object({
    endpoints: list(string({ pattern: /^https?:\/\/[^/]+$/, fix: 'give URLs such as https://10.0.0.5:2379' })),
    caFile: absolutePath(),
    certFile: absolutePath(),
    keyFile: absolutePath(),
  }),
} as const;

export type BootstrapFile = Parsed<typeof shape, 'apiVersion' | 'kind'>;

export const bootstrapField: Field<BootstrapFile> = object(shape, ['apiVersion', 'kind']);

/** JSON Schema of the bootstrap file, for editors and `hyperedge config schema`. */
export function bootstrapSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'hyperedge bootstrap file',
    description: '/etc/origin/bootstrap.yaml and files below /etc/origin/bootstrap.yaml.d',
    ...schemaOf(bootstrapField),
  };
}
