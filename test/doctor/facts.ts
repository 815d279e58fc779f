/** Facts of a healthy host with a cluster of two nodes. */
import type { Facts, GatheredFacts } from '../../src/doctor/port.ts';

export const NOW_MS = Date.parse('2026-11-01T12:00:00Z');
const MACHINE = '0123456789abcdef0123456789abcdef';
const GIB = 1024 ** 3;

export const HEALTHY: Facts = {
  host: {
    root: '/',
    nodeName: 'pi-1',
    nodeIp: '10.0.0.1',
    nodeIpIsBridge: false,
    nodeIpGiven: false,
    pid: 100,
    roles: ['master', 'etcd', 'node'],
    installed: true,
    clusterCidrs: ['10.128.0.0/14'],
    serviceCidrs: ['172.30.0.0/16'],
    bridge: 'hyper0',
    bootstrapFile: '/etc/origin/bootstrap.yaml',
    model: 'Raspberry Pi 4 Model B Rev 1.4',
  },
  configuration: { file: '/etc/origin/bootstrap.yaml', problem: undefined },
  cgroups: {
    known: [{ name: 'memory', enabled: true }],
    v1: [],
    v2: { mount: '/sys/fs/cgroup', controllers: ['cpu', 'memory', 'pids'] },
    commandLine: 'root=/dev/mmcblk0p2',
    commandLineFile: undefined,
  },
  kernel: {
    release: '6.6.31',
    namespaces: ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'],
    seccompActions: ['errno'],
    modules: Object.fromEntries(
      ['overlay', 'bridge', 'veth', 'nf_tables', 'nft_chain_nat', 'vxlan', 'br_netfilter'].map((name) => [
        name,
        'present',
      ]),
    ),
  },
  sysctls: { 'net.ipv4.ip_forward': '1', 'fs.inotify.max_user_instances': '8192' },
  firewall: { chains: [], services: [] },
  ports: { wanted: [{ protocol: 'tcp', port: 8443, what: 'the API server', field: 'ports.api' }], listeners: [] },
  clock: { nowMs: NOW_MS, releasedMs: NOW_MS - 1e9, floorMs: 0, clocks: ['rtc0'], synchronized: true },
  timeZone: { link: '/usr/share/zoneinfo/UTC', exists: true, database: true },
  identity: { hostName: 'pi-1', machineId: MACHINE },
  resolution: { servers: [{ address: '10.0.0.53', problem: undefined }], ownName: 'pi-1', ownAddresses: ['127.0.1.1'] },
  links: [{ name: 'eth0', mtu: 1500, state: 'up', duplicates: [] }],
  routes: [{ family: 4, link: 'eth0', gateway: '10.0.0.254', metric: 100 }],
  paths: [{ name: 'pi-2', address: '10.0.0.2', link: 'eth0', linkMtu: 1500, whole: true, small: true }],
  conflicts: [],
  areas: [
    {
      directory: '/var/lib/origin',
      what: 'state of pods',
      mount: '/',
      device: '/dev/mmcblk0p2',
      type: 'ext4',
      options: ['rw'],
      bytes: 30 * GIB,
      freeBytes: 20 * GIB,
      inodes: 1_000_000,
      freeInodes: 900_000,
    },
  ],
  fsync: { directory: '/var/lib/origin', medianMs: 3, worstMs: 9 },
  flash: [{ device: '/dev/mmcblk0', model: 'SD32G', usedPercent: 20, reserve: 1, smartPassed: undefined }],
  writes: {
    upMs: 10 * 3_600_000,
    disks: [
      { device: '/dev/mmcblk0', model: '', removable: false, flash: true, sizeBytes: 30 * GIB, writtenBytes: GIB },
    ],
  },
  memory: { totalBytes: 4 * GIB, availableBytes: 3 * GIB, swaps: [], fullPercent: 0 },
  processor: {
    policies: [{ name: 'policy0', governor: 'ondemand', limitKhz: 1_500_000, maxKhz: 1_500_000 }],
    throttleCount: 0,
    zones: [{ name: 'cpu-thermal', celsius: 48, passiveCelsius: 80, criticalCelsius: 110 }],
  },
  power: { throttled: 0, alarm: false },
  entropy: { available: 256, generator: 'bcm2835-rng' },
  programs: { missing: [], bundled: true },
  hostProcess: {
    pid: 700,
    problem: undefined,
    ready: true,
    notReady: undefined,
    version: '0.1.0',
    expected: ['api'],
    components: [{ name: 'api', state: 'running', restarts: 0, upMs: 600_000 }],
    failures: [],
  },
  unit: {
    load: 'loaded',
    active: 'active',
    enabled: 'enabled',
    result: 'success',
    restarts: 0,
    watchdogMs: 60_000,
    lastError: undefined,
  },
  denials: { source: 'the kernel log', lines: [] },
  journal: { bytes: 1000, directory: '/var/log/journal', limit: undefined },
  leftovers: { mounts: [], namespaces: [] },
  privateFiles: { problem: undefined },
  certificates: [
    {
      file: '/etc/origin/master/admin.crt',
      subject: 'CN=system:admin',
      notBeforeMs: 0,
      notAfterMs: NOW_MS + 1e10,
      chainProblem: undefined,
      problem: undefined,
    },
  ],
  kubeconfigs: [
    {
      file: '/etc/origin/master/admin.kubeconfig',
      server: 'https://127.0.0.1:8443',
      expected: 'https://127.0.0.1:8443',
      problem: undefined,
    },
  ],
  api: { server: 'https://127.0.0.1:8443', version: 'v1.36.3', latencyMs: 4, problems: [] },
  nodes: [
    {
      name: 'pi-1',
      machineId: MACHINE,
      addresses: ['10.0.0.1'],
      ready: true,
      reason: '',
      pressures: [],
      kubeletVersion: 'v1.36.3',
      architecture: 'arm64',
    },
  ],
  ring: [
    { name: 'pi-1', address: '10.0.0.1:7946', state: 'alive', self: true, version: '0.1.0', clockOffsetMs: 3 },
    { name: 'pi-2', address: '10.0.0.2:7946', state: 'alive', self: false, version: '0.1.0', clockOffsetMs: -3 },
  ],
  store: {
    quorum: true,
    quotaBytes: 2 * GIB,
    members: [{ name: 'pi-1', state: 'ok', lag: 0, bytes: 1000, errors: [] }],
  },
  pods: [{ namespace: 'default', name: 'web', node: 'pi-1', owner: undefined, waiting: [] }],
  registries: [{ registry: 'mirror.lab:5000', proxy: undefined, problem: undefined }],
  podProbes: {
    pod: 'default/web',
    dns: { server: '172.30.0.10:53', problem: undefined },
    service: { address: '172.30.0.1:443', problem: undefined },
    peers: [{ pod: 'default/db', address: '10.128.2.2', problem: undefined }],
  },
  staticPods: { directory: '/etc/origin/node/pods', problems: [], files: 3 },
  deploy: { directory: '/var/lib/origin/manifests', problems: [], files: 1 },
  snapshots: { directory: '/var/lib/origin/snapshots', newestMs: NOW_MS - 3_600_000, damaged: [] },
  update: { current: '0.1.0', available: [], desired: '', failing: undefined, unfinished: undefined },
};

/** `facts` as gathered, with some replaced. */
export function gathered(changed: Partial<Facts> = {}): GatheredFacts {
  const facts = { ...HEALTHY, ...changed };
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, { state: 'known', value }]));
}
