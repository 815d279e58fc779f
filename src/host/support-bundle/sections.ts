/**
 * Sections of the support bundle of a host, the most important first. If the bundle is full, sections at the end are
 * cut.
 */
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Section } from '../../support-bundle/port.ts';
import { type Paths, pathsBelow } from '../config/paths.ts';
import { type BundleAccess, clusterSections } from './cluster-sections.ts';
import { isConfiguration } from './configuration-files.ts';
import { collectFile, filesBelow } from './files.ts';
import { logSections } from './log-sections.ts';
import { processSections } from './process-sections.ts';
import { collectPrograms, type Program } from './programs.ts';

const KIB = 1024;
const MIB = 1 << 20;
const MAX_CONFIGURATION_FILES = 400;
const MAX_CONFIGURATION_BYTES = 512 * KIB;

export interface SectionContext {
  readonly root: string;
  readonly nowMs: number;
  readonly sinceMs: number;
  /** Command and arguments that start this executable. */
  readonly self: readonly string[];
  readonly access: BundleAccess;
  /** Resolves if all file systems of the installation answer; rejects otherwise. */
  readonly reachable: () => Promise<void>;
  readonly paths: Paths;
}

export function bundleSections(context: SectionContext): Section[] {
  return [
    ...ownSections(context),
    configuration(context),
    ...processSections(context),
    network(),
    machine(),
    cgroups(),
    history(context),
    ...logSections(context),
    ...clusterSections(context),
  ];
}

/** Sections with the output of commands of this executable, each in its own process. */
function ownSections({ self, root }: SectionContext): Section[] {
  const own = (to: string, ...args: readonly string[]): Program => ({
    to,
    command: [...self, ...args, '--root', root],
    codes: [1, 3],
    options: { format: to.endsWith('.yaml') ? 'document' : 'log' },
  });
  const section = (id: string, title: string, timeoutMs: number, programs: readonly Program[]): Section => ({
    id,
    title,
    timeoutMs,
    maxBytes: 8 * MIB,
    collect: (sink, signal) => collectPrograms(sink, programs, signal, timeoutMs),
  });
  return [
    section('doctor', 'Doctor', 90_000, [own('doctor.yaml', 'doctor', '-o', 'yaml')]),
    section('status', 'Status', 60_000, [
      own('status.txt', 'status'),
      own('status.yaml', 'status', '-o', 'yaml'),
      own('gossip-members.yaml', 'gossip', 'members', '-o', 'yaml'),
    ]),
    section('sysinfo', 'Hardware and kernel', 60_000, [
      { ...own('sysinfo.yaml'), command: [...self, 'sysinfo', '-o', 'yaml'] },
      { to: 'version.txt', command: [...self, 'version'] },
    ]),
    section('store', 'Store', 60_000, [
      own('store/members.yaml', 'members', '-o', 'yaml'),
      own('store/snapshots.yaml', 'snapshot', 'list', '-o', 'yaml'),
      own('store/encryption.yaml', 'secrets-encrypt', 'status', '-o', 'yaml'),
    ]),
  ];
}

/** Section with the effective settings, their origins, and the configuration files without keys and certificates. */
function configuration({ self, root, reachable }: SectionContext): Section {
  return {
    id: 'configuration',
    title: 'Configuration',
    timeoutMs: 45_000,
    maxBytes: 16 * MIB,
    collect: async (sink, signal) => {
      const show = [...self, 'config', 'show', '--root', root];
      await collectPrograms(sink, [{ to: 'configuration/settings.txt', command: show }], signal);
      await reachable();
      for (const directory of ['etc/origin', 'etc/etcd', 'etc/cni/net.d', 'etc/containers', 'etc/sysconfig']) {
        for (const { path, size } of await filesBelow(join(root, directory), MAX_CONFIGURATION_FILES)) {
          if (signal.aborted || !isConfiguration(path) || size > MAX_CONFIGURATION_BYTES) continue;
          const isVariables = /\.env$|\/sysconfig\/|\.env\./.test(path);
          const format = isVariables ? 'env' : /\.(?:ya?ml|json|conflist)$/.test(path) ? 'document' : 'log';
          const to = `configuration/files/${path.slice(root === '/' ? 1 : root.length + 1)}`;
          await collectFile(sink, path, to, signal, { format, maxBytes: MAX_CONFIGURATION_BYTES });
        }
      }
      for (const file of ['etc/os-release', 'etc/hosts', 'etc/resolv.conf', 'etc/fstab', 'proc/cmdline'])
        await collectFile(sink, `/${file}`, `configuration/machine/${file}`, signal, {
          maxBytes: 64 * KIB,
          follow: true,
        });
    },
  };
}

function network(): Section {
  const program = (to: string, ...command: readonly string[]): Program => ({ to: `network/${to}`, command });
  return {
    id: 'network',
    title: 'Network: links, routes and rules',
    timeoutMs: 60_000,
    maxBytes: 24 * MIB,
    collect: async (sink, signal) => {
      await collectPrograms(
        sink,
        [
          program('nft-ruleset.txt', 'nft', 'list', 'ruleset'),
          program('addresses.txt', 'ip', '-d', 'address'),
          program('link-statistics.txt', 'ip', '-s', 'link'),
          program('routes.txt', 'ip', 'route', 'show', 'table', 'all'),
          program('routes6.txt', 'ip', '-6', 'route', 'show', 'table', 'all'),
          program('rules.txt', 'ip', 'rule'),
          program('neighbours.txt', 'ip', 'neighbour'),
        ],
        signal,
      );
      for (const name of ['tcp', 'tcp6', 'udp', 'udp6', 'sockstat', 'snmp', 'netstat', 'dev'])
        await collectFile(sink, `/proc/self/net/${name}`, `network/proc/${name}`, signal, { maxBytes: 2 * MIB });
    },
  };
}

function machine(): Section {
  const files = [
    'meminfo',
    'loadavg',
    'uptime',
    'vmstat',
    'diskstats',
    'stat',
    'mounts',
    'cgroups',
    'modules',
    'swaps',
  ];
  return {
    id: 'machine',
    title: 'Machine: memory, disks and load',
    timeoutMs: 45_000,
    maxBytes: 8 * MIB,
    collect: async (sink, signal) => {
      for (const name of [...files, 'pressure/cpu', 'pressure/io', 'pressure/memory'])
        await collectFile(sink, `/proc/${name}`.replace('/mounts', '/self/mountinfo'), `machine/${name}`, signal, {
          maxBytes: MIB,
        });
      await collectPrograms(
        sink,
        [
          { to: 'machine/disk-space.txt', command: ['df', '-PT'], codes: [1] },
          { to: 'machine/inodes.txt', command: ['df', '-Pi'], codes: [1] },
          { to: 'machine/processes.txt', command: ['ps', '-eo', 'pid,ppid,stat,wchan:24,rss,pcpu,etime,comm'] },
        ],
        signal,
        10_000,
      );
    },
  };
}

const CGROUP_FILES = [
  ...['cpu.max', 'cpu.stat', 'cpu.weight', 'cpu.pressure', 'memory.current', 'memory.max', 'memory.high'],
  ...['memory.events', 'memory.stat', 'memory.pressure', 'pids.current', 'pids.max', 'io.stat', 'cgroup.events'],
  // cgroup v1
  ...['memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.failcnt', 'cpu.shares', 'cpu.cfs_quota_us'],
];

function cgroups(): Section {
  return {
    id: 'cgroups',
    title: 'Cgroups of pods and of this host’s service',
    timeoutMs: 30_000,
    maxBytes: 8 * MIB,
    collect: async (sink, signal) => {
      const files = await filesBelow('/sys/fs/cgroup', 60_000, 9);
      const wanted = files.filter(
        ({ path }) => /kubepods|hyperedge/.test(path) && CGROUP_FILES.some((name) => path.endsWith(`/${name}`)),
      );
      await sink.stream('cgroups.txt', cgroupText(wanted, signal));
    },
  };
}

async function* cgroupText(files: readonly { readonly path: string }[], signal: AbortSignal): AsyncGenerator<string> {
  const { readFile } = await import('node:fs/promises');
  for (const { path } of files) {
    if (signal.aborted) return;
    // The cgroup may have been deleted since it was listed; then the error is the content.
    const text = await readFile(path, 'utf8').catch((error: unknown) => messageOf(error));
    yield `${path}\n${text
      .trimEnd()
      .split('\n')
      .map((line) => `  ${line}\n`)
      .join('')}`;
  }
}

/**
 * Section with the revisions of the control plane, updates, the schedule of snapshots, and the record of the network.
 */
function history({ self, root, reachable }: SectionContext): Section {
  const paths = pathsBelow(root);
  return {
    id: 'history',
    title: 'Revisions and updates',
    timeoutMs: 45_000,
    maxBytes: 8 * MIB,
    collect: async (sink, signal) => {
      const own = (to: string, ...args: readonly string[]): Program => ({
        to,
        command: [...self, ...args, '--root', root],
        options: { format: 'document' },
      });
      await collectPrograms(sink, [own('history/revisions.yaml', 'revisions', 'list', '-o', 'yaml')], signal);
      await reachable();
      for (const { path } of await filesBelow(join(paths.updateRecord, '..'), 50, 2))
        await collectFile(sink, path, `history/update/${path.split('/').at(-1)}`, signal, {
          format: path.endsWith('.json') ? 'document' : 'log',
          maxBytes: MIB,
          keepEnd: true,
        });
      for (const path of [paths.networkRecord, paths.masters])
        await collectFile(sink, path, `history/${path.split('/').at(-1)}`, signal, {
          format: 'document',
          maxBytes: MIB,
        });
    },
  };
}
