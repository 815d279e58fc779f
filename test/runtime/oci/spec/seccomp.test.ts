import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultSeccompProfile } from '../../../../src/runtime/oci/spec/seccomp.ts';

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly { readonly value: number; readonly valueTwo?: number; readonly op: string }[];
}
interface Profile {
  readonly defaultAction: string;
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly Rule[];
}

const profile = (capabilities: readonly string[] = [], arch = 'x64') =>
  defaultSeccompProfile(capabilities, arch) as Profile;
const allowed = (given: Profile): Set<string> =>
  new Set(
    given.syscalls.flatMap((rule) => (rule.action === 'SCMP_ACT_ALLOW' && rule.args === undefined ? rule.names : [])),
  );
const conditional = (given: Profile, name: string) =>
  given.syscalls.filter((rule) => rule.names.includes(name) && rule.args !== undefined);

describe('the system-call filter RuntimeDefault', () => {
  it('the seccomp filter rejects unlisted system calls with EPERM', () => {
    const { defaultAction, defaultErrnoRet } = profile();
    assert.deepEqual({ defaultAction, defaultErrnoRet }, { defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 1 });
  });

  it('allows common system calls, and none that affects the host outside of a container', () => {
    const calls = allowed(profile());
    for (const call of ['read', 'openat2', 'execve', 'futex', 'statx', 'epoll_pwait2', 'rseq', 'ptrace', 'mq_open'])
      assert.ok(calls.has(call), call);
    for (const call of [
      ...['mount', 'umount2', 'open_tree', 'move_mount', 'fsopen', 'pivot_root', 'chroot', 'setns', 'unshare'],
      ...['bpf', 'perf_event_open', 'keyctl', 'add_key', 'request_key', 'userfaultfd', 'io_uring_setup'],
      ...['kexec_load', 'init_module', 'finit_module', 'swapon', 'reboot', 'acct', 'iopl', 'settimeofday', 'stime'],
      ...['open_by_handle_at', 'get_mempolicy', 'move_pages', 'nfsservctl', 'vhangup', 'syslog', 'quotactl', 'kcmp'],
      ...['clone', 'clone3', 'socket', 'personality', 'a_call_of_next_year'],
    ])
      assert.ok(!calls.has(call), call);
  });

  it('a granted capability adds only its own system calls to the seccomp filter', () => {
    const plain = allowed(profile());
    const added = (...capabilities: string[]): string[] =>
      [...allowed(profile(capabilities)).difference(plain)].toSorted();
    assert.deepEqual(added('CAP_SYS_CHROOT'), ['chroot']);
    assert.deepEqual(added('CAP_SYS_TIME'), ['clock_settime', 'clock_settime64', 'settimeofday', 'stime']);
    assert.deepEqual(added('CAP_NET_ADMIN', 'CAP_CHOWN'), []);
    const admin = added('CAP_SYS_ADMIN');
    for (const call of ['mount', 'unshare', 'setns', 'clone', 'clone3', 'bpf']) assert.ok(admin.includes(call), call);
    for (const call of ['kexec_load', 'init_module', 'reboot', 'io_uring_setup', 'keyctl', 'userfaultfd'])
      assert.ok(!admin.includes(call), call);
  });

  it('allows clone without new namespaces, and returns ENOSYS for clone3 so that programs use clone', () => {
    const [rule, ...more] = conditional(profile(), 'clone');
    assert.deepEqual(more, []);
    const [argument] = rule?.args ?? [];
    assert.equal(argument?.op, 'SCMP_CMP_MASKED_EQ');
    const passes = (flags: number): boolean =>
      (BigInt(flags) & BigInt(argument?.value ?? 0)) === BigInt(argument?.valueTwo ?? -1);
    assert.equal(passes(0x00000011), true, 'fork');
    assert.equal(passes(0x003d0f00), true, 'a thread');
    for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
      assert.equal(passes(flag | 0x11), false, flag.toString(16));
    const clone3 = profile().syscalls.filter((each) => each.names.includes('clone3'));
    assert.deepEqual(clone3, [{ names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 }]);
    assert.deepEqual(conditional(profile(['CAP_SYS_ADMIN']), 'clone'), []);
  });

  it('allows only listed address families of socket and execution domains of personality', () => {
    const values = (name: string) => conditional(profile(), name).map((rule) => rule.args?.[0]?.value);
    const families = values('socket');
    for (const family of [1, 2, 10, 16, 17]) assert.ok(families.includes(family), `${family}`);
    for (const family of [38, 40, 46, 100]) assert.ok(!families.includes(family), `${family}`);
    assert.deepEqual(values('personality'), [0, 8, 0x20000, 0x20008, 0xffffffff]);
  });

  it('the seccomp filter includes the 32-bit architecture of the processor', () => {
    assert.deepEqual(profile().architectures, ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86']);
    assert.deepEqual(profile([], 'arm64').architectures, ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM']);
    assert.ok(allowed(profile()).has('arch_prctl'));
    assert.ok(!allowed(profile([], 'arm64')).has('arch_prctl'));
    assert.ok(allowed(profile([], 'arm64')).has('cacheflush'));
  });
});
