/** The hardware of this host and the kernel features that pods need. */
import type { Hierarchy } from '../../kubelet/core/cgroups/port.ts';
import { createCgroupFileSystem } from '../../kubelet/io/cgroupfs/index.ts';
import { openAssets } from '../process/assets.ts';
import { readHardware } from './index.ts';
import type { Disk, Hardware } from './inventory.ts';
import { type KernelFeatures, readKernelFeatures } from './kernel.ts';

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
