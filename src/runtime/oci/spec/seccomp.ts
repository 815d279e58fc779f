/**
 * The system-call filter of `RuntimeDefault` (OCI runtime specification, `linux.seccomp`). Calls that are not listed
 * fail with EPERM. The list follows the documented default profiles of Docker and containerd; a granted capability adds
 * the calls that it permits.
 */

const EPERM = 1;
const ENOSYS = 38;

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/**
 * Calls that are always allowed, grouped by topic. The runtime skips names that the architecture or an older libseccomp
 * lacks.
 */
const ALWAYS: readonly string[] = [
  // Files and directories.
  ...words(`access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync flock fstat
    fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64 inotify_add_watch inotify_init
    inotify_init1 inotify_rm_watch ioctl lchown lchown32 link linkat listmount _llseek lseek lstat lstat64 mkdir mkdirat mknod mknodat
    name_to_handle_at newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink
    readlinkat readv rename renameat renameat2 rmdir sendfile sendfile64 splice stat stat64 statfs statfs64 statmount statx symlink
    symlinkat sync sync_file_range syncfs tee truncate truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice
    write writev`),
  ...words(`fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr listxattrat llistxattr lremovexattr
    lsetxattr removexattr removexattrat setxattr setxattrat`),
  // Waiting for input and output.
  ...words(`epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
    io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit _newselect poll ppoll ppoll_time64 pselect6
    pselect6_time64 select signalfd signalfd4`),
  // Sockets. socket(2) itself depends on the address family.
  ...words(`accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 recvmsg send
    sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair`),
  // Memory.
  ...words(`brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mmap2 mprotect
    mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages`),
  // Processes, threads and their identities.
  ...words(`capget capset execve execveat exit exit_group fork getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32
    getpgid getpgrp getpid getppid getresgid getresgid32 getresuid getresuid32 getsid gettid getuid getuid32 kill landlock_add_rule
    landlock_create_ruleset landlock_restrict_self pidfd_open pidfd_send_signal prctl process_mrelease process_vm_readv
    process_vm_writev ptrace restart_syscall rseq seccomp setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32
    setpgid setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setsid set_thread_area get_thread_area
    set_tid_address setuid setuid32 tgkill tkill uretprobe vfork wait4 waitid waitpid`),
  ...words(`futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake get_robust_list set_robust_list`),
  ...words(`pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
    rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack sigprocmask sigreturn`),
  // Scheduling and limits.
  ...words(`getcpu getpriority getrlimit getrusage ioprio_get ioprio_set prlimit64 sched_get_priority_max sched_get_priority_min
    sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
    sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield setpriority setrlimit ugetrlimit`),
  // Clocks. The kernel itself requires CAP_SYS_TIME for setting a clock with adjtimex.
  ...words(`adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
    clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun timer_gettime
    timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64
    times`),
  // System V and POSIX IPC, which are confined to the pod's IPC namespace.
  ...words(`ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl
    msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget`),
  ...words('getrandom sysinfo uname'),
];

/** Calls that exist only on one processor architecture. */
const OF_ARCHITECTURE: Readonly<Record<string, readonly string[]>> = {
  x64: words('arch_prctl modify_ldt'),
  arm64: words('arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2'),
  arm: words('arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2'),
};

const WITH_CAPABILITY: Readonly<Record<string, readonly string[]>> = {
  CAP_SYS_ADMIN:
    words(`bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr lsm_list_modules
    lsm_set_self_attr mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns
    syslog umount umount2 unshare`),
  CAP_BPF: ['bpf'],
  CAP_DAC_READ_SEARCH: ['open_by_handle_at'],
  CAP_PERFMON: ['perf_event_open'],
  CAP_SYS_BOOT: ['reboot'],
  CAP_SYS_CHROOT: ['chroot'],
  CAP_SYS_MODULE: words('delete_module finit_module init_module'),
  CAP_SYS_NICE: words('get_mempolicy mbind set_mempolicy set_mempolicy_home_node'),
  CAP_SYS_PACCT: ['acct'],
  CAP_SYS_PTRACE: words('kcmp pidfd_getfd process_madvise'),
  CAP_SYS_RAWIO: words('ioperm iopl'),
  CAP_SYS_TIME: words('clock_settime clock_settime64 settimeofday stime'),
  CAP_SYS_TTY_CONFIG: ['vhangup'],
  CAP_SYSLOG: ['syslog'],
};

/**
 * CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. CLONE_NEWTIME shares its bit with the exit
 * signal.
 */
const CLONE_NEW_NAMESPACES = 0x7e02_0000;

/**
 * Address families that containers do not need: obsolete ones, and those that reach the hypervisor (VSOCK) or the
 * kernel's crypto API (ALG).
 */
const REFUSED_FAMILIES: ReadonlySet<number> = new Set([12, 19, 20, 23, 25, 34, 37, 38, 40]);
const FAMILIES = 46;

/** Allowed execution domains: Linux and PER_LINUX32, each with or without UNAME26, and the query 0xffffffff. */
const PERSONALITIES = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];

export function defaultSeccompProfile(capabilities: readonly string[], nodeArch: string): object {
  const granted = Object.entries(WITH_CAPABILITY).flatMap(([name, calls]) =>
    capabilities.includes(name) ? calls : [],
  );
  const names = [...new Set([...ALWAYS, ...(OF_ARCHITECTURE[nodeArch] ?? []), ...granted])];
  const allow = (call: string, value: number, op: string, valueTwo?: number): object => ({
    names: [call],
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value, op, ...(valueTwo === undefined ? {} : { valueTwo }) }],
  });
  const families = Array.from({ length: FAMILIES }, (_, family) => family).filter(
    (each) => !REFUSED_FAMILIES.has(each),
  );
  const syscalls: object[] = [
    { names, action: 'SCMP_ACT_ALLOW' },
    ...PERSONALITIES.map((persona) => allow('personality', persona, 'SCMP_CMP_EQ')),
    ...families.map((family) => allow('socket', family, 'SCMP_CMP_EQ')),
  ];
  if (!capabilities.includes('CAP_SYS_ADMIN')) {
    // The flags of clone3 are behind a pointer and cannot be filtered. ENOSYS makes the C library fall back to clone.
    syscalls.push({ names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS });
    syscalls.push(allow('clone', CLONE_NEW_NAMESPACES, 'SCMP_CMP_MASKED_EQ', 0));
  }
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: EPERM,
    architectures: architectures(nodeArch),
    syscalls,
  };
}

function architectures(nodeArch: string): readonly string[] {
  switch (nodeArch) {
    case 'x64':
      // Without x32, which kernels run only with syscall.x32=y: runc compiles the filter for each container, and x32
      // would add 6 ms.
      return ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86'];
    case 'arm64':
      return ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'];
    case 'arm':
      return ['SCMP_ARCH_ARM'];
    default:
      return [];
  }
}
