/** Builds the kubelet's configuration from node-config.yaml and the settings. */
import { dirname, join } from 'node:path';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { CodedError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { type EvictionSettings, parseThresholds } from '../../kubelet/core/eviction/thresholds.ts';
import { DEFAULT_KUBELET_CONFIG, type KubeletConfig } from '../../kubelet/index.ts';
import { parseBindAddress } from '../config/master-config.ts';
import { type NodeConfig, pairArgument, singleArgument } from '../config/node-config.ts';
import type { Settings } from '../config/settings.ts';
import { kubeletResources } from './kubelet-resources.ts';
import { shutdownPeriods } from './shutdown-periods.ts';

type KubeletArguments = NonNullable<NodeConfig['kubeletArguments']>;

/** The kubelet's configuration. Throws CodedError 'bad-config' with the file and the argument. */
export function kubeletConfigOf(
  settings: Settings,
  config: NodeConfig,
  reservedPorts: readonly ReservedPort[],
  nodeIps: () => readonly string[],
  /** Paths with links resolved. */
  places: Pick<KubeletConfig['paths'], 'volumes' | 'driverRoot'> = { volumes: config.volumeDirectory },
): KubeletConfig {
  const file = settings.paths.nodeConfig;
  const given = config.kubeletArguments ?? {};
  const single = (name: keyof typeof given): string | undefined => singleArgument(file, name, given[name]);
  const count = (name: keyof typeof given, otherwise: number): number => {
    const text = single(name);
    if (text === undefined) return otherwise;
    if (!/^\d{1,9}$/.test(text)) {
      throw new CodedError('bad-config', `${file}: kubeletArguments.${name}: "${text}" is not a whole number`);
    }
    return Number(text);
  };
  const flag = (name: keyof typeof given, otherwise: boolean): boolean => {
    const text = single(name);
    if (text === undefined) return otherwise;
    if (text !== 'true' && text !== 'false') {
      throw new CodedError('bad-config', `${file}: kubeletArguments.${name}: "${text}" is neither true nor false`);
    }
    return text === 'true';
  };
  const manifestUrl = single('manifest-url');
  const listen = parseBindAddress(config.servingInfo.bindAddress) ?? { address: '0.0.0.0', port: 10_250 };
  return {
    ...DEFAULT_KUBELET_CONFIG,
    nodeName: config.nodeName,
    get nodeIps() {
      return nodeIps();
    },
    paths: {
      ...places,
      state: dirname(config.volumeDirectory),
      localVolumes: settings.paths.localVolumes,
      podLogs: settings.paths.podLogs,
      containerLogs: settings.paths.containerLogs,
      staticPods: config.podManifestConfig.path,
      images: settings.paths.images,
    },
    ...(manifestUrl === undefined ? {} : { manifestUrl }),
    listen,
    cgroupRoot: single('cgroup-root') ?? settings.cgroup.root,
    systemReserved: pairArgument(file, 'system-reserved', given['system-reserved']),
    reservedPorts,
    maxPods: count('max-pods', DEFAULT_KUBELET_CONFIG.maxPods),
    seccompDefault: flag('seccomp-default', DEFAULT_KUBELET_CONFIG.seccompDefault),
    podPidsLimit: single('pod-max-pids') === '-1' ? -1 : count('pod-max-pids', DEFAULT_KUBELET_CONFIG.podPidsLimit),
    clusterDns: config.dnsIP === undefined ? [] : [config.dnsIP],
    clusterDomain: config.dnsDomain ?? settings.network.clusterDomain,
    nodeLabels: pairArgument(file, 'node-labels', given['node-labels']),
    fileCheckFrequencyMs: (config.podManifestConfig.fileCheckIntervalSeconds ?? 20) * 1000,
    containerLogMaxBytes: sizeOf(file, single('container-log-max-size')) ?? DEFAULT_KUBELET_CONFIG.containerLogMaxBytes,
    containerLogMaxFiles: count('container-log-max-files', DEFAULT_KUBELET_CONFIG.containerLogMaxFiles),
    eviction: evictionSettings(file, given),
    shutdownPeriods: shutdownPeriods(file, given),
    ...kubeletResources(file, given, join(dirname(config.volumeDirectory), 'seccomp')),
  };
}

/** Parses the eviction flags as upstream's kubelet does. An empty `eviction-hard` disables evictions. */
function evictionSettings(file: string, given: KubeletArguments): EvictionSettings {
  const bad = (name: string, why: string): CodedError =>
    new CodedError('bad-config', `${file}: kubeletArguments.${name}: ${why}`);
  const pairs = (name: keyof KubeletArguments, separator: '<' | '='): Readonly<Record<string, string>> | undefined => {
    const values = given[name];
    return values === undefined
      ? undefined
      : pairArgument(
          file,
          name,
          values.filter((value) => value !== ''),
          separator,
        );
  };
  const milliseconds = (name: string, text: string): number => {
    const ms = parseDuration(text);
    if (ms === undefined || ms < 0) throw bad(name, `"${text}" is not a duration such as 1m30s`);
    return ms;
  };
  const hard = pairs('eviction-hard', '<');
  const periods = Object.entries(pairs('eviction-soft-grace-period', '=') ?? {});
  const transition = 'eviction-pressure-transition-period';
  const transitionText = singleArgument(file, transition, given[transition]);
  const most = 'eviction-max-pod-grace-period';
  const mostText = singleArgument(file, most, given[most]);
  if (mostText !== undefined && !/^\d{1,9}$/.test(mostText))
    throw bad(most, `"${mostText}" is not a whole number of seconds`);
  try {
    return {
      thresholds: parseThresholds({
        ...(hard === undefined ? {} : { hard }),
        soft: pairs('eviction-soft', '<') ?? {},
        softGracePeriods: Object.fromEntries(
          periods.map(([signal, text]) => [signal, milliseconds('eviction-soft-grace-period', text)]),
        ),
        minimumReclaim: pairs('eviction-minimum-reclaim', '=') ?? {},
      }),
      pressureTransitionMs:
        transitionText === undefined
          ? DEFAULT_KUBELET_CONFIG.eviction.pressureTransitionMs
          : milliseconds(transition, transitionText),
      maxPodGraceSeconds: Number(mostText ?? DEFAULT_KUBELET_CONFIG.eviction.maxPodGraceSeconds),
    };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CodedError('bad-config', `${file}: kubeletArguments.${error.message}`);
  }
}

function sizeOf(file: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d+)(Ki|Mi|Gi)?$/.exec(text);
  if (match === null) {
    throw new CodedError(
      'bad-config',
      `${file}: kubeletArguments.container-log-max-size: "${text}" is not a size such as 10Mi`,
    );
  }
  const unit = { Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }[match[2] ?? ''] ?? 1;
  return Number(match[1]) * unit;
}
