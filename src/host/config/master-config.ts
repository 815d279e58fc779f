/**
 * `/etc/origin/master/master-config.yaml`: the supported fields of OKD 3.11's MasterConfig. Relative paths in this file
 * are relative to its directory.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { openshiftField } from '../../openshift/oauth/config/login-config.ts';
import type { Field, Parsed } from '../../wire/strict-yaml.ts';
import {
  boolean,
  checkedString,
  dictionary,
  integer,
  list,
  object,
  oneOf,
  readConfigFile,
  string,
} from '../../wire/strict-yaml.ts';

/** Field with `address:port`. An IPv6 address is in brackets. */
export const bindAddress = (): Field<string> =>
  checkedString((text) =>
    parseBindAddress(text) === undefined ? 'give address:port, such as 0.0.0.0:8443' : undefined,
  );

export function parseBindAddress(text: string): { readonly address: string; readonly port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? 0);
  const address = match?.[1] ?? match?.[2];
  return address === undefined || port > 65_535 ? undefined : { address, port };
}

const shape = {
  apiVersion: oneOf('v1'),
  kind: oneOf('MasterConfig'),
  masterPublicURL: string({ pattern: /^https:\/\//, fix: 'give an https:// URL' }),
  servingInfo: object({ bindAddress: bindAddress(), certFile: string(), keyFile: string(), clientCA: string() }, [
    'bindAddress',
    'certFile',
    'keyFile',
    'clientCA',
  ]),
  etcdClientInfo: object(
    {
      urls: list(string({ pattern: /^https?:\/\/[^/]+$/, fix: 'give a URL such as https://10.0.0.5:2379' })),
      ca: string(),
      certFile: string(),
      keyFile: string(),
    },
    ['urls'],
  ),
  kubeletClientInfo: object({ ca: string(), certFile: string(), keyFile: string(), port: integer(1, 65_535) }, [
    'ca',
    'certFile',
    'keyFile',
  ]),
  serviceAccountConfig: object({ masterCA: string(), privateKeyFile: string(), publicKeyFiles: list(string()) }, [
    'masterCA',
    'privateKeyFile',
    'publicKeyFiles',
  ]),
  authConfig: object({
    requestHeader: object({ clientCA: string(), clientCommonNames: list(string()) }, ['clientCA', 'clientCommonNames']),
  }),
  /** The proxy client certificate for aggregated API servers. */
  aggregatorConfig: object({
    proxyClientInfo: object({ certFile: string(), keyFile: string() }, ['certFile', 'keyFile']),
  }),
  kubernetesMasterConfig: object({
    masterIP: string(),
    servicesSubnet: string(),
    servicesNodePortRange: string({ pattern: /^\d+-\d+$/, fix: 'give a range such as 30000-32767' }),
    /** kube-apiserver's flags, as in OKD: `audit-policy-file: [audit.yaml]`. */
    apiServerArguments: dictionary(list(string())),
  }),
  masterClients: object({ openshiftLoopbackKubeConfig: string(), schedulerKubeConfig: string() }, [
    'openshiftLoopbackKubeConfig',
    'schedulerKubeConfig',
  ]),
  controllerConfig: object({
    healthBindAddress: bindAddress(),
    /** Whether the storage class `hyperedge-local` is created. Default true. */
    localVolumes: boolean(),
    /** Addresses of services of type LoadBalancer. Default: enabled, with the addresses of the nodes. */
    serviceLoadBalancer: object({ enabled: boolean(), addresses: list(string()) }),
    signer: object({ certFile: string(), keyFile: string() }, ['certFile', 'keyFile']),
    /** Path of a KubeSchedulerConfiguration. */
    schedulerConfigFile: string(),
  }),
  networkConfig: object({
    clusterNetworks: list(object({ cidr: string(), hostSubnetLength: integer(2, 120) }, ['cidr', 'hostSubnetLength'])),
    serviceNetworkCIDR: string(),
  }),
  /** The web console. Default: enabled. */
  console: object({ enabled: boolean() }),
  openshift: openshiftField(),
  /** Settings for joining hosts, published as config map `kube-system/hyperedge-config`. */
  clusterSettings: dictionary(string()),
} as const;

export type MasterConfig = Parsed<
  typeof shape,
  | 'apiVersion'
  | 'kind'
  | 'servingInfo'
  | 'etcdClientInfo'
  | 'kubeletClientInfo'
  | 'serviceAccountConfig'
  | 'masterClients'
>;

const field: Field<MasterConfig> = object(shape, [
  'apiVersion',
  'kind',
  'servingInfo',
  'etcdClientInfo',
  'kubeletClientInfo',
  'serviceAccountConfig',
  'masterClients',
]);

/** Reads the configuration. Throws CodedError 'bad-config' with file, line and field. */
export async function readMasterConfig(file: string): Promise<MasterConfig> {
  const config = await readConfigFile(file, field);
  if (config === undefined) throw new CodedError('bad-config', `${file} does not exist; hyperedge run writes it`);
  return config;
}

/** Resolves a path in a configuration file. As in OKD, it is relative to the directory of that file. */
export function resolveRelativeTo(configFile: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(configFile), path);
}
