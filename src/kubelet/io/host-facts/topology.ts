/** CPUs, memory nodes and huge pages of this machine. Source: sysfs-devices-system-cpu, vm/hugetlbpage.rst. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseCpuSet } from '../../../base/linux/cpuset.ts';
import type { MachineTopology } from '../../port.ts';

const CPUS = '/sys/devices/system/cpu';
const NODES = '/sys/devices/system/node';
const HUGE_PAGES = '/sys/kernel/mm/hugepages';

export async function readTopology(): Promise<MachineTopology> {
  const online = parseCpuSet((await text(join(CPUS, 'online'))) || '0');
  const numbers = (await names(NODES)).flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  const nodes = await Promise.all(
    numbers.map(async (numa) => {
      const directory = join(NODES, `node${numa}`);
      const [list, meminfo, pages] = await Promise.all([
        text(join(directory, 'cpulist')),
        text(join(directory, 'meminfo')),
        readHugePages(join(directory, 'hugepages')),
      ]);
      const memory = Number(/MemTotal:\s+(\d+) kB/.exec(meminfo)?.[1] ?? 0) * 1024;
      return { numa, cpus: parseCpuSet(list), resources: { memory, ...pages } };
    }),
  );
  const cpus = await Promise.all(
    online.map(async (id) => {
      const directory = join(CPUS, `cpu${id}/topology`);
      const [core, socket] = await Promise.all([
        text(join(directory, 'core_id')),
        text(join(directory, 'physical_package_id')),
      ]);
      const numa = nodes.find((node) => node.cpus.includes(id))?.numa ?? 0;
      return { id, core: Number(core || id), socket: Math.max(0, Number(socket || 0)), numa };
    }),
  );
  return { cpus, memory: nodes.map(({ numa, resources }) => ({ numa, resources })) };
}

/** Bytes of reserved huge pages by resource name, such as `hugepages-2Mi`. Sizes without pages are 0. */
export async function readHugePages(directory = HUGE_PAGES): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const name of await names(directory)) {
    const kibibytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    if (kibibytes === 0) continue;
    const count = Number((await text(join(directory, name, 'nr_hugepages'))) || 0);
    found[`hugepages-${binaryUnit(kibibytes)}`] = count * kibibytes * 1024;
  }
  return found;
}

function binaryUnit(kibibytes: number): string {
  if (kibibytes % 1024 ** 2 === 0) return `${kibibytes / 1024 ** 2}Gi`;
  return kibibytes % 1024 === 0 ? `${kibibytes / 1024}Mi` : `${kibibytes}Ki`;
}

const text = (path: string): Promise<string> =>
  readFile(path, 'utf8').then(
    (content) => content.trim(),
    () => '',
  );

const names = (path: string): Promise<readonly string[]> => readdir(path).catch(() => []);
