import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CHECKS, diagnose, exitCodeOf, summarize } from '../../../src/doctor/core/index.ts';
import type { Facts, FirewallChain, PodFacts, Result } from '../../../src/doctor/port.ts';
import { gathered, HEALTHY, NOW_MS } from '../facts.ts';

const area = (changed: object): Partial<Facts> => ({ areas: HEALTHY.areas.map((each) => ({ ...each, ...changed })) });
const chain = (changed: Partial<FirewallChain>): Partial<Facts> => ({
  firewall: {
    services: [],
    chains: [
      {
        family: 'ip',
        table: 'filter',
        name: 'FORWARD',
        hook: 'forward',
        policy: 'drop',
        drops: [],
        accepts: [],
        steps: [],
        ...changed,
      },
    ],
  },
});
const waiting = (reason: string, message: string): Partial<Facts> => {
  const pod: PodFacts = {
    namespace: 'default',
    name: 'web',
    node: 'pi-1',
    owner: undefined,
    waiting: [{ container: 'main', reason, message, image: 'web:1' }],
  };
  return { pods: [pod] };
};
const unit = (changed: Partial<Facts['unit']>): Partial<Facts> => ({ unit: { ...HEALTHY.unit, ...changed } });
const clock = (changed: Partial<Facts['clock']>): Partial<Facts> => ({ clock: { ...HEALTHY.clock, ...changed } });
const member = (changed: object): Partial<Facts> => ({
  store: { ...HEALTHY.store, members: HEALTHY.store.members.map((each) => ({ ...each, ...changed })) },
});
const NODE_CLIENT = {
  file: '/etc/origin/node/certificates/kubelet-client-current.pem',
  subject: 'O=system:nodes\nCN=system:node:former',
};
const certificate = (changed: object): Partial<Facts> => ({
  certificates: HEALTHY.certificates.map((each) => ({ ...each, ...changed })),
});
const node = (changed: object): Partial<Facts> => ({ nodes: HEALTHY.nodes.map((each) => ({ ...each, ...changed })) });

/** Check → fault, result, evidence, fix. At least one for every check. */
const FAULTS: readonly (readonly [id: string, fault: Partial<Facts>, result: Result, evidence: RegExp, fix: RegExp])[] =
  [
    [
      'memory-cgroup',
      { cgroups: { ...HEALTHY.cgroups, known: [{ name: 'memory', enabled: false }], v2: undefined } },
      'error',
      /disabled/,
      /cgroup_enable=memory cgroup_memory=1/,
    ],
    [
      'cgroup-layout',
      { cgroups: { ...HEALTHY.cgroups, v2: { mount: '/m', controllers: ['memory'] } } },
      'error',
      /cpu, pids/,
      /mount -t cgroup2/,
    ],
    ['kernel-features', { kernel: { ...HEALTHY.kernel, namespaces: ['mnt'] } }, 'error', /net/, /CONFIG_NAMESPACES/],
    [
      'kernel-modules',
      { kernel: { ...HEALTHY.kernel, modules: { vxlan: 'missing' } } },
      'warning',
      /vxlan/,
      /modprobe vxlan/,
    ],
    [
      'kernel-settings',
      { sysctls: { 'net.ipv4.ip_forward': '0' } },
      'error',
      /ip_forward is 0/,
      /^sysctl -w net\.ipv4\.ip_forward=1$/,
    ],
    [
      'security-denials',
      { denials: { source: 'log', lines: ['apparmor="DENIED" profile="runc" comm="conmon"'] } },
      'warning',
      /DENIED/,
      /^aa-complain runc$/,
    ],
    ['entropy', { entropy: { available: 1, generator: undefined } }, 'warning', /1 bits/, /rng-tools/],
    [
      'ports',
      {
        ports: {
          ...HEALTHY.ports,
          listeners: [{ protocol: 'tcp', address: '0.0.0.0', port: 8443, pid: 42, program: 'nginx', own: false }],
        },
      },
      'error',
      /tcp port 8443 for the API server is in use by nginx \(pid 42\)/,
      /^kill 42 .*ports\.api/,
    ],
    [
      'host-name',
      { host: { ...HEALTHY.host, nodeName: 'localhost' } },
      'warning',
      /default of hosts without a name/,
      /hostnamectl/,
    ],
    [
      'duplicate-name',
      {
        ring: [
          ...HEALTHY.ring,
          {
            name: 'pi-1',
            address: '10.0.0.9:7946',
            state: 'alive',
            self: false,
            version: '',
            clockOffsetMs: undefined,
          },
        ],
      },
      'error',
      /10\.0\.0\.9:7946/,
      /hostnamectl/,
    ],
    ['duplicate-name', node({ machineId: 'f'.repeat(32) }), 'error', /Ready on the machine f+/, /hostnamectl/],
    ['machine-id', { identity: { hostName: 'pi-1', machineId: '' } }, 'warning', /empty/, /machine-id-setup/],
    ['duplicate-machine-id', node({ name: 'pi-9' }), 'warning', /node pi-9/, /machine-id-setup/],
    [
      'name-resolution',
      { resolution: { ...HEALTHY.resolution, servers: [{ address: '10.0.0.53', problem: 'ETIMEOUT' }] } },
      'warning',
      /ETIMEOUT/,
      /^cp .* && grep -vwF 'nameserver 10\.0\.0\.53'/,
    ],
    [
      'default-route',
      { routes: [] },
      'warning',
      /no default route/,
      /node: \{ip: "10\.0\.0\.1"\}.* && systemctl restart hyperedge /,
    ],
    [
      'default-route',
      { routes: [], host: { ...HEALTHY.host, installed: false } },
      'warning',
      /no default route/,
      /node: \{ip: "10\.0\.0\.1"\}[^&]*60-node-ip\.yaml {4}# or/,
    ],
    [
      'default-route',
      { routes: [...HEALTHY.routes, { family: 4, link: 'wlan0', gateway: '10.1.0.1', metric: 100 }] },
      'warning',
      /eth0 and wlan0/,
      /^ip route add default via (10\.1\.0\.1 dev wlan0) metric 200 && ip route del default via \1 metric 100$/,
    ],
    [
      'mtu',
      { paths: HEALTHY.paths.map((each) => ({ ...each, whole: false })) },
      'error',
      /packets of 1500 bytes do not reach pi-2/,
      /^ping -M do -s 1472 /,
    ],
    [
      'duplicate-address',
      { conflicts: [{ address: '10.0.0.1', link: 'eth0', mac: '02:00:00:00:00:01' }] },
      'error',
      /02:00:00:00:00:01/,
      /ip addr/,
    ],
    ['pod-ranges', { host: { ...HEALTHY.host, nodeIp: '172.30.9.9' } }, 'error', /172\.30\.0\.0\/16/, /serviceCIDR/],
    [
      'firewall-forward',
      chain({ drops: [{ chain: 'DOCKER', handle: 1, text: 'x drop', conditional: true }] }),
      'error',
      /ip filter FORWARD has the policy drop, set by docker/,
      /^iptables -I DOCKER-USER -i hyper0 -j ACCEPT/,
    ],
    [
      'firewall-forward',
      { firewall: { ...chain({}).firewall, services: ['ufw'] } as Facts['firewall'] },
      'error',
      /set by ufw/,
      /ufw reload$/,
    ],
    [
      'firewall-forward',
      chain({
        policy: 'accept',
        drops: [{ chain: 'FORWARD', handle: 9, text: 'iifname "hyper0" drop', conditional: true }],
      }),
      'error',
      /the rule "iifname "hyper0" drop" in chain ip filter FORWARD/,
      /^nft delete rule ip filter FORWARD handle 9$/,
    ],
    [
      'firewall-input',
      chain({ hook: 'input', name: 'INPUT' }),
      'error',
      /accepts no packets to 8443\/tcp/,
      /tcp dport 8443 accept$/,
    ],
    ['clock-year', clock({ nowMs: 0 }), 'error', /1970-01-01/, /date -u -s/],
    ['clock-battery', clock({ clocks: [], synchronized: false }), 'warning', /no real-time clock/, /timesyncd/],
    ['clock-synchronized', clock({ synchronized: false }), 'warning', /1 peers compare/, /set-ntp true/],
    [
      'clock-skew',
      { ring: HEALTHY.ring.map((each) => ({ ...each, clockOffsetMs: 90_000 })) },
      'error',
      /90\.000 s ahead of its peers/,
      /date -u -s "2026-11-01T11:58:30Z"/,
    ],
    ['time-zone', { timeZone: { link: '/x', exists: false, database: true } }, 'warning', /\/x/, /^ln -sf/],
    [
      'disk-space',
      area({ freeBytes: 1000 }),
      'error',
      /\/ has 1000 B of 30\.0 GiB free/,
      /^hyperedge image remove --unused; .* du -xh/,
    ],
    [
      'disk-space',
      {
        areas: [
          ...HEALTHY.areas,
          ...HEALTHY.areas.map((each) => ({ ...each, directory: '/run', what: 'temporary files' })),
        ].map((each) => ({ ...each, freeBytes: 100 << 20 })),
      },
      'error',
      /\/ has 100 MiB/,
      /^hyperedge image remove/,
    ],
    ['disk-space', area({ problem: 'stat: no answer within 5 s' }), 'unknown', /no answer within 5 s/, /dmesg/],
    ['inodes', area({ freeInodes: 3 }), 'error', /3 of 1000000 inodes/, /--inodes/],
    ['file-system', area({ options: ['ro'] }), 'error', /read-only/, /remount,rw/],
    ['file-system', area({ type: 'vfat' }), 'error', /no owners/, /mkfs/],
    ['fsync', { fsync: { directory: '/d', medianMs: 400, worstMs: 900 } }, 'warning', /median 400\.0 ms/, /iostat/],
    [
      'flash-wear',
      { flash: HEALTHY.flash.map((each) => ({ ...each, smartPassed: false })) },
      'error',
      /SMART/,
      /smartctl/,
    ],
    ['write-rate', { writes: { upMs: 3_600_000, disks: HEALTHY.writes.disks } }, 'warning', /per hour/, /iotop/],
    [
      'journal-size',
      { journal: { ...HEALTHY.journal, bytes: 2 ** 32 } },
      'warning',
      /4\.0 GiB without a limit/,
      /SystemMaxUse=200M/,
    ],
    ['memory', { memory: { ...HEALTHY.memory, availableBytes: 1 } }, 'warning', /available/, /^ps /],
    [
      'swap',
      { memory: { ...HEALTHY.memory, swaps: [{ device: '/var/swap', bytes: 100, usedBytes: 90 }] } },
      'warning',
      /\/var\/swap/,
      /^swapoff/,
    ],
    [
      'cpu-frequency',
      {
        processor: {
          ...HEALTHY.processor,
          policies: [{ name: 'policy0', governor: 'powersave', limitKhz: 600_000, maxKhz: 1_500_000 }],
        },
      },
      'warning',
      /600 of 1500/,
      /scaling_max_freq/,
    ],
    ['thermal', { power: { throttled: 0b1000, alarm: false } }, 'warning', /throttles the processor now/, /fan/],
    ['under-voltage', { power: { throttled: 0x5_0000, alarm: false } }, 'warning', /since the boot/, /power supply/],
    [
      'bootstrap-file',
      { configuration: { file: '/b.yaml', problem: '/b.yaml:3: rolls: unknown' } },
      'error',
      /:3: rolls/,
      /config check/,
    ],
    ['programs', { programs: { missing: ['runc'], bundled: false } }, 'error', /runc/, /^apt-get install/],
    [
      'host-process',
      { hostProcess: { ...HEALTHY.hostProcess, problem: 'no answer' } },
      'error',
      /no answer/,
      /^systemctl start hyperedge/,
    ],
    [
      'control-plane',
      {
        hostProcess: {
          ...HEALTHY.hostProcess,
          components: [{ name: 'api', state: 'exited', restarts: 7, upMs: undefined }],
        },
      },
      'error',
      /api is exited after 7/,
      /^master-logs api api --tail 30$/,
    ],
    [
      'control-plane',
      { hostProcess: { ...HEALTHY.hostProcess, components: [] } },
      'error',
      /^api has no container$/,
      /^systemctl restart hyperedge$/,
    ],
    [
      'control-plane',
      {
        hostProcess: {
          ...HEALTHY.hostProcess,
          failures: [
            {
              operand: 'kube-apiserver',
              component: 'api',
              revision: 3,
              running: 2,
              error: 'master.env:1: not of the form NAME=value',
            },
          ],
        },
      },
      'warning',
      /^api: revision 3 failed and revision 2 runs: master\.env:1: not of the form NAME=value$/,
      /^hyperedge revisions rollback kube-apiserver 2 {4}# or .* revision 3 and run: hyperedge master-restart api$/,
    ],
    [
      'control-plane',
      {
        hostProcess: {
          ...HEALTHY.hostProcess,
          components: [
            { name: 'api', state: 'running', restarts: 4, upMs: 60_000 },
            { name: 'controllers', state: 'running', restarts: 9, upMs: 2 * 3_600_000 },
          ],
        },
      },
      'warning',
      /^api has restarted 4 times/,
      /^master-logs api api --tail 30$/,
    ],
    [
      'systemd-unit',
      unit({ active: 'failed', lastError: 'port in use' }),
      'error',
      /failed \(success\): port in use/,
      /systemctl start/,
    ],
    [
      'systemd-unit',
      unit({ enabled: 'disabled' }),
      'warning',
      /does not start at boot/,
      /^systemctl enable hyperedge$/,
    ],
    ['watchdog', unit({ watchdogMs: 0 }), 'warning', /no WatchdogSec/, /daemon-reload/],
    [
      'leftover-mounts',
      { leftovers: { mounts: ["/a b'c"], namespaces: [] } },
      'warning',
      /\/a b'c/,
      /^mount --make-rprivate '\/a b'\\''c' && umount -l '\/a b'\\''c'$/,
    ],
    [
      'leftover-namespaces',
      { leftovers: { mounts: [], namespaces: ['/n'] } },
      'warning',
      /\/n belongs/,
      /^umount \/n && rm \/n$/,
    ],
    [
      'private-files',
      { privateFiles: { problem: '/k: is readable by all; run chmod 600 /k' } },
      'error',
      /\/k/,
      /^chmod 600 \/k$/,
    ],
    [
      'certificates',
      certificate({ notAfterMs: NOW_MS - 1 }),
      'error',
      /admin\.crt expired on 2026-11-01/,
      /systemctl restart hyperedge/,
    ],
    [
      'certificates',
      { ...certificate(NODE_CLIENT), host: { ...HEALTHY.host, roles: ['node'] } },
      'error',
      /kubelet-client-current\.pem is of the node former, but this host has the name pi-1; the API server rejects/,
      /^hostnamectl set-hostname former && systemctl restart hyperedge/,
    ],
    ['certificates', certificate(NODE_CLIENT), 'error', /of the node former/, /^systemctl restart hyperedge/],
    [
      'certificate-chain',
      certificate({ chainProblem: 'its signature is not of the authority CN=x' }),
      'error',
      /signature/,
      /^mv /,
    ],
    [
      'kubeconfig',
      { kubeconfigs: HEALTHY.kubeconfigs.map((each) => ({ ...each, problem: 'ECONNREFUSED' })) },
      'error',
      /ECONNREFUSED/,
      /systemctl restart/,
    ],
    [
      'api',
      { api: { ...HEALTHY.api, problems: ['connect ECONNREFUSED'] } },
      'error',
      /ECONNREFUSED/,
      /master-logs api api --tail 30; hyperedge status/,
    ],
    [
      'kubelet',
      node({ ready: false, reason: 'no network' }),
      'error',
      /pi-1 is not Ready: no network/,
      /kubectl describe node pi-1/,
    ],
    [
      'nodes',
      { nodes: [...HEALTHY.nodes, ...(node({ name: 'pi-2', ready: false, reason: 'gone' }).nodes ?? [])] },
      'warning',
      /pi-2 is not Ready: gone/,
      /describe node pi-2/,
    ],
    ['store-quorum', { store: { ...HEALTHY.store, quorum: false } }, 'error', /no quorum/, /members recover/],
    ['store-lag', member({ lag: 5000 }), 'warning', /5000 entries behind/, /fsync/],
    ['store-alarms', member({ errors: ['NOSPACE'] }), 'error', /pi-1: NOSPACE/, /^hyperedge members compact/],
    ['store-size', member({ bytes: 2 * 1024 ** 3 }), 'warning', /100 %/, /^hyperedge members compact/],
    [
      'static-pods',
      { staticPods: { ...HEALTHY.staticPods, problems: [{ file: 'a.yaml', problem: 'static pod a.yaml: bad' }] } },
      'error',
      /^static pod a\.yaml: bad/,
      /^mv \/etc\/origin\/node\/pods\/a\.yaml \/etc\/origin\/node\/pods\/\.a\.yaml /,
    ],
    [
      'deploy-directory',
      { deploy: { ...HEALTHY.deploy, problems: [{ file: 'a.yaml', problem: 'document 1: bad' }] } },
      'error',
      /a\.yaml: document 1/,
      /^touch \/var\/lib\/origin\/manifests\/a\.yaml\.skip /,
    ],
    [
      'snapshots',
      { snapshots: { ...HEALTHY.snapshots, newestMs: NOW_MS - 3 * 86_400_000 } },
      'warning',
      /72 hours old/,
      /snapshot save/,
    ],
    [
      'snapshots',
      {
        snapshots: {
          ...HEALTHY.snapshots,
          damaged: [{ file: '/var/lib/origin/snapshots/etcd-7.db', problem: 'etcd-7.db is damaged or no snapshot' }],
        },
      },
      'warning',
      /^etcd-7\.db is damaged/,
      /^rm \/var\/lib\/origin\/snapshots\/etcd-7\.db; hyperedge snapshot save; hyperedge snapshot schedule --on$/,
    ],
    ['version-skew', node({ kubeletVersion: 'v1.37.0' }), 'error', /pi-1/, /hyperedge install/],
    [
      'update',
      { update: { ...HEALTHY.update, available: ['0.2.0'] } },
      'warning',
      /0\.2\.0 is available/,
      /--to=0\.2\.0/,
    ],
    [
      'update',
      { update: { ...HEALTHY.update, desired: '0.2.0', failing: 'Cluster operator dns is not available' } },
      'error',
      /^the update to 0\.2\.0 fails: Cluster operator dns is not available$/,
      /get clusteroperators$/,
    ],
    [
      'update',
      { update: { ...HEALTHY.update, desired: '0.1.0', failing: 'Cluster operator dns is not available' } },
      'error',
      /^Cluster operator dns is not available$/,
      /get clusteroperators$/,
    ],
    ['update', { update: { ...HEALTHY.update, damaged: 'r.json is damaged' } }, 'error', /r\.json/, /hyperedge-\*/],
    [
      'update',
      { update: { ...HEALTHY.update, former: { version: '0.0.9', cause: 'no API server responds' } } },
      'warning',
      /no API server responds; this may be a defect of 0\.1\.0/,
      /hyperedge bundle rollback/,
    ],
    [
      'pods',
      waiting('CrashLoopBackOff', 'exit 1'),
      'warning',
      /default\/web \(main\): CrashLoopBackOff/,
      /logs web -c main --previous; kubectl -n default delete pod web/,
    ],
    [
      'image-architecture',
      waiting('CrashLoopBackOff', 'exec format error'),
      'warning',
      /another architecture/,
      /image remove web:1 && hyperedge image pull web:1/,
    ],
    [
      'images',
      waiting('ImagePullBackOff', 'no such host'),
      'warning',
      /ImagePullBackOff: web:1/,
      /hyperedge image import/,
    ],
    [
      'registries',
      { registries: [{ registry: 'mirror.lab:5000', proxy: undefined, problem: 'self-signed certificate' }] },
      'warning',
      /mirror\.lab:5000/,
      /CA-FILE .* update-ca-certificates/,
    ],
    [
      'pod-dns',
      { podProbes: { ...HEALTHY.podProbes, dns: { server: 's', problem: 'ETIMEOUT' } } },
      'error',
      /ETIMEOUT/,
      /firewall-forward/,
    ],
    [
      'services',
      { podProbes: { ...HEALTHY.podProbes, service: { address: 's', problem: 'EHOSTUNREACH' } } },
      'error',
      /EHOSTUNREACH/,
      /^systemctl restart hyperedge/,
    ],
    [
      'pod-to-pod',
      { podProbes: { ...HEALTHY.podProbes, peers: [{ pod: 'a/b', address: '10.128.2.2', problem: 'no answer' }] } },
      'warning',
      /a\/b \(10\.128\.2\.2\)/,
      /networkpolicies/,
    ],
  ];

test('there are at least 40 checks with different identifiers, and a test provokes a fault for each check', () => {
  assert.ok(CHECKS.length >= 40, `${CHECKS.length} checks`);
  const ids = CHECKS.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  const provoked = new Set(FAULTS.map(([id]) => id));
  assert.deepEqual(
    ids.filter((id) => !provoked.has(id)),
    [],
  );
});

test('a healthy host has no findings', () => {
  const report = summarize(diagnose(CHECKS, gathered()), { host: 'pi-1', version: '1', time: 't' });
  assert.deepEqual(
    report.checks.filter(({ result }) => result !== 'ok'),
    [],
  );
  assert.equal(exitCodeOf(report), 0);
});

for (const [id, fault, result, evidence, fix] of FAULTS)
  test(`${id} reports ${evidence.source}`, () => {
    const [report] = diagnose(
      CHECKS.filter((each) => each.id === id),
      gathered(fault),
    );
    assert.equal(report?.result, result, JSON.stringify(report));
    const finding = report?.findings.find((each) => evidence.test(each.evidence));
    assert.ok(finding !== undefined, JSON.stringify(report));
    assert.match(finding.fix ?? '', fix);
  });

test('a fact that could not be gathered makes its checks unknown; a fact that does not apply skips its checks', () => {
  const facts = {
    ...gathered(),
    fsync: { state: 'failed', reason: 'no answer within 30 s' } as const,
    power: { state: 'absent', reason: 'no sensor' } as const,
  };
  const report = summarize(diagnose(CHECKS, facts), { host: 'pi-1', version: '1', time: 't' });
  const of = (id: string) => report.checks.find((each) => each.id === id);
  assert.equal(of('fsync')?.result, 'unknown');
  assert.equal(of('fsync')?.findings[0]?.evidence, 'no answer within 30 s');
  assert.equal(of('under-voltage')?.result, 'skipped');
  assert.equal(exitCodeOf(report), 3);
});

test('findings escape control characters of texts from the machine and limit their length', () => {
  const problem = `\u001B[2J\u202E${'x'.repeat(100_000)}\nrm -rf`;
  const checks = diagnose(CHECKS, gathered({ configuration: { file: '/b', problem } }));
  const evidence = checks.find(({ id }) => id === 'bootstrap-file')?.findings[0]?.evidence ?? '';
  assert.doesNotMatch(evidence, /\p{C}/u);
  assert.ok(evidence.length < 1000);
  const many = Array.from({ length: 5000 }, (_, at) => `/m${at}`);
  const [mounts] = diagnose(
    CHECKS.filter(({ id }) => id === 'leftover-mounts'),
    gathered({ leftovers: { mounts: many, namespaces: [] } }),
  );
  assert.ok((mounts?.findings.length ?? 0) < 30);
});

test('the fix for the host name of an installed master also deletes its former Node', () => {
  const fixOf = (change: Partial<typeof HEALTHY.host>): string | undefined => {
    const checks = CHECKS.filter(({ id }) => id === 'host-name');
    return diagnose(checks, gathered({ host: { ...HEALTHY.host, nodeName: 'localhost', ...change } }))[0]?.findings[0]
      ?.fix;
  };
  const installed = fixOf({ root: '/', installed: true, roles: ['master', 'node'] });
  assert.match(
    installed ?? '',
    /set-hostname .* && systemctl restart hyperedge && timeout 300 .* Ready .* && kubectl delete node localhost$/,
  );
  assert.doesNotMatch(fixOf({ installed: false }) ?? '', /kubectl/);
  assert.match(fixOf({ installed: true, roles: ['node'] }) ?? '', /set-hostname .* reset this host and join it again/);
  assert.doesNotMatch(fixOf({ installed: true, roles: ['master'], nodeIpIsBridge: true }) ?? '', /kubectl/);
});

test('pods of one workload that fail together are rolled back once', () => {
  const owner = { kind: 'deployment', name: 'web', hasEarlier: true };
  const waiting = [{ container: 'main', reason: 'CrashLoopBackOff', message: 'exit 1', image: 'web:1' }];
  const pods = ['web-1', 'web-2'].map((name) => ({ namespace: 'default', name, node: 'pi-1', owner, waiting }));
  const [report] = diagnose(
    CHECKS.filter(({ id }) => id === 'pods'),
    gathered({ pods }),
  );
  const fixes = report?.findings.map(({ fix = '' }) => fix) ?? [];
  assert.equal(fixes.length, 2);
  assert.match(fixes[0] ?? '', /logs web-1 .*; .*rollout undo deployment\/web$/);
  assert.match(fixes[1] ?? '', /logs web-2 /);
  assert.doesNotMatch(fixes[1] ?? '', /rollout undo/);
});

test('docs/doctor.md explains every check', () => {
  const page = readFileSync(new URL('../../../docs/doctor.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');
  for (const { id, explanation, preflight } of CHECKS) {
    const entry = `* \`${id}\`${preflight ? ' (preflight)' : ''}: ${explanation}`;
    assert.ok(page.includes(entry), `docs/doctor.md lacks: ${entry}`);
  }
});
