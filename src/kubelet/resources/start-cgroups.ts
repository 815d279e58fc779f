import { type Quantity, quantityMilliValue, quantityValue } from '../../base/quantity.ts';
import { rootComponents } from '../core/cgroups/names.ts';
import { amountOf } from '../core/cgroups/resources.ts';
import { allocatablePids, type TreeOptions } from '../core/cgroups/tree.ts';
import type { KubeletDeps } from '../deps.ts';
import type { HostInfo } from '../port.ts';
import { PodCgroups } from './cgroups.ts';

const LOWEST_OOM_SCORE = -1000;

export async function startCgroups(
  deps: KubeletDeps,
  hostInfo: HostInfo,
  { cpu, memory }: Readonly<Record<string, Quantity>>,
): Promise<PodCgroups> {
  const { config, log } = deps;
  if (hostInfo.oomScoreFloor > LOWEST_OOM_SCORE)
    log.warn('no CAP_SYS_RESOURCE: out-of-memory scores of protected pods cannot be lowered', {
      floor: hostInfo.oomScoreFloor,
    });
  const cgroups = new PodCgroups({ files: deps.cgroups, slices: deps.slices, log });
  const reserved = [config.systemReserved, config.kubeReserved].map((requests) =>
    amountOf({ name: '', resources: { requests } }, 'requests', 'pid'),
  );
  const pids = allocatablePids(
    (await deps.host.usage()).maxProcesses,
    reserved.reduce((sum, each) => sum + each, 0),
  );
  const levels: TreeOptions = {
    root: rootComponents(config.cgroupRoot),
    allocatable: {
      cpuMilli: cpu === undefined ? hostInfo.cpus * 1000 : quantityMilliValue(cpu),
      memoryBytes: memory === undefined ? hostInfo.memoryBytes : quantityValue(memory),
      ...(pids === undefined ? {} : { pids }),
    },
    podPidsLimit: config.podPidsLimit,
    cpuCfsQuota: config.cpuCfsQuota,
    memoryQos: config.resources.memoryThrottlingFactor !== undefined,
  };
  await cgroups.start(levels, config.reservedCgroups);
  return cgroups;
}
