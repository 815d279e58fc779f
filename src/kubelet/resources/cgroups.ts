import type { Pod } from '../../api/generated/core/v1.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  type CgroupDriver,
  type CgroupPath,
  directoryName,
  kubepodsPath,
  podUidOf,
  qosPath,
  runtimeParentName,
  sliceName,
} from '../core/cgroups/names.ts';
import type { CgroupFileSystem, Hierarchy, SliceManager } from '../core/cgroups/port.ts';
import { type CgroupNode, podNode, qosTree, reservedTree, type TreeOptions } from '../core/cgroups/tree.ts';
import { planWrites, sliceProperties } from '../core/cgroups/writes.ts';
import type { Pressure } from '../history/port.ts';

export interface CgroupUsage {
  readonly cpuUsageNanoSeconds: number;
  readonly memoryUsageBytes: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
  /** Time in which the CPU limit stopped tasks. Undefined: not reported, as on cgroup v1. */
  readonly throttledNanoSeconds?: number;
}

/** Disk traffic and pressure of a cgroup. A field is undefined if the kernel does not report it for this cgroup. */
export interface CgroupActivity {
  readonly diskReadBytes: number | undefined;
  readonly diskWrittenBytes: number | undefined;
  readonly pressure: Pressure;
}

/**
 * Manages the cgroup levels kubepods, QoS class and pod through the host's cgroup driver. The runtime manages the
 * container level. Source: OKD 3.11 "startup sequence"; pkg/kubelet/cm.
 */
export class PodCgroups {
  readonly driver: CgroupDriver;
  private readonly files: CgroupFileSystem;
  private readonly slices: SliceManager | undefined;
  private readonly log: Log;
  private hierarchies: readonly Hierarchy[] = [];
  private options: TreeOptions | undefined;
  /** Whether the kernel reports the pressure of cgroups. Determined by reading the kubepods cgroup. */
  private hasPressure = true;
  /** Values last written to the levels above the pods. */
  private readonly levels = new Map<string, string>();

  constructor(options: {
    readonly files: CgroupFileSystem;
    readonly slices: SliceManager | undefined;
    readonly log: Log;
  }) {
    this.files = options.files;
    this.slices = options.slices;
    this.log = options.log;
    this.driver = options.slices === undefined ? 'cgroupfs' : 'systemd';
  }

  get version(): 'v1' | 'v2' | 'hybrid' {
    const v1 = this.hierarchies.some((hierarchy) => hierarchy.version === 'v1');
    const v2 = this.hierarchies.some((hierarchy) => hierarchy.version === 'v2');
    if (v1 && v2) return 'hybrid';
    return v1 ? 'v1' : 'v2';
  }

  /** Creates the kubepods cgroup and the cgroups of the QoS classes. */
  async start(options: TreeOptions, reserved: Parameters<typeof reservedTree>[0]): Promise<void> {
    this.options = options;
    this.hierarchies = await this.files.hierarchies();
    if (this.hierarchies.length === 0) throw new Error('no cgroup hierarchy is mounted on this host');
    this.log.info('cgroup hierarchy created', { driver: this.driver, version: this.version });
    await this.applyLevels(qosTree([], options));
    await this.apply(reservedTree(reserved));
  }

  /**
   * Sets the CPU weight of the Burstable level from the requests of its pods. Unchanged levels are not written again.
   */
  async updateQos(pods: readonly Pod[]): Promise<void> {
    if (this.options === undefined) return;
    await this.applyLevels(
      qosTree(pods, this.options).filter((node) => this.levels.get(levelKey(node)) !== JSON.stringify(node.limits)),
    );
  }

  /** Name under which the runtime addresses the cgroup that `ensurePod` created. */
  parentOf(pod: Pod): string {
    return runtimeParentName(this.driver, podNode(pod, this.treeOptions()).path);
  }

  async ensurePod(pod: Pod): Promise<void> {
    await this.apply([podNode(pod, this.treeOptions())]);
  }

  /**
   * Removes the pod's cgroup below every QoS class, because the QoS class is unknown if only the runtime still has the
   * pod.
   */
  async removePod(uid: Uid): Promise<void> {
    for (const found of await this.list()) {
      if (found.uid === uid) await this.removePath(found.path);
    }
  }

  /** Pods that have a cgroup, with its path. Includes pods that ended while this process was down. */
  async list(): Promise<{ readonly uid: Uid; readonly path: CgroupPath }[]> {
    const { root } = this.treeOptions();
    const [hierarchy] = this.hierarchies;
    if (hierarchy === undefined) return [];
    const found: { uid: Uid; path: CgroupPath }[] = [];
    for (const qos of ['Guaranteed', 'Burstable', 'BestEffort'] as const) {
      const parent = qosPath(root, qos);
      for (const name of await this.files.list(hierarchy.mount + directoryName(this.driver, parent))) {
        const uid = podUidOf(this.driver, name);
        if (uid !== undefined) found.push({ uid, path: [...parent, `pod${uid}`] });
      }
    }
    return found;
  }

  async removePath(path: CgroupPath): Promise<void> {
    if (this.slices !== undefined) {
      await this.slices
        .stop(sliceName(path))
        .catch((error: unknown) => this.log.warn('slice not stopped', { error: messageOf(error) }));
    }
    for (const hierarchy of this.hierarchies) {
      await this.files.removeTree(hierarchy.mount + directoryName(this.driver, path));
    }
  }

  async usage(path: CgroupPath): Promise<CgroupUsage | undefined> {
    const read = (controller: string, v1: string, v2: string) => this.read(path, controller, v1, v2);
    const [cpu, memory, memoryStat, pids] = await Promise.all([
      read('cpuacct', 'cpuacct.usage', 'cpu.stat'),
      read('memory', 'memory.usage_in_bytes', 'memory.current'),
      read('memory', 'memory.stat', 'memory.stat'),
      read('pids', 'pids.current', 'pids.current'),
    ]);
    if (cpu === undefined || memory === undefined) return undefined;
    const usec = /^usage_usec (\d+)/m.exec(cpu)?.[1];
    const usage = Number(memory.trim());
    const stat = memoryStat ?? '';
    const inactive = field(stat, 'total_inactive_file') ?? field(stat, 'inactive_file') ?? 0;
    return {
      cpuUsageNanoSeconds: usec === undefined ? Number(cpu.trim()) : Number(usec) * 1000,
      memoryUsageBytes: usage,
      memoryWorkingSetBytes: Math.max(0, usage - inactive),
      memoryRssBytes: field(stat, 'total_rss') ?? field(stat, 'anon') ?? 0,
      pids: Number(pids?.trim() ?? 0),
      ...throttledOf(cpu),
    };
  }

  /** Disk traffic and pressure of a cgroup. */
  async activity(path: CgroupPath): Promise<CgroupActivity> {
    const isTop = path.length === kubepodsPath(this.treeOptions().root).length;
    const pressure = async (resource: string): Promise<string | undefined> =>
      isTop || this.hasPressure ? this.read(path, '', '', `${resource}.pressure`) : undefined;
    const [disk, cpu, memory, io] = await Promise.all([
      this.read(path, 'blkio', 'blkio.throttle.io_service_bytes_recursive', 'io.stat'),
      ...[pressure('cpu'), pressure('memory'), pressure('io')],
    ]);
    if (isTop) this.hasPressure = cpu !== undefined;
    return {
      ...diskTraffic(disk),
      pressure: { cpuSeconds: waited(cpu), memorySeconds: waited(memory), ioSeconds: waited(io) },
    };
  }

  /** Reads a file of a cgroup. `v1`: '' if cgroup v1 has no such file. */
  private async read(path: CgroupPath, controller: string, v1: string, v2: string): Promise<string | undefined> {
    const hierarchy =
      this.hierarchies.find((each) => each.version === 'v1' && each.controllers.includes(controller)) ??
      this.hierarchies.find((each) => each.version === 'v2');
    if (hierarchy === undefined) return undefined;
    return this.files.read(hierarchy.mount + directoryName(this.driver, path), hierarchy.version === 'v1' ? v1 : v2);
  }

  private async applyLevels(nodes: readonly CgroupNode[]): Promise<void> {
    if (nodes.length === 0) return;
    for (const node of nodes) this.levels.set(levelKey(node), JSON.stringify(node.limits));
    try {
      await this.apply(nodes);
    } catch (error) {
      for (const node of nodes) this.levels.delete(levelKey(node));
      throw error;
    }
  }

  private async apply(nodes: readonly CgroupNode[]): Promise<void> {
    const version = this.hierarchies.some((each) => each.version === 'v1') ? 'v1' : 'v2';
    if (this.slices !== undefined) {
      for (const node of nodes) await this.slices.ensure(sliceName(node.path), sliceProperties(version, node.limits));
    }
    // The cgroup v1 hierarchies are independent of each other.
    await Promise.all(
      this.hierarchies.map((hierarchy) => this.files.perform(planWrites([hierarchy], this.driver, nodes))),
    );
  }

  private treeOptions(): TreeOptions {
    if (this.options === undefined) throw new Error('the cgroups of the QoS classes have not been created yet');
    return this.options;
  }
}

const levelKey = (node: CgroupNode): string => node.path.join('/');

/** Source: kernel documentation, cgroup-v2 (cpu.stat). */
function throttledOf(cpuStat: string): Pick<CgroupUsage, 'throttledNanoSeconds'> {
  const usec = field(cpuStat, 'throttled_usec');
  return usec === undefined ? {} : { throttledNanoSeconds: usec * 1000 };
}

/** Sum of all devices. Source: kernel documentation, cgroup-v2 (io.stat), cgroup-v1/blkio-controller. */
function diskTraffic(text: string | undefined): Pick<CgroupActivity, 'diskReadBytes' | 'diskWrittenBytes'> {
  if (text === undefined) return { diskReadBytes: undefined, diskWrittenBytes: undefined };
  const sum = (pattern: RegExp): number => {
    let total = 0;
    for (const [, bytes] of text.matchAll(pattern)) total += Number(bytes);
    return total;
  };
  return {
    diskReadBytes: sum(/(?:\brbytes=|^\d+:\d+ Read )(\d+)/gm),
    diskWrittenBytes: sum(/(?:\bwbytes=|^\d+:\d+ Write )(\d+)/gm),
  };
}

/** Seconds in which at least one task waited. Source: kernel documentation, accounting/psi. */
function waited(text: string | undefined): number | undefined {
  const total = /^some .*\btotal=(\d+)/m.exec(text ?? '')?.[1];
  return total === undefined ? undefined : Number(total) / 1e6;
}

function field(stat: string, name: string): number | undefined {
  const match = new RegExp(`^${name} (\\d+)`, 'm').exec(stat);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}
