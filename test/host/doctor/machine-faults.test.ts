import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Result } from '../../../src/doctor/port.ts';
import { runDoctor } from '../../../src/host/doctor/doctor.ts';
import { type FakeMachine, withMachine } from '../../doctor/machine.ts';

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const helper = [process.execPath, main, 'doctor-probe'];

const resultOf = async ({ machine, root }: FakeMachine, id: string) => {
  const { checks } = await runDoctor({ machine, root, helper, only: [id] });
  const [check] = checks;
  assert.ok(check !== undefined);
  return check;
};

interface Fault {
  readonly check: string;
  readonly what: string;
  readonly provoke: (fake: FakeMachine) => Promise<void>;
  readonly result: Result;
  readonly evidence: RegExp;
  readonly fix: RegExp;
}

/**
 * Faults that a fake tree can contain. Other checks read facts of the real host, and other tests provoke their faults.
 */
const FAULTS: readonly Fault[] = [
  {
    check: 'memory-cgroup',
    what: 'the command line of a Raspberry Pi disables the memory controller',
    provoke: async ({ put }) => {
      await put('proc/cgroups', '#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t90\t0\n');
      await put('sys/fs/cgroup/cgroup.controllers', 'cpuset cpu io pids\n');
      await put('proc/cmdline', 'console=tty1 cgroup_disable=memory root=/dev/mmcblk0p2\n');
      await put('boot/firmware/cmdline.txt', 'console=tty1 cgroup_disable=memory root=/dev/mmcblk0p2\n');
    },
    result: 'error',
    evidence: /the memory controller is disabled; the kernel command line has cgroup_disable=memory/,
    fix: /^sed -i -e 's\/ \*cgroup_disable=memory\/\/' -e '1s\/\$\/ cgroup_enable=memory cgroup_memory=1\/' \/boot\/firmware\/cmdline\.txt && reboot$/,
  },
  {
    check: 'cgroup-layout',
    what: 'no hierarchy is mounted',
    provoke: ({ put }) => put('proc/self/mountinfo', '22 1 179:2 / / rw - ext4 /dev/mmcblk0p2 rw\n'),
    result: 'error',
    evidence: /no cgroup hierarchy is mounted/,
    fix: /^mount -t cgroup2/,
  },
  {
    check: 'kernel-features',
    what: 'network namespaces and seccomp are missing',
    provoke: async ({ remove, put }) => {
      await remove('proc/self/ns/net');
      await put('proc/sys/kernel/seccomp/actions_avail', '');
    },
    result: 'error',
    evidence: /lacks the namespaces net/,
    fix: /CONFIG_NAMESPACES/,
  },
  {
    check: 'kernel-modules',
    what: 'the module bridge is neither loaded, built in nor installed',
    provoke: ({ put }) => put('proc/modules', 'veth 1 0 - Live 0x0\nnf_tables 1 0 - Live 0x0\n'),
    result: 'error',
    evidence: /no module bridge: the pod network has no bridge/,
    fix: /modprobe bridge$/,
  },
  {
    check: 'kernel-settings',
    what: 'the limit of inotify is tiny',
    provoke: ({ put }) => put('proc/sys/fs/inotify/max_user_instances', '16\n'),
    result: 'warning',
    evidence: /fs\.inotify\.max_user_instances is 16/,
    fix: /^sysctl -w fs\.inotify\.max_user_instances=/,
  },
  {
    check: 'security-denials',
    what: 'SELinux has denied an action of runc',
    provoke: ({ put }) =>
      put('var/log/audit/audit.log', 'type=AVC msg=audit(1): avc:  denied  { write } for pid=7 comm="runc" name="x"\n'),
    result: 'warning',
    evidence: /1 denials in \/var\/log\/audit\/audit\.log.*comm="runc"/,
    fix: /audit2allow/,
  },
  {
    check: 'entropy',
    what: 'the kernel has little entropy',
    provoke: ({ put }) => put('proc/sys/kernel/random/entropy_avail', '12\n'),
    result: 'warning',
    evidence: /^12 bits/,
    fix: /rng-tools/,
  },
  {
    check: 'machine-id',
    what: 'the image has no machine-id',
    provoke: ({ put }) => put('etc/machine-id', ''),
    result: 'warning',
    evidence: /machine-id is empty/,
    fix: /systemd-machine-id-setup/,
  },
  {
    check: 'name-resolution',
    what: 'the name server does not answer and the host name does not resolve',
    provoke: async ({ put }) => {
      await put('etc/resolv.conf', 'nameserver 127.0.0.254\n');
      await put('etc/hosts', '127.0.0.1 localhost\n');
    },
    result: 'warning',
    evidence: /name server 127\.0\.0\.254 does not answer/,
    fix: /resolv\.conf/,
  },
  {
    check: 'default-route',
    what: 'there is no default route',
    provoke: ({ put }) => put('proc/self/net/route', 'Iface\tDestination\tGateway\n'),
    result: 'warning',
    evidence: /no default route/,
    fix: /ip route add default|node: \{ip: /,
  },
  {
    check: 'clock-year',
    what: 'the time floor of the host is in the future',
    provoke: async ({ root }) => {
      const { mkdir, writeFile } = await import('node:fs/promises');
      await mkdir(join(root, 'var/lib/origin'), { recursive: true });
      await writeFile(join(root, 'var/lib/origin/time-floor'), '2090-01-01T00:00:00.000Z\n');
    },
    result: 'error',
    evidence: /the last known time is 2090-01-01T00:00:00Z/,
    fix: /date -u -s/,
  },
  {
    check: 'clock-battery',
    what: 'there is no real-time clock',
    provoke: ({ remove }) => remove('sys/class/rtc/rtc0'),
    result: 'warning',
    evidence: /no real-time clock/,
    fix: /timesyncd/,
  },
  {
    check: 'time-zone',
    what: 'the time zone does not exist',
    provoke: ({ link }) => link('etc/localtime', '/usr/share/zoneinfo/Mars/Olympus'),
    result: 'warning',
    evidence: /Mars\/Olympus, which does not exist/,
    fix: /^ln -sf \/usr\/share\/zoneinfo\/UTC \/etc\/localtime$/,
  },
  {
    check: 'flash-wear',
    what: 'the eMMC is at the end of its life',
    provoke: ({ put }) => put('sys/block/mmcblk0/device/life_time', '0x03 0x0b\n'),
    result: 'error',
    evidence: /\/dev\/mmcblk0 \(SD32G\): 110 % of the rated life/,
    fix: /replace \/dev\/mmcblk0/,
  },
  {
    check: 'write-rate',
    what: 'the card is written more than once in two days',
    provoke: ({ put }) => put('sys/block/mmcblk0/stat', '1 1 1 1 1 1 9000000000 1 1 1 1\n'),
    result: 'warning',
    evidence: /\/dev\/mmcblk0: .* written per hour/,
    fix: /iotop/,
  },
  {
    check: 'memory',
    what: 'little memory is available and tasks wait for it',
    provoke: async ({ put }) => {
      await put('proc/meminfo', 'MemTotal: 500000 kB\nMemAvailable: 20000 kB\n');
      await put('proc/pressure/memory', 'full avg10=40.00 avg60=33.00 avg300=0.00 total=0\n');
    },
    result: 'warning',
    evidence: /488 MiB of memory; the roles/,
    fix: /--roles node/,
  },
  {
    check: 'swap',
    what: 'swap space on the card is in use',
    provoke: ({ put }) => put('proc/swaps', 'Filename\tType\tSize\tUsed\tPriority\n/var/swap file 102396 90000 -2\n'),
    result: 'warning',
    evidence: /\/var\/swap: .* swap space in use/,
    fix: /^swapoff -a/,
  },
  {
    check: 'cpu-frequency',
    what: 'the frequency is limited',
    provoke: ({ put }) => put('sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq', '600000\n'),
    result: 'warning',
    evidence: /policy0 \(ondemand\) is limited to 600 of 1500 MHz/,
    fix: /scaling_max_freq/,
  },
  {
    check: 'thermal',
    what: 'the processor is hotter than its throttling point',
    provoke: ({ put }) => put('sys/class/thermal/thermal_zone0/temp', '83000\n'),
    result: 'warning',
    evidence: /cpu-thermal: 83 °C, throttled from 80 °C on/,
    fix: /heat sink/,
  },
  {
    check: 'under-voltage',
    what: 'the firmware reports under-voltage',
    provoke: ({ put }) => put('sys/devices/platform/soc/soc:firmware/get_throttled', '50005\n'),
    result: 'error',
    evidence: /too low now/,
    fix: /power supply/,
  },
  {
    check: 'bootstrap-file',
    what: 'the bootstrap file has an unknown field',
    provoke: async ({ root }) => {
      const { mkdir, writeFile } = await import('node:fs/promises');
      await mkdir(join(root, 'etc/origin'), { recursive: true });
      await writeFile(
        join(root, 'etc/origin/bootstrap.yaml'),
        'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nrolls: [node]\n',
      );
    },
    result: 'error',
    evidence: /bootstrap\.yaml:3: rolls/,
    fix: /bootstrap\.yaml && \S.* config check --root/,
  },
  {
    check: 'pod-ranges',
    what: 'the address of the host is in the range of pods',
    provoke: async ({ root }) => {
      const { mkdir, writeFile } = await import('node:fs/promises');
      await mkdir(join(root, 'etc/origin'), { recursive: true });
      await writeFile(
        join(root, 'etc/origin/bootstrap.yaml'),
        'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: { ip: 10.128.7.7 }\n',
      );
    },
    result: 'error',
    evidence: /10\.128\.7\.7, is in 10\.128\.0\.0\/14/,
    fix: /network\.clusterCIDR/,
  },
  {
    check: 'leftover-mounts',
    what: 'a container without a record has a mount',
    provoke: ({ put, root }) =>
      put(
        'proc/self/mountinfo',
        `9 1 0:9 / ${root}/var/lib/origin/containers/containers/abc/rootfs rw - overlay o rw\n`,
      ),
    result: 'warning',
    evidence: /containers\/abc\/rootfs is mounted, but belongs to no pod/,
    fix: /^mount --make-rprivate \S+ && umount -l /,
  },
  {
    check: 'leftover-namespaces',
    what: 'a sandbox without a record has a network namespace',
    provoke: ({ put, root }) =>
      put('proc/self/mountinfo', `9 1 0:4 / ${root}/run/hyperedge/containers/sandboxes/abc/net rw - nsfs nsfs rw\n`),
    result: 'warning',
    evidence: /sandboxes\/abc\/net belongs to no pod/,
    fix: /^umount .* && rm /,
  },
];

for (const { check, what, provoke, result, evidence, fix } of FAULTS)
  test(`the check ${check} reports a fault if ${what}`, () =>
    withMachine(async (fake) => {
      const healthy = await resultOf(fake, check);
      assert.ok(['ok', 'skipped'].includes(healthy.result) || check === 'name-resolution', JSON.stringify(healthy));
      await provoke(fake);
      const found = await resultOf(fake, check);
      assert.equal(found.result, result, JSON.stringify(found));
      const finding = found.findings.find((each) => evidence.test(each.evidence));
      assert.ok(finding !== undefined, JSON.stringify(found));
      assert.match(finding.fix ?? '', fix);
    }));

test('doctor names the invalid drop-in once, and reports no fault of files that it could not check', async () => {
  await withMachine(async ({ machine, root }) => {
    const dropIn = join(root, 'etc/origin/bootstrap.yaml.d/70-site.yaml');
    await mkdir(dirname(dropIn), { recursive: true });
    await writeFile(dropIn, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnod: {}\n');
    const only = ['bootstrap-file', 'private-files', 'ports', 'pod-ranges'];
    const { checks } = await runDoctor({ machine, root, helper, only });
    const found = new Map(checks.map((each) => [each.id, each]));
    const [problem] = found.get('bootstrap-file')?.findings ?? [];
    assert.equal(problem?.result, 'error');
    assert.ok(problem.evidence.startsWith(`${dropIn}:3: nod: unknown field`), problem.evidence);
    assert.match(problem.fix ?? '', /^\$\{EDITOR:-vi\} \S+\/bootstrap\.yaml\.d\/70-site\.yaml && /);
    for (const id of ['private-files', 'ports', 'pod-ranges'])
      assert.deepEqual(found.get(id)?.findings, [
        { result: 'unknown', evidence: 'the bootstrap file is invalid; see bootstrap-file' },
      ]);
  });
});
