/** A directory tree with /proc, /sys and /etc of a healthy Raspberry Pi, in which tests provoke faults. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const RELEASE = '6.6.31+rpt-rpi-v8';

const MOUNTS = [
  '22 1 179:2 / / rw,relatime - ext4 /dev/mmcblk0p2 rw',
  '25 22 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate',
];

const FILES: Readonly<Record<string, string>> = {
  'proc/self/mountinfo': `${MOUNTS.join('\n')}\n`,
  'proc/cgroups': '#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t90\t1\nmemory\t0\t90\t1\npids\t0\t90\t1\n',
  'sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
  'proc/cmdline': 'console=serial0,115200 root=PARTUUID=1 rootwait\n',
  'boot/firmware/cmdline.txt': 'console=serial0,115200 root=PARTUUID=1 rootwait\n',
  'proc/sys/kernel/osrelease': `${RELEASE}\n`,
  'proc/sys/kernel/hostname': 'pi-1\n',
  'proc/sys/kernel/seccomp/actions_avail': 'kill_process kill_thread trap errno trace log allow\n',
  'proc/sys/kernel/random/entropy_avail': '256\n',
  'proc/sys/kernel/pid_max': '4194304\n',
  'proc/sys/net/ipv4/ip_forward': '1\n',
  'proc/sys/fs/file-max': '9223372036854775807\n',
  'proc/sys/fs/inotify/max_user_instances': '8192\n',
  'proc/sys/fs/inotify/max_user_watches': '65536\n',
  'sys/class/misc/hw_random/rng_current': 'bcm2835-rng\n',
  'proc/modules': 'bridge 1 0 - Live 0x0\nveth 1 0 - Live 0x0\nnf_tables 1 0 - Live 0x0\n',
  'proc/filesystems': 'nodev\tproc\nnodev\toverlay\n',
  [`lib/modules/${RELEASE}/modules.builtin`]: 'kernel/net/vxlan.ko\n',
  [`lib/modules/${RELEASE}/modules.dep`]:
    'kernel/net/bridge/br_netfilter.ko.xz:\nkernel/net/netfilter/nft_chain_nat.ko.xz:\n',
  'proc/meminfo': 'MemTotal: 4000000 kB\nMemAvailable: 3000000 kB\n',
  'proc/swaps': 'Filename\tType\tSize\tUsed\tPriority\n',
  'proc/pressure/memory':
    'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
  'proc/uptime': '360000.00 100.00\n',
  'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.4\0',
  'proc/self/net/route':
    'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n',
  'etc/hostname': 'pi-1\n',
  'etc/hosts': '127.0.0.1 localhost\n127.0.1.1 pi-1\n',
  'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
  'etc/resolv.conf': '# none\n',
  'usr/share/zoneinfo/UTC': 'TZif',
  'var/log/audit/audit.log': 'type=SERVICE_START msg=audit(1): pid=1\n',
  'sys/block/mmcblk0/device/name': 'SD32G\n',
  'sys/block/mmcblk0/device/life_time': '0x02 0x01\n',
  'sys/block/mmcblk0/device/pre_eol_info': '0x01\n',
  'sys/block/mmcblk0/stat': '1 1 1 1 1 1 2048000 1 1 1 1\n',
  'sys/block/mmcblk0/size': '62333952\n',
  'sys/block/mmcblk0/queue/rotational': '0\n',
  'sys/block/mmcblk0/removable': '0\n',
  'sys/class/rtc/rtc0/name': 'ds3231\n',
  'sys/devices/system/cpu/cpufreq/policy0/scaling_governor': 'ondemand\n',
  'sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq': '1500000\n',
  'sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq': '1500000\n',
  'sys/class/thermal/thermal_zone0/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '48200\n',
  'sys/class/thermal/thermal_zone0/trip_point_0_type': 'critical\n',
  'sys/class/thermal/thermal_zone0/trip_point_0_temp': '110000\n',
  'sys/class/thermal/thermal_zone0/trip_point_1_type': 'passive\n',
  'sys/class/thermal/thermal_zone0/trip_point_1_temp': '80000\n',
  'sys/devices/platform/soc/soc:firmware/get_throttled': '0\n',
  ...Object.fromEntries(
    ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'].map((name) => [`proc/self/ns/${name}`, '']),
  ),
};

export interface FakeMachine {
  readonly machine: string;
  /** Root of an installation beside the machine's files. */
  readonly root: string;
  put(path: string, text: string): Promise<void>;
  link(path: string, target: string): Promise<void>;
  remove(path: string): Promise<void>;
}

/** Creates the tree, runs `body` and removes the tree. */
export async function withMachine<T>(body: (fake: FakeMachine) => Promise<T>): Promise<T> {
  const base = await mkdtemp(join(tmpdir(), 'doctor-'));
  const machine = join(base, 'machine');
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(machine, path)), { recursive: true });
    await writeFile(join(machine, path), text);
  };
  try {
    for (const [path, text] of Object.entries(FILES)) await put(path, text);
    await mkdir(join(base, 'root'));
    return await body({
      machine,
      root: join(base, 'root'),
      put,
      link: async (path, target) => {
        await mkdir(dirname(join(machine, path)), { recursive: true });
        await symlink(target, join(machine, path));
      },
      remove: (path) => rm(join(machine, path), { recursive: true }),
    });
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}
