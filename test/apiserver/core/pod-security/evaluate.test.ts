/** The pod security standards, check by check: upstream's messages for violations, and pods without violations. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodSpec } from '../../../../src/api/generated/core/v1.ts';
import type { PodLike } from '../../../../src/apiserver/core/pod-security/check.ts';
import { detailsText, evaluatePod } from '../../../../src/apiserver/core/pod-security/evaluate.ts';
import { ExistingPods } from '../../../../src/apiserver/core/pod-security/existing.ts';
import {
  type LevelVersion,
  PRIVILEGED_POLICY,
  parseVersion,
  policyOf,
} from '../../../../src/apiserver/core/pod-security/policy.ts';

type Loose = Record<string, unknown>;
const container = (name: string, more: Loose = {}): Loose => ({ name, image: 'i', ...more });
const pod = (spec: Loose, annotations: Record<string, string> = {}): PodLike => ({
  annotations,
  spec: { containers: [container('c')], ...spec } as unknown as PodSpec,
});
const secured = (securityContext: Loose, name = 'c'): Loose => container(name, { securityContext });
const HARDENED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};
const hardened = (more: Loose = {}, name = 'c'): Loose => secured({ ...HARDENED, ...more }, name);
const says = (level: LevelVersion['level'], version: string, of: PodLike): string =>
  detailsText(evaluatePod({ level, version: parseVersion(version) ?? 'latest' }, of));

const BASELINE: readonly [what: string, version: string, pod: PodLike, says: string][] = [
  ['permits an ordinary pod', 'latest', pod({}), ''],
  [
    'forbids host namespaces',
    'latest',
    pod({ hostIPC: true, hostNetwork: true, hostPID: true }),
    'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
  ],
  [
    'forbids hostPath volumes',
    'latest',
    pod({
      volumes: [
        { name: 'a', hostPath: { path: '/' } },
        { name: 'b', emptyDir: {} },
        { name: 'c', hostPath: { path: '/x' } },
      ],
    }),
    'hostPath volumes (volumes "a", "c")',
  ],
  [
    'forbids host ports of init, main and ephemeral containers',
    'latest',
    pod({
      containers: [container('c', { ports: [{ hostPort: 80 }, { hostPort: 0 }, { containerPort: 1 }] })],
      initContainers: [container('i', { ports: [{ hostPort: 443 }] })],
      ephemeralContainers: [container('e', { ports: [{ hostPort: 80 }] })],
    }),
    'hostPort (containers "i", "c", "e" use hostPorts 443, 80)',
  ],
  [
    'reports a single host port in the singular',
    'latest',
    pod({ containers: [container('c', { ports: [{ hostPort: 80 }] })] }),
    'hostPort (container "c" uses hostPort 80)',
  ],
  [
    'forbids privileged containers',
    'latest',
    pod({ containers: [secured({ privileged: true }), secured({ privileged: false }, 'd')] }),
    'privileged (container "c" must not set securityContext.privileged=true)',
  ],
  [
    'forbids non-default capabilities',
    'latest',
    pod({
      containers: [
        secured({ capabilities: { add: ['SYS_ADMIN', 'CHOWN', 'NET_RAW'] } }),
        secured({ capabilities: { add: ['CHOWN'] } }, 'd'),
      ],
    }),
    'non-default capabilities (container "c" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)',
  ],
  [
    'forbids unmasked proc mounts',
    'v1.30',
    pod({ hostUsers: false, containers: [secured({ procMount: 'Unmasked' })] }),
    'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
  ],
  [
    'permits unmasked proc mounts in a user namespace',
    'v1.35',
    pod({ hostUsers: false, containers: [secured({ procMount: 'Unmasked' })] }),
    '',
  ],
  [
    'forbids SELinux users, roles and unknown types',
    'latest',
    pod({
      securityContext: { seLinuxOptions: { type: 'spc_t' } },
      containers: [secured({ seLinuxOptions: { user: 'u', role: 'r', type: 'container_t' } })],
    }),
    'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)',
  ],
  [
    'forbids the SELinux type container_engine_t before 1.31',
    'v1.30',
    pod({ securityContext: { seLinuxOptions: { type: 'container_engine_t' } } }),
    'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
  ],
  [
    'permits the SELinux type container_engine_t',
    'v1.31',
    pod({ securityContext: { seLinuxOptions: { type: 'container_engine_t' } } }),
    '',
  ],
  [
    'forbids the seccomp profile Unconfined',
    'latest',
    pod({
      securityContext: { seccompProfile: { type: 'Unconfined' } },
      containers: [secured({ seccompProfile: { type: 'Unconfined' } }), secured({}, 'd')],
    }),
    'seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
  [
    'evaluates seccomp annotations before 1.19',
    'v1.18',
    pod(
      {},
      {
        'container.seccomp.security.alpha.kubernetes.io/c': 'unconfined',
        'seccomp.security.alpha.kubernetes.io/pod': 'localhost/x',
      },
    ),
    'seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/c="unconfined")',
  ],
  [
    'ignores seccomp annotations since 1.19',
    'v1.19',
    pod({}, { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' }),
    '',
  ],
  [
    'forbids unconfined AppArmor profiles of pods, containers and annotations',
    'latest',
    pod(
      {
        securityContext: { appArmorProfile: { type: 'Unconfined' } },
        containers: [secured({ appArmorProfile: { type: 'Localhost' } })],
      },
      { 'container.apparmor.security.beta.kubernetes.io/c': 'unconfined' },
    ),
    'forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/c=\\"unconfined\\"")',
  ],
  [
    'forbids sysctls that are not safe yet',
    'v1.26',
    pod({ securityContext: { sysctls: [{ name: 'kernel.msgmax' }, { name: 'net.ipv4.ip_local_reserved_ports' }] } }),
    'forbidden sysctls (kernel.msgmax, net.ipv4.ip_local_reserved_ports)',
  ],
  [
    'permits the safe sysctls of 1.27',
    'v1.27',
    pod({ securityContext: { sysctls: [{ name: 'net.ipv4.ip_local_reserved_ports' }] } }),
    '',
  ],
  [
    'forbids a safe sysctl of 1.29 before 1.29',
    'v1.28',
    pod({ securityContext: { sysctls: [{ name: 'net.ipv4.tcp_fin_timeout' }] } }),
    'forbidden sysctls (net.ipv4.tcp_fin_timeout)',
  ],
  [
    'permits the safe sysctls of 1.29 only',
    'v1.29',
    pod({ securityContext: { sysctls: [{ name: 'net.ipv4.tcp_fin_timeout' }, { name: 'net.ipv4.tcp_rmem' }] } }),
    'forbidden sysctls (net.ipv4.tcp_rmem)',
  ],
  [
    'permits the safe sysctls of 1.32',
    'v1.32',
    pod({ securityContext: { sysctls: [{ name: 'net.ipv4.tcp_rmem' }] } }),
    '',
  ],
  [
    'forbids host processes on Windows',
    'latest',
    pod({ securityContext: { windowsOptions: { hostProcess: true } } }),
    'hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
  ],
  [
    'forbids host fields of probes and lifecycle hooks',
    'v1.34',
    pod({
      containers: [
        container('c', {
          livenessProbe: { httpGet: { host: '127.0.0.1', port: 1 } },
          lifecycle: { preStop: { tcpSocket: { host: '10.0.0.1', port: 1 } } },
        }),
      ],
    }),
    'probe or lifecycle host (container "c" uses probe or lifecycle hosts "10.0.0.1", "127.0.0.1")',
  ],
  [
    'ignores host fields of probes before 1.34',
    'v1.33',
    pod({ containers: [container('c', { livenessProbe: { httpGet: { host: 'x' } } })] }),
    '',
  ],
];

const RESTRICTED: readonly [what: string, version: string, pod: PodLike, says: string][] = [
  ['permits a hardened pod', 'latest', pod({ containers: [hardened()] }), ''],
  [
    'reports every missing setting of an ordinary pod',
    'latest',
    pod({ containers: [container('c'), container('d')] }),
    'allowPrivilegeEscalation != false (containers "c", "d" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "c", "d" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "c", "d" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "c", "d" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  [
    'reports violations of baseline first, and no violation twice',
    'latest',
    pod({
      hostNetwork: true,
      volumes: [{ name: 'v', hostPath: { path: '/' } }],
      containers: [hardened({ capabilities: { drop: ['ALL'], add: ['SYS_ADMIN', 'NET_BIND_SERVICE'] } })],
    }),
    'host namespaces (hostNetwork=true), unrestricted capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add), restricted volume types (volume "v" uses restricted volume type "hostPath")',
  ],
  [
    'forbids inline volumes of restricted types',
    'latest',
    pod({
      volumes: [
        { name: 'a', nfs: {} },
        { name: 'b', iscsi: {} },
        { name: 'c', csi: {} },
        { name: 'd', somethingNew: {} },
      ],
      containers: [hardened()],
    }),
    'restricted volume types (volumes "a", "b", "d" use restricted volume types "iscsi", "nfs", "unknown")',
  ],
  [
    'forbids an explicit user 0 and runAsNonRoot=false',
    'latest',
    pod({ securityContext: { runAsNonRoot: false, runAsUser: 0 }, containers: [hardened({ runAsUser: 0 })] }),
    'runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod and container "c" must not set runAsUser=0)',
  ],
  [
    'permits root in a user namespace',
    'v1.35',
    pod({ hostUsers: false, containers: [hardened({ runAsNonRoot: false, runAsUser: 0 })] }),
    '',
  ],
  [
    'forbids root in a user namespace before 1.35',
    'v1.34',
    pod({ hostUsers: false, containers: [hardened({ runAsUser: 0 })] }),
    'runAsUser=0 (container "c" must not set runAsUser=0)',
  ],
  [
    'forbids unmasked proc mounts in a user namespace',
    'v1.35',
    pod({ hostUsers: false, containers: [hardened({ procMount: 'Unmasked' })] }),
    'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
  ],
  ['permits runAsUser=0 before 1.23', 'v1.22', pod({ containers: [hardened({ runAsUser: 0 })] }), ''],
  [
    'permits a Windows pod without Linux settings',
    'v1.25',
    pod({ os: { name: 'windows' }, containers: [secured({ runAsNonRoot: true })] }),
    '',
  ],
  [
    'requires Linux settings of a Windows pod before 1.25',
    'v1.24',
    pod({ os: { name: 'windows' }, containers: [hardened({ capabilities: {} })] }),
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"])',
  ],
  [
    'forbids containers that weaken settings of the pod',
    'latest',
    pod({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'Localhost' } },
      containers: [
        secured({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }),
        hardened({ runAsNonRoot: false, seccompProfile: { type: 'Unconfined' } }, 'd'),
      ],
    }),
    'runAsNonRoot != true (container "d" must not set securityContext.runAsNonRoot=false), seccompProfile (container "d" must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
  ['evaluates the oldest version', 'v1.0', pod({ containers: [secured({ runAsNonRoot: true })] }), ''],
  ['evaluates a future version like the latest', 'v1.99', pod({ containers: [hardened()] }), ''],
];

describe('pod security standards', () => {
  for (const [what, version, of, expected] of BASELINE) {
    it(`baseline:${version}: ${what}`, () => assert.equal(says('baseline', version, of), expected));
  }
  for (const [what, version, of, expected] of RESTRICTED) {
    it(`restricted:${version}: ${what}`, () => assert.equal(says('restricted', version, of), expected));
  }

  it('a pod that complies with the restricted profile also complies with baseline', () => {
    for (const [, version, of, expected] of RESTRICTED) {
      if (expected === '') assert.equal(says('baseline', version, of), '');
      assert.equal(says('privileged', version, of), '');
    }
  });

  it('an invalid level label counts as restricted for enforce, and as privileged for audit and warn', () => {
    const label = (mode: string): string => `pod-security.kubernetes.io/${mode}`;
    const read = policyOf(
      {
        [label('enforce')]: 'strict',
        [label('enforce-version')]: 'v1.x',
        [label('audit')]: '',
        [label('warn')]: 'baseline',
        [label('warn-version')]: 'v1.30',
      },
      PRIVILEGED_POLICY,
    );
    assert.deepEqual(read.policy, {
      enforce: { level: 'restricted', version: 'latest' },
      audit: { level: 'privileged', version: 'latest' },
      warn: { level: 'baseline', version: 30 },
    });
    assert.deepEqual(
      read.problems.map(({ label: name, message }) => `${name}: ${message}`),
      [
        `${label('enforce')}: must be one of privileged, baseline, restricted`,
        `${label('enforce-version')}: must be "latest" or "v1.x"`,
        `${label('audit')}: must be one of privileged, baseline, restricted`,
      ],
    );
    for (const bad of ['v1', 'v2.0', 'v1.01', '1.30', 'Latest', 'v1.-1', 'v1.9999999']) {
      assert.equal(parseVersion(bad), undefined, bad);
    }
  });

  it('pods with the same violations share one warning with the name of the first pod', () => {
    const review = new ExistingPods({ level: 'baseline', version: 'latest' });
    for (const name of ['b', 'a', 'c']) review.check(name, pod({ hostPID: true }));
    for (const name of ['z', 'y']) review.check(name, pod({ containers: [secured({ privileged: true })] }));
    review.check('x', pod({ hostPID: true, containers: [secured({ privileged: true })] }));
    review.check('fine', pod({}));
    assert.deepEqual(review.warnings('here', 9), [
      'new PodSecurity enforce level only checked against the first 7 of 9 existing pods',
      'existing pods in namespace "here" violate the new PodSecurity enforce level "baseline:latest"',
      'a (and 2 other pods): host namespaces',
      'x: host namespaces, privileged',
      'y (and 1 other pod): privileged',
    ]);
  });
});
