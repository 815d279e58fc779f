/** Linux capabilities. Source: capabilities(7). */

/** Names without the prefix `CAP_`, in the order of the kernel's capability numbers. */
export const CAPABILITY_NAMES: readonly string[] =
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'.split(
    ' ',
  );

/** First name that is not a capability or `ALL`; a prefix `CAP_` is allowed. Undefined if all are valid. */
export function unknownCapability(names: readonly string[]): string | undefined {
  const plain = names.map((name) => name.toUpperCase().replace(/^CAP_/, ''));
  return plain.find((name) => name !== 'ALL' && !CAPABILITY_NAMES.includes(name));
}
