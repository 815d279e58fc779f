/**
 * `/etc/origin/node/node-config.yaml`: the fields of OKD 3.11's NodeConfig that are honoured. File names are relative
 * to it.
 */
import { CodedError } from '../../base/errors.ts';
import { bindAddress } from './master-config.ts';
import type { Field, Parsed } from './strict-yaml.ts';
import { integer, list, object, oneOf, readConfigFile, string } from './strict-yaml.ts';

/** Arguments of the kubelet, each a list of strings as OKD writes them. */
const argument = list(string());

const shape = {
  apiVersion: oneOf('v1'),
  kind: oneOf('NodeConfig'),
  nodeName: string(),
  nodeIP: string(),
  dnsDomain: string(),
  dnsIP: string(),
  masterKubeConfig: string(),
  servingInfo: object({ bindAddress: bindAddress(), certFile: string(), keyFile: string(), clientCA: string() }, [
    'bindAddress',
    'certFile',
    'keyFile',
    'clientCA',
  ]),
  podManifestConfig: object({ path: string(), fileCheckIntervalSeconds: integer(1, 3600) }, ['path']),
  volumeDirectory: string(),
  kubeletArguments: object({
    'max-pods': argument,
    'node-labels': argument,
    'system-reserved': argument,
    'cgroup-driver': argument,
    'cgroup-root': argument,
    'container-log-max-size': argument,
    'container-log-max-files': argument,
    'pod-max-pids': argument,
    'seccomp-default': argument,
    'manifest-url': argument,
    'eviction-hard': argument,
    'eviction-soft': argument,
    'eviction-soft-grace-period': argument,
    'eviction-minimum-reclaim': argument,
    'eviction-pressure-transition-period': argument,
    'eviction-max-pod-grace-period': argument,
  }),
  proxyArguments: object({ 'proxy-mode': argument }),
} as const;

type Required =
  | 'apiVersion'
  | 'kind'
  | 'nodeName'
  | 'masterKubeConfig'
  | 'servingInfo'
  | 'podManifestConfig'
  | 'volumeDirectory';
export type NodeConfig = Parsed<typeof shape, Required>;

const field: Field<NodeConfig> = object(shape, [
  'apiVersion',
  'kind',
  'nodeName',
  'masterKubeConfig',
  'servingInfo',
  'podManifestConfig',
  'volumeDirectory',
]);

/** Throws CodedError 'bad-config' with file, line and field. */
export async function readNodeConfig(file: string): Promise<NodeConfig> {
  const config = await readConfigFile(file, field);
  if (config === undefined) throw new CodedError('bad-config', `${file} does not exist; hyperedge run writes it`);
  return config;
}

/** The single value of an argument that may be given once. Throws CodedError 'bad-config'. */
export function singleArgument(file: string, name: string, values: readonly string[] | undefined): string | undefined {
  if (values === undefined) return undefined;
  const [value, ...rest] = values;
  if (value === undefined || rest.length > 0) {
    throw new CodedError('bad-config', `${file}: kubeletArguments.${name}: give exactly one value`);
  }
  return value;
}

/**
 * `key=value` pairs (or with another separator), several to a value when separated by commas. Throws CodedError
 * 'bad-config'.
 */
export function pairArgument(
  file: string,
  name: string,
  values: readonly string[] | undefined,
  separator = '=',
): Readonly<Record<string, string>> {
  const pairs = new Map<string, string>();
  for (const pair of (values ?? []).flatMap((value) => value.split(','))) {
    const at = pair.indexOf(separator);
    if (at <= 0)
      throw new CodedError('bad-config', `${file}: kubeletArguments.${name}: "${pair}" is not key${separator}value`);
    pairs.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return Object.fromEntries(pairs);
}
