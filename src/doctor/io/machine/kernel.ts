/** Reads facts about the kernel from /proc, /sys and /lib/modules. */
import { join } from 'node:path';
import type { CgroupFacts, Facts, Presence } from '../../port.ts';
import { entriesOf, numberOf, runProgram, textIfPresent, textOf } from './read.ts';

const COMMAND_LINES = ['boot/firmware/cmdline.txt', 'boot/cmdline.txt'];
const V1_NAMES: ReadonlySet<string> = new Set(['rw', 'ro', 'xattr', 'clone_children', 'noprefix', 'none']);

/** Reads the cgroup facts. `machine`: directory that contains /proc, /sys, /etc and /boot of the machine. */
export async function readCgroups(machine: string): Promise<CgroupFacts> {
  const [table, mountInfo, commandLine] = await Promise.all([
    textOf(join(machine, 'proc/cgroups')),
    textOf(join(machine, 'proc/self/mountinfo')),
    textOf(join(machine, 'proc/cmdline')),
  ]);
  const known = table
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(/\s+/))
    .map(([name = '', , , enabled]) => ({ name, enabled: enabled === '1' }));
  const mounts = parseMounts(mountInfo);
  const v1 = mounts
    .filter(({ type }) => type === 'cgroup')
    .map(({ point, superOptions }) => ({
      mount: point,
      controllers: superOptions.filter((option) => !V1_NAMES.has(option) && !option.includes('=')),
    }))
    .filter(({ controllers }) => controllers.length > 0);
  const unified = mounts.find(({ type }) => type === 'cgroup2')?.point;
  const files = await Promise.all(
    COMMAND_LINES.map(async (name) => ({ path: `/${name}`, text: await textIfPresent(join(machine, name)) })),
  );
  const file = files.find(({ text }) => text !== undefined);
  return {
    known,
    v1,
    v2:
      unified === undefined
        ? undefined
        : { mount: unified, controllers: words(await textOf(join(machine, unified, 'cgroup.controllers'))) },
    commandLine: commandLine.trim(),
    commandLineFile: file?.text === undefined ? undefined : { path: file.path, text: file.text },
  };
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

export interface Mount {
  readonly point: string;
  readonly type: string;
  readonly device: string;
  /** Options of the mount; `superOptions` has the options of the file system. */
  readonly options: readonly string[];
  readonly superOptions: readonly string[];
}

/** Parses mountinfo. Spaces and some other characters are octal escapes. Source: proc_pid_mountinfo(5). */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [left = '', right] = line.split(' - ');
    if (right === undefined) return [];
    const fields = left.split(' ');
    const [type = '', device = '', superOptions = ''] = right.split(' ');
    const list = superOptions.split(',');
    return [
      {
        point: unescaped(fields[4] ?? ''),
        type,
        device: unescaped(device),
        options: [...new Set([...(fields[5] ?? '').split(','), ...list])],
        superOptions: list,
      },
    ];
  });
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

const MODULES = ['overlay', 'bridge', 'veth', 'nf_tables', 'nft_chain_nat', 'vxlan', 'br_netfilter'] as const;
/** Kernel options of the modules. A built-in module may leave no trace in /sys/module, so its option is checked. */
const OPTION_OF: Readonly<Record<(typeof MODULES)[number], string>> = {
  overlay: 'OVERLAY_FS',
  bridge: 'BRIDGE',
  veth: 'VETH',
  nf_tables: 'NF_TABLES',
  nft_chain_nat: 'NFT_NAT',
  vxlan: 'VXLAN',
  br_netfilter: 'BRIDGE_NETFILTER',
};

/**
 * Determines whether modules are available. `options`: configuration of the kernel; empty if the kernel does not
 * publish it.
 */
export async function readModules(
  machine: string,
  release: string,
  options: Readonly<Record<string, 'builtin' | 'module' | 'absent'>>,
): Promise<Record<string, Presence>> {
  const directory = join(machine, 'lib/modules', release);
  const [loaded, builtin, available, sys, fileSystems] = await Promise.all([
    textOf(join(machine, 'proc/modules')),
    textIfPresent(join(directory, 'modules.builtin')),
    textIfPresent(join(directory, 'modules.dep'), 8 << 20),
    entriesOf(join(machine, 'sys/module')),
    textOf(join(machine, 'proc/filesystems')),
  ]);
  const present = new Set([...loaded.split('\n').map((line) => line.split(' ')[0] ?? ''), ...sys]);
  if (/\toverlay$/m.test(fileSystems)) present.add('overlay');
  const inList = (list: string | undefined, name: string): boolean =>
    new RegExp(`/${name.replaceAll('_', '[-_]')}\\.ko`).test(list ?? '');
  const stateOf = (name: (typeof MODULES)[number]): Presence => {
    const option = options[OPTION_OF[name]];
    if (present.has(name) || option === 'builtin' || inList(builtin, name)) return 'present';
    if (inList(available, name)) return 'loadable';
    if (option === 'absent' || (builtin !== undefined && available !== undefined)) return 'missing';
    return 'unknown';
  };
  return Object.fromEntries(MODULES.map((name) => [name, stateOf(name)]));
}

const SYSCTLS = [
  'net.ipv4.ip_forward',
  'net.bridge.bridge-nf-call-iptables',
  'fs.inotify.max_user_instances',
  'fs.inotify.max_user_watches',
  'kernel.pid_max',
  'fs.file-max',
];

export async function readSysctls(machine: string): Promise<Record<string, string>> {
  const values = await Promise.all(
    SYSCTLS.map(async (name) => {
      const path = name.split('.').join('/');
      return [name, (await textIfPresent(join(machine, 'proc/sys', path), 64))?.trim()] as const;
    }),
  );
  return Object.fromEntries(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

export async function readEntropy(machine: string): Promise<Facts['entropy']> {
  const [available, current] = await Promise.all([
    numberOf(join(machine, 'proc/sys/kernel/random/entropy_avail')),
    textOf(join(machine, 'sys/class/misc/hw_random/rng_current'), 256),
  ]);
  const generator = current.trim();
  return { available, generator: generator === '' || generator === 'none' ? undefined : generator };
}

const DENIED = /apparmor="DENIED"|avc:\s+denied/;
const SUBJECT = /hyperedge|runc|conmon|container|kubepods/i;
const AUDIT_LOG = 'var/log/audit/audit.log';
const PROGRAM_MS = 4000;
const MAX_LINES = 1000;

/** Denials of security modules, from the audit log if it exists, otherwise from the kernel log. */
export async function readDenials(machine: string): Promise<Facts['denials']> {
  const audit = await textIfPresent(join(machine, AUDIT_LOG), 4 << 20);
  if (audit !== undefined) return { source: `/${AUDIT_LOG}`, lines: denialsIn(audit) };
  const { stdout, code, stderr } = await runProgram('dmesg', [], PROGRAM_MS);
  if (code !== 0) throw new Error(`dmesg: ${stderr.trim()}`);
  return { source: 'the kernel log', lines: denialsIn(stdout) };
}

const denialsIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => DENIED.test(line) && SUBJECT.test(line))
    .slice(-MAX_LINES);
