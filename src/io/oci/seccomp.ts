/**
 * The system-call filter of `RuntimeDefault` (OCI runtime specification, `linux.seccomp`). It refuses what reaches past a container: the
 * kernel's modules, time, swap and keyrings, mounting, new namespaces, and interfaces whose attack surface ordinary programs do not need.
 * What a granted capability is meant to allow stays allowed, as container engines do.
 */

const EPERM = 1;
const ENOSYS = 38;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; CLONE_NEWTIME shares its bit with the exit signal. */
const CLONE_NEW_NAMESPACES = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000];

/** Refused to everyone. */
const NEVER =
  'add_key keyctl request_key create_module get_kernel_syms query_module nfsservctl uselib ustat sysfs _sysctl vm86 vm86old userfaultfd io_uring_setup io_uring_enter io_uring_register lookup_dcookie kexec_load kexec_file_load migrate_pages move_pages'.split(
    ' ',
  );

/** Refused without the capability. */
const UNLESS: Readonly<Record<string, readonly string[]>> = {
  CAP_SYS_ADMIN:
    'mount umount umount2 mount_setattr move_mount fsconfig fsmount fsopen fspick open_tree pivot_root setns unshare quotactl quotactl_fd setdomainname sethostname swapon swapoff fanotify_init'.split(
      ' ',
    ),
  CAP_BPF: ['bpf'],
  CAP_PERFMON: ['perf_event_open'],
  CAP_SYS_BOOT: ['reboot'],
  CAP_SYS_MODULE: ['init_module', 'finit_module', 'delete_module'],
  CAP_SYS_PACCT: ['acct'],
  CAP_SYS_PTRACE: ['kcmp', 'pidfd_getfd', 'process_vm_readv', 'process_vm_writev', 'process_madvise'],
  CAP_SYS_RAWIO: ['iopl', 'ioperm'],
  CAP_SYS_TIME: ['settimeofday', 'stime', 'clock_settime', 'clock_settime64', 'clock_adjtime', 'clock_adjtime64'],
  CAP_DAC_READ_SEARCH: ['open_by_handle_at', 'name_to_handle_at'],
  CAP_SYS_NICE: ['mbind', 'set_mempolicy'],
  CAP_SYSLOG: ['syslog'],
};

/** CAP_SYS_ADMIN implied these before they were split off. */
const IMPLIED_BY_ADMIN = new Set(['CAP_BPF', 'CAP_PERFMON', 'CAP_SYSLOG']);

export function defaultSeccompProfile(capabilities: readonly string[], nodeArch: string): object {
  const admin = capabilities.includes('CAP_SYS_ADMIN');
  const refused = [...NEVER];
  for (const [capability, calls] of Object.entries(UNLESS)) {
    if (capabilities.includes(capability) || (admin && IMPLIED_BY_ADMIN.has(capability))) continue;
    refused.push(...calls);
  }
  const refuse = (names: readonly string[], errnoRet: number, args?: readonly object[]): object => ({
    names,
    action: 'SCMP_ACT_ERRNO',
    errnoRet,
    ...(args === undefined ? {} : { args }),
  });
  const rules = [refuse(refused, EPERM)];
  if (!admin) {
    // The flags of clone3 are behind a pointer; ENOSYS makes the C library fall back to clone, whose flags can be read.
    rules.push(refuse(['clone3'], ENOSYS));
    for (const flag of CLONE_NEW_NAMESPACES) {
      rules.push(refuse(['clone'], EPERM, [{ index: 0, value: flag, valueTwo: flag, op: 'SCMP_CMP_MASKED_EQ' }]));
    }
  }
  return { defaultAction: 'SCMP_ACT_ALLOW', architectures: architectures(nodeArch), syscalls: rules };
}

function architectures(nodeArch: string): readonly string[] {
  switch (nodeArch) {
    case 'x64':
      return ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'];
    case 'arm64':
      return ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'];
    case 'arm':
      return ['SCMP_ARCH_ARM'];
    default:
      return [];
  }
}
