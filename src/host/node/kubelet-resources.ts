/** Arguments of node-config.yaml about CPUs, memory, swap and reserved resources, named as upstream's flags. */

import { CodedError } from '../../base/errors.ts';
import { parseCpuSet } from '../../base/linux/cpuset.ts';
import { parseBytes } from '../../base/quantity.ts';
import { TOPOLOGY_POLICIES } from '../../kubelet/core/topology/hints.ts';
import type { KubeletConfig } from '../../kubelet/index.ts';
import { featureGatesOf, type NodeConfig, pairArgument, singleArgument } from '../config/node-config.ts';

type KubeletArguments = NonNullable<NodeConfig['kubeletArguments']>;
type Resources = Pick<
  KubeletConfig,
  'kubeReserved' | 'reservedCgroups' | 'resources' | 'allowedUnsafeSysctls' | 'seccompProfileRoot'
>;

const DEFAULT_THROTTLING_FACTOR = 0.9;

/**
 * `seccompRoot`: directory of seccomp profiles if no argument names one. Throws CodedError 'bad-config' with the
 * argument.
 */
export function kubeletResources(file: string, given: KubeletArguments, seccompRoot: string): Resources {
  const bad = (name: string, why: string): CodedError =>
    new CodedError('bad-config', `${file}: kubeletArguments.${name}: ${why}`);
  const single = (name: keyof KubeletArguments): string | undefined => singleArgument(file, name, given[name]);
  const choice = <T extends string>(name: keyof KubeletArguments, values: readonly [T, ...T[]]): T => {
    const text = single(name) ?? values[0];
    const found = values.find((each) => each === text);
    if (found === undefined) throw bad(name, `"${text}" is not one of ${values.join(', ')}`);
    return found;
  };
  const [none, ...more] = TOPOLOGY_POLICIES;
  const reservedCpus = single('reserved-cpus') ?? '';
  try {
    parseCpuSet(reservedCpus);
  } catch (error) {
    throw bad('reserved-cpus', error instanceof Error ? error.message : String(error));
  }
  const enforced = (given['enforce-node-allocatable'] ?? []).flatMap((value) => value.split(','));
  const reservedCgroup = (owner: 'system-reserved' | 'kube-reserved'): Resources['reservedCgroups'] => {
    if (!enforced.includes(owner)) return [];
    const name = single(`${owner}-cgroup`);
    if (name === undefined) throw bad('enforce-node-allocatable', `${owner} requires ${owner}-cgroup`);
    return [{ name, amounts: pairArgument(file, owner, given[owner]) }];
  };
  const gates = featureGatesOf(given['feature-gates']);
  const factor = Number(single('memory-throttling-factor') ?? DEFAULT_THROTTLING_FACTOR);
  if (!(factor > 0 && factor <= 1)) throw bad('memory-throttling-factor', 'give a number above 0 and at most 1');
  return {
    kubeReserved: pairArgument(file, 'kube-reserved', given['kube-reserved']),
    reservedCgroups: [...reservedCgroup('system-reserved'), ...reservedCgroup('kube-reserved')],
    allowedUnsafeSysctls: (given['allowed-unsafe-sysctls'] ?? []).flatMap((value) => value.split(',')),
    seccompProfileRoot: single('seccomp-profile-root') ?? seccompRoot,
    resources: {
      cpuManager: choice('cpu-manager-policy', ['none', 'static']),
      reservedCpus,
      topologyManager: choice('topology-manager-policy', [none, ...more]),
      topologyScope: choice('topology-manager-scope', ['container', 'pod']),
      memoryManager: choice('memory-manager-policy', ['None', 'Static']),
      reservedMemory: reservedMemory(given['reserved-memory'] ?? [], (why) => bad('reserved-memory', why)),
      swapBehavior: choice('memory-swap-behavior', ['NoSwap', 'LimitedSwap']),
      memoryThrottlingFactor: gates.get('MemoryQoS') === true ? factor : undefined,
    },
  };
}

/** Parses reserved memory such as `0:memory=1Gi`, with one entry per NUMA node. Semicolons separate the entries. */
function reservedMemory(values: readonly string[], bad: (why: string) => CodedError): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  for (const text of values.flatMap((value) => value.split(';')).filter((each) => each !== '')) {
    const match = /^(\d{1,2}):memory=(\S+)$/.exec(text);
    if (match?.[1] === undefined || match[2] === undefined) throw bad(`"${text}" is not NODE:memory=QUANTITY`);
    try {
      found.set(Number(match[1]), parseBytes(match[2]));
    } catch {
      throw bad(`"${match[2]}" is not a quantity such as 1Gi`);
    }
  }
  return found;
}
