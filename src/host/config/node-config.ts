/**
 * `/etc/origin/node/node-config.yaml`: the supported fields of OKD 3.11's NodeConfig. Relative paths in this file are
 * relative to its directory.
 */
import { type NodeName, toNodeName } from '../../base/brand.ts';
import { CodedError } from '../../base/errors.ts';
import { integer, list, object, oneOf, parseConfig, readConfigFile, string } from '../../wire/strict-yaml.ts';
import { readFeatureGates } from './feature-gates/index.ts';
import { bindAddress } from './master-config.ts';

/** One argument of the kubelet: a list of strings, as in OKD. */
const argument = list(string());

/** Rejects unknown gates, as the kubelet of Kubernetes 1.36 does. */
const featureGates: typeof argument = {
  ...argument,
  parse: (at) => {
    const values = argument.parse(at);
    const { problem } = readFeatureGates(pairsOf(values));
    return problem === undefined ? values : at.fail(problem);
  },
};

const pairsOf = (values: readonly string[]): readonly string[] =>
  values.flatMap((each) => each.split(',')).filter((each) => each.trim() !== '');

/**
 * Field with the schema of a NodeConfig. All fields are optional, because the host's settings supply missing ones.
 * `onUnknown`: called for each unsupported field.
 */
const nodeConfigField = (onUnknown: (path: string) => void) =>
  object(
    {
      apiVersion: oneOf('v1'),
      kind: oneOf('NodeConfig'),
      nodeName: string(),
      nodeIP: string(),
      dnsDomain: string(),
      dnsIP: string(),
      masterKubeConfig: string(),
      servingInfo: object(
        { bindAddress: bindAddress(), certFile: string(), keyFile: string(), clientCA: string() },
        [],
        onUnknown,
      ),
      podManifestConfig: object({ path: string(), fileCheckIntervalSeconds: integer(1, 3600) }, [], onUnknown),
      volumeDirectory: string(),
      kubeletArguments: object(
        {
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
          'kube-reserved': argument,
          'system-reserved-cgroup': argument,
          'kube-reserved-cgroup': argument,
          'enforce-node-allocatable': argument,
          'cpu-manager-policy': argument,
          'reserved-cpus': argument,
          'topology-manager-policy': argument,
          'topology-manager-scope': argument,
          'memory-manager-policy': argument,
          'reserved-memory': argument,
          'memory-swap-behavior': argument,
          'memory-throttling-factor': argument,
          'feature-gates': featureGates,
          'allowed-unsafe-sysctls': argument,
          'seccomp-profile-root': argument,
          'shutdown-grace-period': argument,
          'shutdown-grace-period-critical-pods': argument,
          'shutdown-grace-period-by-pod-priority': argument,
        },
        [],
        onUnknown,
      ),
      proxyArguments: object({ 'proxy-mode': argument }, [], onUnknown),
    },
    ['apiVersion', 'kind'],
    onUnknown,
  );

/** A NodeConfig file: only type and version are required. */
export type PartialNodeConfig = ReturnType<ReturnType<typeof nodeConfigField>['parse']>;

export type NodeConfig = PartialNodeConfig &
  Required<Pick<PartialNodeConfig, 'masterKubeConfig' | 'volumeDirectory'>> & {
    readonly nodeName: NodeName;
    readonly servingInfo: Required<NonNullable<PartialNodeConfig['servingInfo']>>;
    readonly podManifestConfig: { readonly path: string; readonly fileCheckIntervalSeconds?: number };
  };

export interface ReadNodeConfig<C> {
  readonly config: C;
  /** Unsupported fields, which have no effect. */
  readonly unknown: readonly string[];
}

/**
 * Parses a NodeConfig. `origin`: name of the text in error messages. Throws CodedError 'bad-config' with line and
 * field.
 */
export function parseNodeConfig(text: string, origin: string): ReadNodeConfig<PartialNodeConfig> {
  const unknown: string[] = [];
  const config = parseConfig(
    text,
    origin,
    nodeConfigField((path) => unknown.push(path)),
  );
  return { config, unknown };
}

/**
 * Reads the configuration of the kubelet. `defaults`: values of missing fields. Throws CodedError 'bad-config' with
 * file, line and field.
 */
export async function readNodeConfig(file: string, defaults: NodeConfig): Promise<ReadNodeConfig<NodeConfig>> {
  const unknown: string[] = [];
  const given = await readConfigFile(
    file,
    nodeConfigField((path) => unknown.push(path)),
  );
  if (given === undefined) throw new CodedError('bad-config', `${file} does not exist; hyperedge run writes it`);
  return { config: completed(given, defaults), unknown };
}

/** Fills in missing fields. In OKD's files, nodeName may be empty and dnsIP 0.0.0.0 stands for the node's address. */
function completed(given: PartialNodeConfig, defaults: NodeConfig): NodeConfig {
  const { nodeName = '', dnsIP = '' } = given;
  const { dnsIP: ownDns } = defaults;
  const chosenDns = dnsIP === '' || dnsIP === '0.0.0.0' ? ownDns : dnsIP;
  return {
    ...defaults,
    ...given,
    nodeName: nodeName === '' ? defaults.nodeName : toNodeName(nodeName),
    ...(chosenDns === undefined ? {} : { dnsIP: chosenDns }),
    servingInfo: { ...defaults.servingInfo, ...given.servingInfo },
    podManifestConfig: { ...defaults.podManifestConfig, ...given.podManifestConfig },
  };
}

/** The value of an argument that may be given only once. Throws CodedError 'bad-config'. */
export function singleArgument(file: string, name: string, values: readonly string[] | undefined): string | undefined {
  if (values === undefined) return undefined;
  const [value, ...rest] = values;
  if (value === undefined || rest.length > 0) {
    throw new CodedError('bad-config', `${file}: kubeletArguments.${name}: give exactly one value`);
  }
  return value;
}

/**
 * Parses `key=value` pairs (or with another separator); one value may contain several pairs separated by commas. Throws
 * CodedError 'bad-config'.
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

/** Feature gates in the values of an argument. The parser has already validated the values. */
export const featureGatesOf = (values: readonly string[] | undefined): ReadonlyMap<string, boolean> =>
  readFeatureGates(pairsOf(values ?? [])).given;
