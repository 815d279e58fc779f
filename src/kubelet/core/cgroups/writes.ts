/**
 * Converts a tree to ordered operations on the mounted hierarchies. Sources: Documentation/admin-guide/cgroup-v1 and
 * cgroup-v2.rst.
 */
import { type CgroupDriver, directoryName } from './names.ts';
import type { CgroupOperation, Hierarchy, UnitProperty } from './port.ts';
import { weightOfShares } from './resources.ts';
import type { CgroupLimits, CgroupNode } from './tree.ts';

/** Controllers that a v2 parent enables for its children, as upstream does. */
const DELEGATED = ['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb'];

export function planWrites(
  hierarchies: readonly Hierarchy[],
  driver: CgroupDriver,
  nodes: readonly CgroupNode[],
): CgroupOperation[] {
  const operations: CgroupOperation[] = [];
  const made = new Set<string>();
  for (const node of nodes) {
    for (const hierarchy of hierarchies) {
      for (let depth = 1; depth <= node.path.length; depth += 1) {
        const directory = hierarchy.mount + directoryName(driver, node.path.slice(0, depth));
        if (made.has(directory)) continue;
        made.add(directory);
        if (hierarchy.version === 'v2') enableControllers(operations, hierarchy, driver, node.path.slice(0, depth - 1));
        operations.push({ op: 'mkdir', directory });
        if (hierarchy.controllers.includes('cpuset') && hierarchy.version === 'v1') {
          operations.push({ op: 'inherit', directory, file: 'cpuset.cpus' });
          operations.push({ op: 'inherit', directory, file: 'cpuset.mems' });
        }
      }
      const directory = hierarchy.mount + directoryName(driver, node.path);
      for (const [file, value] of hierarchy.version === 'v2'
        ? filesV2(hierarchy, node.limits)
        : filesV1(hierarchy, node.limits)) {
        operations.push({ op: 'write', directory, file, value, optional: false });
      }
    }
  }
  return operations;
}

function enableControllers(
  operations: CgroupOperation[],
  hierarchy: Hierarchy,
  driver: CgroupDriver,
  parent: readonly string[],
): void {
  const wanted = DELEGATED.filter((controller) => hierarchy.controllers.includes(controller));
  if (wanted.length === 0) return;
  operations.push({
    op: 'write',
    directory: hierarchy.mount + (parent.length === 0 ? '' : directoryName(driver, parent)),
    file: 'cgroup.subtree_control',
    value: wanted.map((controller) => `+${controller}`).join(' '),
    optional: true,
  });
}

function filesV1(hierarchy: Hierarchy, limits: CgroupLimits): [string, string][] {
  const files: [string, string][] = [];
  const has = (controller: string): boolean => hierarchy.controllers.includes(controller);
  if (has('cpu')) {
    if (limits.cpuShares !== undefined) files.push(['cpu.shares', String(limits.cpuShares)]);
    if (limits.cpuPeriodUs !== undefined) files.push(['cpu.cfs_period_us', String(limits.cpuPeriodUs)]);
    if (limits.cpuQuotaUs !== undefined) files.push(['cpu.cfs_quota_us', String(limits.cpuQuotaUs)]);
  }
  if (has('memory') && limits.memoryLimitBytes !== undefined) {
    files.push(['memory.limit_in_bytes', String(limits.memoryLimitBytes)]);
  }
  if (has('pids') && limits.pidsLimit !== undefined) files.push(['pids.max', orMax(limits.pidsLimit)]);
  return files;
}

function filesV2(hierarchy: Hierarchy, limits: CgroupLimits): [string, string][] {
  const files: [string, string][] = [];
  const has = (controller: string): boolean => hierarchy.controllers.includes(controller);
  if (has('cpu')) {
    if (limits.cpuShares !== undefined) files.push(['cpu.weight', String(weightOfShares(limits.cpuShares))]);
    if (limits.cpuQuotaUs !== undefined || limits.cpuPeriodUs !== undefined) {
      files.push(['cpu.max', `${orMax(limits.cpuQuotaUs ?? -1)} ${limits.cpuPeriodUs ?? 100_000}`]);
    }
  }
  if (has('memory') && limits.memoryLimitBytes !== undefined) {
    files.push(['memory.max', orMax(limits.memoryLimitBytes)]);
  }
  if (has('memory') && limits.memoryMinBytes !== undefined) {
    files.push(['memory.min', String(limits.memoryMinBytes)]);
  }
  if (has('pids') && limits.pidsLimit !== undefined) files.push(['pids.max', orMax(limits.pidsLimit)]);
  return files;
}

const orMax = (value: number): string => (value < 0 ? 'max' : String(value));

/** systemd's value for no limit. */
const INFINITY = 2n ** 64n - 1n;
/** systemd stores a quota as a whole percentage of a CPU. */
const PERCENT_OF_SECOND_US = 10_000;

/**
 * Unit properties that keep the service manager from resetting the limits. A quota is rounded up to a value that
 * systemd can store; the kernel's file gets the exact one. Source: org.freedesktop.systemd1(5); opencontainers/runc
 * addCpuQuota.
 */
export function sliceProperties(version: 'v1' | 'v2', limits: CgroupLimits): UnitProperty[] {
  const properties: UnitProperty[] = [];
  const add = (name: string, value: number): void => {
    properties.push({ name, value: value < 0 ? INFINITY : BigInt(value) });
  };
  if (limits.cpuShares !== undefined) {
    if (version === 'v2') add('CPUWeight', weightOfShares(limits.cpuShares));
    else add('CPUShares', limits.cpuShares);
  }
  if (limits.cpuQuotaUs !== undefined) {
    const period = limits.cpuPeriodUs ?? 100_000;
    const perSecond = (limits.cpuQuotaUs * 1_000_000) / period;
    add('CPUQuotaPeriodUSec', period);
    add('CPUQuotaPerSecUSec', perSecond < 0 ? -1 : Math.ceil(perSecond / PERCENT_OF_SECOND_US) * PERCENT_OF_SECOND_US);
  }
  if (limits.memoryLimitBytes !== undefined) {
    add(version === 'v2' ? 'MemoryMax' : 'MemoryLimit', limits.memoryLimitBytes);
  }
  if (limits.memoryMinBytes !== undefined && version === 'v2') add('MemoryMin', limits.memoryMinBytes);
  if (limits.pidsLimit !== undefined) add('TasksMax', limits.pidsLimit);
  return properties;
}
