/** Kernel features that pods, the pod network and the store need, from /proc, /sys and the kernel's configuration. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

export interface KernelFeatures {
  readonly release: string;
  readonly namespaces: readonly string[];
  /** Security modules in their order; empty if securityfs is not mounted. */
  readonly securityModules: readonly string[];
  readonly seccompActions: readonly string[];
  readonly pressureStall: boolean;
  /** Whether the kernel provides BTF (BPF Type Format), which newer runtimes need for device filters of cgroup v2. */
  readonly btf: boolean;
  readonly overlay: boolean;
  /** Path of the kernel configuration; absent if the kernel does not publish it. */
  readonly configuration?: string;
  /** State of each option in OPTIONS; empty if the kernel configuration is unknown. */
  readonly options: Readonly<Record<string, 'builtin' | 'module' | 'absent'>>;
}

/** Options that the kubelet, the proxy, the pod network and the runtime use. */
const OPTIONS = [
  'BLK_CGROUP',
  'BRIDGE',
  'CFS_BANDWIDTH',
  'CGROUP_BPF',
  'CGROUP_DEVICE',
  'CGROUP_PIDS',
  'CPUSETS',
  'HUGETLBFS',
  'MEMCG',
  'NFT_CT',
  'NFT_MASQ',
  'NFT_NAT',
  'NF_TABLES',
  'OVERLAY_FS',
  'PSI',
  'SECCOMP_FILTER',
  'USER_NS',
  'VETH',
  'VXLAN',
] as const;

/** `root`: directory that contains /proc, /sys and /boot. */
export async function readKernelFeatures(root = '/'): Promise<KernelFeatures> {
  const text = (path: string): Promise<string> => readFile(join(root, path), 'utf8').catch(() => '');
  const entries = (path: string): Promise<string[]> => readdir(join(root, path)).catch(() => []);
  const release = (await text('proc/sys/kernel/osrelease')).trim();
  const [namespaces, modules, actions, pressure, btf, fileSystems, configuration] = await Promise.all([
    entries('proc/self/ns'),
    text('sys/kernel/security/lsm'),
    text('proc/sys/kernel/seccomp/actions_avail'),
    text('proc/pressure/cpu'),
    entries('sys/kernel/btf'),
    text('proc/filesystems'),
    readConfiguration(root, release),
  ]);
  return {
    release,
    namespaces: namespaces.filter((name) => !name.endsWith('_for_children')).sort(),
    securityModules: modules.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()])),
    seccompActions: actions.split(/\s+/).filter((action) => action !== ''),
    pressureStall: pressure !== '',
    btf: btf.includes('vmlinux'),
    overlay: /\boverlay$/m.test(fileSystems),
    ...(configuration === undefined ? {} : { configuration: configuration.path }),
    options: configuration === undefined ? {} : optionsOf(configuration.text),
  };
}

async function readConfiguration(
  root: string,
  release: string,
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  for (const path of ['/proc/config.gz', `/boot/config-${release}`]) {
    try {
      const bytes = await readFile(join(root, path));
      return { path, text: (path.endsWith('.gz') ? await promisify(gunzip)(bytes) : bytes).toString('utf8') };
    } catch {
      // Continue with the next path.
    }
  }
  return undefined;
}

function optionsOf(configuration: string): KernelFeatures['options'] {
  const set = new Map([...configuration.matchAll(/^CONFIG_(\w+)=([ym])$/gm)].map(([, name, value]) => [name, value]));
  return Object.fromEntries(
    OPTIONS.map((option) => {
      const value = set.get(option);
      return [option, value === 'y' ? 'builtin' : value === 'm' ? 'module' : 'absent'];
    }),
  );
}
