/** The hardware of this host and the kernel features that pods need. */
import type { Hierarchy } from '../../core/cgroup/port.ts';
import { createCgroupFileSystem } from '../../io/cgroupfs/index.ts';
import { readHardware } from '../../io/sysinfo/index.ts';
import type { Disk, Hardware } from '../../io/sysinfo/inventory.ts';
import { type KernelFeatures, readKernelFeatures } from '../../io/sysinfo/kernel.ts';
import { openAssets } from '../assets.ts';

export type { Disk };

export interface SystemInformation {
  readonly hardware: Hardware;
  readonly cgroups: readonly Hierarchy[];
  readonly kernel: KernelFeatures;
}

export async function readSystemInformation(): Promise<SystemInformation> {
  await openAssets();
  const [hardware, kernel, cgroups] = await Promise.all([
    readHardware(),
    readKernelFeatures(),
    createCgroupFileSystem().hierarchies(),
  ]);
  return { hardware, cgroups, kernel };
}
