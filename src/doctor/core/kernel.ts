/** Checks of the kernel: cgroups, features, modules, settings and security denials. */
import type { CgroupFacts, Finding } from '../port.ts';
import { check, error, ok, orOk, shell, unknown, warning } from './check.ts';

/** Kernel options that enable the memory cgroup, which Raspberry Pi OS disables by default. */
const MEMORY_OPTIONS = ['cgroup_enable=memory', 'cgroup_memory=1'];
const REQUIRED = ['cpu', 'memory', 'pids'] as const;
const NAMESPACES = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'uts'];

const memoryCgroup = check({
  id: 'memory-cgroup',
  title: 'memory limits of pods can be enforced',
  group: 'kernel',
  preflight: true,
  explanation: 'The controller memory exists and is enabled. Raspberry Pi OS disables it on the kernel command line.',
  needs: ['cgroups'],
  run: ({ cgroups }) => {
    const memory = cgroups.known.find(({ name }) => name === 'memory');
    const onV2 = cgroups.v2?.controllers.includes('memory') === true;
    const onV1 = cgroups.v1.some(({ controllers }) => controllers.includes('memory'));
    if (onV2 || (memory?.enabled === true && onV1)) return [ok(`memory controller on cgroup v${onV2 ? 2 : 1}`)];
    if (memory === undefined && !onV1)
      return [
        error(
          'the kernel has no memory controller (CONFIG_MEMCG)',
          'install a kernel with CONFIG_MEMCG=y, for example: apt-get install linux-image-$(dpkg --print-architecture)',
        ),
      ];
    const disabled = /\bcgroup_disable=(\S*memory\S*)/.exec(cgroups.commandLine)?.[0];
    const why = disabled === undefined ? '' : `; the kernel command line has ${disabled}`;
    return [error(`the memory controller is disabled${why}`, memoryFix(cgroups))];
  },
});

/**
 * Command or instruction that enables the memory cgroup, in cmdline.txt (a single line) or the boot loader's
 * configuration.
 */
function memoryFix({ commandLineFile, commandLine }: CgroupFacts): string {
  if (commandLineFile === undefined) {
    const remove = /cgroup_disable=\S*memory/.test(commandLine) ? 'remove cgroup_disable=memory and ' : '';
    return `in /etc/default/grub, ${remove}add ${MEMORY_OPTIONS.join(' ')} to GRUB_CMDLINE_LINUX, then run: update-grub && reboot`;
  }
  const { path, text } = commandLineFile;
  const missing = MEMORY_OPTIONS.filter((option) => !text.split(/\s+/).includes(option)).join(' ');
  // A list such as `cgroup_disable=memory,io` can stay, because the later `cgroup_enable=memory` overrides it.
  const remove = /cgroup_disable=memory(?=\s|$)/.test(text) ? "-e 's/ *cgroup_disable=memory//' " : '';
  const add = missing === '' ? '' : `-e '1s/$/ ${missing}/' `;
  return remove + add === '' ? 'reboot' : `sed -i ${remove}${add}${shell(path)} && reboot`;
}

const cgroupLayout = check({
  id: 'cgroup-layout',
  title: 'the cgroup hierarchies have the controllers that pods need',
  group: 'kernel',
  preflight: true,
  explanation: 'cgroup v2, v1 or both are mounted, with cpu, memory and pids. A controller is on one of them only.',
  needs: ['cgroups'],
  run: ({ cgroups: { v1, v2 } }) => {
    if (v2 === undefined && v1.length === 0)
      return [error('no cgroup hierarchy is mounted', 'mount -t cgroup2 none /sys/fs/cgroup')];
    const found = new Set([...v1.flatMap(({ controllers }) => controllers), ...(v2?.controllers ?? [])]);
    const lacking = REQUIRED.filter((name) => !found.has(name) && name !== 'memory');
    const layout = v1.length === 0 ? 'v2' : v2 === undefined ? 'v1' : 'hybrid: v1 and v2';
    if (lacking.length > 0)
      return [
        error(
          `${layout}: no hierarchy has ${lacking.join(', ')}`,
          `mount -t cgroup2 none /sys/fs/cgroup    # with a kernel that has ${lacking.join(', ')}`,
        ),
      ];
    return [ok(`${layout}; ${[...found].sort().join(' ')}`)];
  },
});

const kernelFeatures = check({
  id: 'kernel-features',
  title: 'the kernel has the namespaces and system-call filters of containers',
  group: 'kernel',
  preflight: true,
  explanation: 'The namespaces cgroup, ipc, mnt, net, pid and uts exist, and seccomp can filter system calls.',
  needs: ['kernel'],
  run: ({ kernel: { release, namespaces, seccompActions } }) => {
    const lacking = NAMESPACES.filter((name) => !namespaces.includes(name));
    const findings: Finding[] = [];
    if (lacking.length > 0)
      findings.push(
        error(
          `kernel ${release} lacks the namespaces ${lacking.join(', ')}`,
          'install a kernel with CONFIG_NAMESPACES=y and its options, such as that of the distribution',
        ),
      );
    if (!namespaces.includes('user'))
      findings.push(
        warning(
          `kernel ${release} lacks user namespaces; pods with hostUsers: false do not start`,
          'sysctl -w user.max_user_namespaces=15000    # or use a kernel with CONFIG_USER_NS=y',
        ),
      );
    if (!seccompActions.includes('errno'))
      findings.push(
        warning(
          `kernel ${release} has no seccomp filter; profiles of pods are not enforced`,
          'install a kernel with CONFIG_SECCOMP_FILTER=y',
        ),
      );
    return orOk(findings, `kernel ${release}`);
  },
});

/** Kernel modules, with the consequence if a module is missing. */
const MODULES: Readonly<Record<string, { readonly result: 'error' | 'warning'; readonly without: string }>> = {
  overlay: { result: 'error', without: 'containers have no root file system' },
  bridge: { result: 'error', without: 'the pod network has no bridge' },
  veth: { result: 'error', without: 'pods have no link' },
  nf_tables: { result: 'warning', without: 'services are forwarded in user space' },
  nft_chain_nat: { result: 'warning', without: 'services are forwarded in user space' },
  vxlan: { result: 'warning', without: 'pods of hosts on other links are unreachable' },
  br_netfilter: { result: 'warning', without: 'network policies do not apply between pods of one host' },
};

const kernelModules = check({
  id: 'kernel-modules',
  title: 'overlay, bridge, veth, nf_tables, vxlan and br_netfilter are available',
  group: 'kernel',
  preflight: true,
  explanation: 'Each module is loaded, built in, or can be loaded from /lib/modules.',
  needs: ['kernel'],
  run: ({ kernel: { modules, release } }) => {
    const states = Object.entries(MODULES).map(([name, each]) => ({ name, ...each, state: modules[name] }));
    const findings = states.flatMap(({ name, result, without, state }) => {
      if (state !== 'missing') return [];
      const evidence = `kernel ${release} has no module ${name}: ${without}`;
      const fix = `apt-get install linux-modules-extra-$(uname -r) || apt-get install --reinstall linux-image-$(uname -r); modprobe ${name}`;
      return [result === 'error' ? error(evidence, fix) : warning(evidence, fix)];
    });
    const unclear = states.filter(({ state }) => state === undefined || state === 'unknown').map(({ name }) => name);
    const note = unclear.length === 0 ? '' : `; not determined: ${unclear.join(' ')}`;
    const present = states.filter(({ state }) => state === 'present' || state === 'loadable').map(({ name }) => name);
    return orOk(findings, `${present.join(' ')}${note}`);
  },
});

/** Kernel settings with their minimum values, and the consequence of a lower value. */
const LEAST: Readonly<Record<string, { readonly least: number; readonly why: string }>> = {
  'fs.inotify.max_user_instances': { least: 256, why: 'changes of files are detected by polling' },
  'fs.inotify.max_user_watches': { least: 16_384, why: 'changes of files are detected by polling' },
  'kernel.pid_max': { least: 4096, why: 'pods cannot start processes' },
  'fs.file-max': { least: 65_536, why: 'components run out of file descriptors' },
};

const kernelSettings = check({
  id: 'kernel-settings',
  title: 'kernel settings allow forwarding and enough files and processes',
  group: 'kernel',
  explanation:
    'net.ipv4.ip_forward is 1 on an installed host; limits of inotify, processes and files are large enough.',
  needs: ['sysctls', 'host'],
  run: ({ sysctls, host }) => {
    const findings: Finding[] = [];
    if (host.installed && sysctls['net.ipv4.ip_forward'] === '0')
      findings.push(
        error('net.ipv4.ip_forward is 0: packets of pods are not forwarded', 'sysctl -w net.ipv4.ip_forward=1'),
      );
    for (const [name, { least, why }] of Object.entries(LEAST)) {
      const value = Number(sysctls[name] ?? Number.NaN);
      if (value < least) findings.push(warning(`${name} is ${value}: ${why}`, `sysctl -w ${name}=${least}`));
    }
    if (sysctls['net.bridge.bridge-nf-call-iptables'] === '0')
      findings.push(
        warning(
          'net.bridge.bridge-nf-call-iptables is 0: network policies do not apply between pods of one host',
          'sysctl -w net.bridge.bridge-nf-call-iptables=1',
        ),
      );
    return orOk(findings, `${Object.keys(sysctls).length} settings compared`);
  },
});

const securityDenials = check({
  id: 'security-denials',
  title: 'SELinux and AppArmor have denied nothing to the components',
  group: 'kernel',
  explanation: 'The kernel log of the last day has no denials of hyperedge, runc, conmon or containers.',
  needs: ['denials'],
  run: ({ denials: { lines, source } }) => {
    const last = lines.at(-1);
    if (last === undefined) return [ok(`no denials in ${source}`)];
    const profile = /profile="([^"]{1,200})"/.exec(last)?.[1];
    const fix =
      profile === undefined
        ? 'ausearch -m avc -ts today | audit2allow -M hyperedge && semodule -i hyperedge.pp'
        : `aa-complain ${shell(profile)}`;
    return [warning(`${lines.length} denials in ${source}, the last one: ${last}`, fix)];
  },
});

const entropy = check({
  id: 'entropy',
  title: 'the kernel has random numbers for keys',
  group: 'kernel',
  preflight: true,
  explanation: 'The entropy estimate is at least 200 bits. Without it, creation of keys blocks at boot.',
  needs: ['entropy'],
  run: ({ entropy: { available, generator } }) => {
    const source = generator === undefined ? 'no hardware generator' : `generator ${generator}`;
    if (Number.isNaN(available)) return [unknown('the kernel does not report its entropy')];
    if (available >= 200) return [ok(`${available} bits; ${source}`)];
    return [
      warning(`${available} bits of entropy; ${source}`, 'apt-get install rng-tools5 || apt-get install haveged'),
    ];
  },
});

export const kernelChecks = [
  memoryCgroup,
  cgroupLayout,
  kernelFeatures,
  kernelModules,
  kernelSettings,
  securityDenials,
  entropy,
];
