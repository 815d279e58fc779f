/** Tests the default security context constraints pod by pod: their defaults and rejections. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import {
  type AdmissionDecision,
  admitPod,
  errorsText,
  isSameToConstraints,
  type Scope,
} from '../../../../src/openshift/security-context-constraints/core/admit.ts';
import { DEFAULT_CONSTRAINTS } from '../../../../src/openshift/security-context-constraints/core/defaults.ts';
import { parseBlock } from '../../../../src/openshift/security-context-constraints/core/namespace-values.ts';
import { inOrder } from '../../../../src/openshift/security-context-constraints/core/order.ts';
import { securityContextConstraints } from '../../../../src/openshift/security-context-constraints/kinds/securitycontextconstraints/index.ts';
import type { SecurityContextConstraints } from '../../../../src/openshift/security-context-constraints/kinds/securitycontextconstraints/types.ts';

type Loose = Record<string, unknown>;

const NAMESPACE = {
  name: 'shop',
  annotations: {
    'openshift.io/sa.scc.uid-range': '1000660000/10000',
    'openshift.io/sa.scc.supplemental-groups': '1000660000/10000',
    'openshift.io/sa.scc.mcs': 's0:c26,c5',
  },
};
const LEVEL = { level: 's0:c26,c5' };
const MIN = 1_000_660_000;

const pod = (spec: Loose = {}, container: Loose = {}, annotations: Record<string, string> = {}): Pod =>
  ({ metadata: { name: 'p', annotations }, spec: { containers: [{ name: 'c', ...container }], ...spec } }) as Pod;
const secured = (securityContext: Loose, spec: Loose = {}): Pod => pod(spec, { securityContext });
const volume = (source: Loose): Pod => pod({ volumes: [{ name: 'v', ...source }] });

function stored(change: Loose = {}, name = 'custom', from = 'restricted'): SecurityContextConstraints {
  const base = DEFAULT_CONSTRAINTS.find((each) => each.metadata?.name === from);
  const scc = structuredClone({ ...base, metadata: { name }, ...change }) as SecurityContextConstraints;
  securityContextConstraints.setDefaults?.(scc);
  return scc;
}

const named = (name: string): SecurityContextConstraints => stored({}, name, name);

interface Candidate {
  readonly scc: SecurityContextConstraints;
  readonly isUsable: boolean;
}

function tried(
  of: Pod,
  candidates: readonly Candidate[],
  namespace: typeof NAMESPACE,
  scope: Scope,
  hint = '',
): AdmissionDecision {
  const constraints = candidates.map(({ scc }) => scc);
  const trial = admitPod(of, constraints, scope, hint);
  let step = trial.next();
  while (step.done !== true) {
    const { value } = step;
    step = trial.next(candidates.find(({ scc }) => scc === value)?.isUsable === true ? namespace : undefined);
  }
  return step.value;
}

function admit(of: Pod, usable: readonly SecurityContextConstraints[], namespace = NAMESPACE) {
  const candidates = inOrder(usable).map((scc) => ({ scc, isUsable: true }));
  return tried(of, candidates, namespace, 'pod');
}

function refusal(of: Pod, scc: SecurityContextConstraints): string {
  const decision = admit(of, [scc]);
  return 'errors' in decision ? errorsText(decision.errors) : '';
}

describe('order of security context constraints', () => {
  it('orders the built-in constraints by priority, restrictiveness and name', () => {
    const names = inOrder(DEFAULT_CONSTRAINTS.map((each) => named(each.metadata?.name ?? ''))).map(
      ({ metadata }) => metadata?.name,
    );
    assert.deepEqual(names, [
      'anyuid',
      'restricted-v2',
      'restricted',
      'nonroot-v2',
      'nonroot',
      'hostmount-anyuid',
      'hostnetwork-v2',
      'hostnetwork',
      'hostaccess',
      'privileged',
    ]);
  });

  it('orders constraints with a higher priority first, and equally restrictive ones by name', () => {
    const order = inOrder([stored({}, 'b'), stored({}, 'a'), stored({ priority: 1 }, 'z')]);
    assert.deepEqual(
      order.map(({ metadata }) => metadata?.name),
      ['z', 'a', 'b'],
    );
  });
});

describe('defaults of the built-in security context constraints', () => {
  const filled = (of: Pod, name: string): Pod => {
    const decision = admit(of, [named(name)]);
    assert.ok('pod' in decision, 'errors' in decision ? errorsText(decision.errors) : '');
    return decision.pod;
  };

  it('restricted-v2 sets user, groups, SELinux level and seccomp profile, and drops all capabilities', () => {
    const original = pod();
    const { spec } = filled(original, 'restricted-v2');
    assert.deepEqual(spec?.securityContext, {
      seLinuxOptions: LEVEL,
      fsGroup: MIN,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    assert.deepEqual(spec?.containers[0]?.securityContext, {
      runAsUser: MIN,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
      allowPrivilegeEscalation: false,
    });
    assert.deepEqual(original, pod(), 'the pod itself is not changed');
  });

  it('restricted sets the same values as restricted-v2, but drops only four capabilities and allows privilege escalation', () => {
    assert.deepEqual(filled(pod(), 'restricted').spec?.containers[0]?.securityContext, {
      runAsUser: MIN,
      runAsNonRoot: true,
      capabilities: { drop: ['KILL', 'MKNOD', 'SETGID', 'SETUID'] },
    });
  });

  it('hostnetwork sets the supplemental groups of the namespace', () => {
    assert.deepEqual(filled(pod({ hostNetwork: true }), 'hostnetwork').spec?.securityContext, {
      seLinuxOptions: LEVEL,
      fsGroup: MIN,
      supplementalGroups: [MIN],
    });
  });

  it('nonroot-v2 keeps the user of the image and sets runAsNonRoot', () => {
    assert.deepEqual(filled(pod(), 'nonroot-v2').spec?.containers[0]?.securityContext, {
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
      allowPrivilegeEscalation: false,
    });
  });

  it('anyuid admits the user root, and privileged changes nothing', () => {
    const root = secured({ runAsUser: 0 });
    assert.equal(filled(root, 'anyuid').spec?.containers[0]?.securityContext?.runAsUser, 0);
    const all = secured({ privileged: true, capabilities: { add: ['SYS_ADMIN'] }, runAsUser: 0 }, { hostPID: true });
    assert.deepEqual(filled(all, 'privileged').spec, all.spec);
  });

  it('security context constraints keep values that the pod or container already sets', () => {
    const of = pod({ securityContext: { runAsUser: MIN + 5, fsGroup: MIN } }, { securityContext: {} });
    const { spec } = filled(of, 'restricted-v2');
    assert.equal(spec?.containers[0]?.securityContext?.runAsUser, undefined);
    assert.equal(spec?.securityContext?.runAsUser, MIN + 5);
  });

  it('security context constraints set their defaults in init containers and ephemeral containers as well', () => {
    const of = pod({ initContainers: [{ name: 'i' }], ephemeralContainers: [{ name: 'e' }] });
    const { spec } = filled(of, 'restricted-v2');
    assert.equal(spec?.initContainers?.[0]?.securityContext?.runAsUser, MIN);
    assert.equal(spec?.ephemeralContainers?.[0]?.securityContext?.runAsUser, MIN);
  });

  it('converts an old seccomp annotation to the seccompProfile field', () => {
    const key = 'seccomp.security.alpha.kubernetes.io/pod';
    const { spec } = filled(pod({}, {}, { [key]: 'docker/default' }), 'restricted-v2');
    assert.deepEqual(spec?.securityContext?.seccompProfile, { type: 'RuntimeDefault' });
  });
});

const CASES: readonly [what: string, pod: Pod, scc: SecurityContextConstraints, says: string][] = [
  [
    'a container that runs as root',
    secured({ runAsUser: 0 }),
    named('restricted-v2'),
    `.containers[0].runAsUser: Invalid value: 0: must be in the ranges: [${MIN}, ${MIN + 9999}]`,
  ],
  [
    'a pod that runs as root',
    pod({ securityContext: { runAsUser: 0 } }),
    named('restricted-v2'),
    '.containers[0].runAsUser: Invalid value: 0: must be in the ranges',
  ],
  [
    'a user ID above the range of the namespace',
    secured({ runAsUser: MIN + 10_000 }),
    named('restricted'),
    'must be in the ranges',
  ],
  [
    'a user ID other than the required one',
    secured({ runAsUser: 6 }),
    stored({ runAsUser: { type: 'MustRunAs', uid: 5 } }),
    '.containers[0].runAsUser: Invalid value: 6: must be: 5',
  ],
  [
    'a container that runs as root despite MustRunAsNonRoot',
    secured({ runAsUser: 0 }),
    named('nonroot'),
    '.containers[0].runAsUser: Invalid value: 0: running with the root UID is forbidden',
  ],
  [
    'a container with runAsNonRoot false',
    secured({ runAsNonRoot: false }),
    named('nonroot'),
    '.containers[0].runAsNonRoot: Invalid value: false: must be true',
  ],
  [
    'a privileged container',
    secured({ privileged: true }),
    named('anyuid'),
    '.containers[0].privileged: Invalid value: true: Privileged containers are not allowed',
  ],
  [
    'a privileged init container',
    pod({ initContainers: [{ name: 'i', securityContext: { privileged: true } }] }),
    named('anyuid'),
    '.initContainers[0].privileged: Invalid value: true',
  ],
  [
    'a privileged ephemeral container',
    pod({ ephemeralContainers: [{ name: 'e', securityContext: { privileged: true } }] }),
    named('anyuid'),
    '.ephemeralContainers[0].privileged: Invalid value: true',
  ],
  [
    'privilege escalation',
    secured({ allowPrivilegeEscalation: true }),
    named('restricted-v2'),
    '.containers[0].allowPrivilegeEscalation: Invalid value: true: Allowing privilege escalation for containers is not allowed',
  ],
  [
    'a writable root file system',
    secured({ readOnlyRootFilesystem: false }),
    stored({ readOnlyRootFilesystem: true }),
    'ReadOnlyRootFilesystem must be set to true',
  ],
  [
    'an added capability',
    secured({ capabilities: { add: ['SYS_ADMIN'] } }),
    named('restricted-v2'),
    '.containers[0].capabilities.add: Invalid value: "SYS_ADMIN": capability may not be added',
  ],
  ['an allowed capability', secured({ capabilities: { add: ['NET_BIND_SERVICE'] } }), named('restricted-v2'), ''],
  [
    'a host port',
    pod({}, { ports: [{ containerPort: 80, hostPort: 80 }] }),
    named('anyuid'),
    '.containers[0].hostPort: Invalid value: 80: Host ports are not allowed to be used',
  ],
  [
    'the network of the host',
    pod({ hostNetwork: true }),
    named('restricted'),
    '.spec.securityContext.hostNetwork: Invalid value: true: Host network is not allowed to be used',
  ],
  [
    'the PID namespace of the host',
    pod({ hostPID: true }),
    named('anyuid'),
    '.spec.securityContext.hostPID: Invalid value: true: Host PID is not allowed to be used',
  ],
  [
    'the IPC namespace of the host',
    pod({ hostIPC: true }),
    named('anyuid'),
    '.spec.securityContext.hostIPC: Invalid value: true: Host IPC is not allowed to be used',
  ],
  [
    'a hostPath volume',
    volume({ hostPath: { path: '/' } }),
    named('anyuid'),
    '.spec.volumes[0]: Invalid value: "hostPath": hostPath volumes are not allowed to be used',
  ],
  ['an allowed hostPath volume', volume({ hostPath: { path: '/' } }), named('hostmount-anyuid'), ''],
  ['a volume without a source', volume({}), named('restricted-v2'), ''],
  [
    'an NFS volume',
    volume({ nfs: { server: 's', path: '/' } }),
    named('restricted'),
    'nfs volumes are not allowed to be used',
  ],
  [
    'an emptyDir volume if no volumes are allowed',
    volume({ emptyDir: {} }),
    stored({ volumes: ['none'] }),
    'emptyDir volumes are not allowed to be used',
  ],
  [
    'a hostPath volume with volumes [*] but without allowHostDirVolumePlugin',
    volume({ hostPath: { path: '/' } }),
    stored({ volumes: ['*'] }),
    'hostPath volumes are not allowed to be used',
  ],
  [
    'a FlexVolume driver that is not listed',
    volume({ flexVolume: { driver: 'a/b' } }),
    stored({ volumes: ['flexVolume'], allowedFlexVolumes: [{ driver: 'a/c' }] }),
    '.spec.volumes[0].driver: Invalid value: "a/b": Flexvolume driver is not allowed to be used',
  ],
  [
    'a service account token volume if secret volumes are allowed',
    volume({
      projected: { sources: [{ serviceAccountToken: { path: 't' } }, { configMap: { name: 'kube-root-ca.crt' } }] },
    }),
    stored({ volumes: ['secret'] }),
    '',
  ],
  [
    'a projected secret if only secret volumes are allowed',
    volume({ projected: { sources: [{ secret: { name: 'x' } }] } }),
    stored({ volumes: ['configMap', 'secret'] }),
    'projected volumes are not allowed to be used',
  ],
  [
    'an fsGroup outside of the range',
    pod({ securityContext: { fsGroup: 5 } }),
    named('restricted'),
    '.spec.securityContext.fsGroup: Invalid value: []int64{5}: 5 is not an allowed group',
  ],
  [
    'the second group of the range as fsGroup',
    pod({ securityContext: { fsGroup: MIN + 1 } }),
    named('restricted'),
    'is not an allowed group',
  ],
  [
    'a supplemental group outside of the range',
    pod({ securityContext: { supplementalGroups: [MIN + 7, 0] } }),
    stored({ supplementalGroups: { type: 'MustRunAs' } }),
    '.spec.securityContext.supplementalGroups: Invalid value: []int64{1000660007, 0}: 0 is not an allowed group',
  ],
  [
    'another SELinux level',
    pod({ securityContext: { seLinuxOptions: { level: 's0:c1,c2' } } }),
    named('anyuid'),
    '.spec.securityContext.seLinuxOptions.level: Invalid value: "s0:c1,c2": must be s0:c26,c5',
  ],
  [
    'the same SELinux level with categories in another order',
    pod({ securityContext: { seLinuxOptions: { level: 's0:c5,c26' } } }),
    named('anyuid'),
    '',
  ],
  [
    'another SELinux type',
    secured({ seLinuxOptions: { ...LEVEL, type: 'spc_t' } }),
    named('anyuid'),
    '.containers[0].seLinuxOptions.type: Invalid value: "spc_t": must be ',
  ],
  [
    'an unconfined seccomp profile',
    pod({ securityContext: { seccompProfile: { type: 'Unconfined' } } }),
    named('restricted-v2'),
    'unconfined is not an allowed seccomp profile. Valid values are [runtime/default]',
  ],
  [
    'an unconfined seccomp profile set by annotation',
    pod({}, {}, { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' }),
    named('restricted-v2'),
    'unconfined is not an allowed seccomp profile',
  ],
  [
    'an unconfined seccomp profile of a container',
    secured({ seccompProfile: { type: 'Unconfined' } }),
    named('restricted-v2'),
    'unconfined is not an allowed seccomp profile',
  ],
  [
    'a seccomp profile if none may be set',
    secured({ seccompProfile: { type: 'RuntimeDefault' } }),
    named('anyuid'),
    'seccomp may not be set',
  ],
  [
    'a safe sysctl',
    pod({ securityContext: { sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] } }),
    named('restricted-v2'),
    '',
  ],
  [
    'an unsafe sysctl',
    pod({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
    named('restricted-v2'),
    '.spec.securityContext.sysctls[0]: Forbidden: unsafe sysctl "kernel.msgmax" is not allowed',
  ],
  [
    'an allowed unsafe sysctl',
    pod({ securityContext: { sysctls: [{ name: 'kernel/msgmax', value: '1' }] } }),
    stored({ allowedUnsafeSysctls: ['kernel.msg*'] }),
    '',
  ],
  [
    'a forbidden safe sysctl',
    pod({ securityContext: { sysctls: [{ name: 'net/ipv4/tcp_syncookies', value: '1' }] } }),
    stored({ forbiddenSysctls: ['net.*'] }),
    'sysctl "net/ipv4/tcp_syncookies" is not allowed',
  ],
];

describe('validation by security context constraints', () => {
  for (const [what, of, scc, expected] of CASES)
    it(`the constraints ${scc.metadata?.name} ${expected === '' ? 'admit' : 'reject'} ${what}`, () => {
      const message = refusal(of, scc);
      if (expected === '') assert.equal(message, '');
      else assert.ok(message.startsWith(`provider ${scc.metadata?.name}: .`) || message.startsWith('['), message);
      assert.ok(message.includes(expected), message);
    });
});

describe('selection of security context constraints', () => {
  const all = DEFAULT_CONSTRAINTS.map((each) => named(each.metadata?.name ?? ''));
  const candidates = (...usable: string[]) =>
    inOrder(all).map((scc) => ({ scc, isUsable: usable.includes(scc.metadata?.name ?? '') }));

  it('selects the first security context constraints that the user may use and that admit the pod', () => {
    const chosen = (of: Pod, ...usable: string[]) => {
      const decision = tried(of, candidates(...usable), NAMESPACE, 'pod');
      return 'name' in decision ? decision.name : undefined;
    };
    assert.equal(chosen(pod(), 'restricted-v2', 'privileged'), 'restricted-v2');
    assert.equal(chosen(secured({ runAsUser: 0 }), 'restricted-v2', 'privileged'), 'privileged');
    assert.equal(chosen(pod(), 'restricted-v2', 'anyuid', 'privileged'), 'anyuid');
    assert.equal(chosen(secured({ runAsUser: 0 }), 'restricted-v2'), undefined);
  });

  it('the rejection of a pod lists every security context constraint that was tried', () => {
    const decision = tried(secured({ privileged: true }), candidates('restricted-v2'), NAMESPACE, 'pod');
    assert.ok('errors' in decision);
    const text = errorsText(decision.errors);
    assert.match(
      text,
      /^\[provider "anyuid": Forbidden: not usable by user or serviceaccount, provider restricted-v2: /,
    );
    for (const { metadata } of all) assert.ok(text.includes(metadata?.name ?? '?'), metadata?.name);
  });

  it('rejects an update of a pod for which constraints would have to change the pod', () => {
    const usable = candidates('restricted-v2', 'anyuid');
    assert.ok('errors' in tried(pod(), usable, NAMESPACE, 'nothing'));
    const first = tried(pod(), usable, NAMESPACE, 'pod', 'restricted-v2');
    assert.ok('pod' in first);
    assert.equal(first.name, 'restricted-v2');
    const again = tried(first.pod, usable, NAMESPACE, 'nothing', 'restricted-v2');
    assert.ok('name' in again && again.name === 'restricted-v2');
  });

  it('sets defaults only in a new ephemeral container, not in existing containers', () => {
    const usable = candidates('restricted-v2');
    const first = tried(pod(), usable, NAMESPACE, 'pod');
    assert.ok('pod' in first);
    const debugged = structuredClone(first.pod);
    if (debugged.spec !== undefined) debugged.spec.ephemeralContainers = [{ name: 'd' }];
    const decision = tried(debugged, usable, NAMESPACE, 'debuggers');
    assert.ok('pod' in decision);
    assert.equal(decision.pod.spec?.ephemeralContainers?.[0]?.securityContext?.runAsUser, MIN);
    assert.ok('errors' in tried(pod({ ephemeralContainers: [{ name: 'd' }] }), usable, NAMESPACE, 'debuggers'));
  });

  it('requires the uid-range annotation of a namespace only for constraints that use the range', () => {
    const bare = { name: 'shop', annotations: {} as typeof NAMESPACE.annotations };
    const refused = tried(pod(), candidates('restricted-v2'), bare, 'pod');
    assert.ok('errors' in refused);
    assert.match(errorsText(refused.errors), /unable to find annotation openshift\.io\/sa\.scc\.uid-range/);
    assert.ok('name' in tried(pod(), candidates('restricted-v2', 'privileged'), bare, 'pod'));
    const wrong = { ...bare, annotations: { ...NAMESPACE.annotations, 'openshift.io/sa.scc.uid-range': '0/x' } };
    assert.ok('errors' in tried(pod(), candidates('restricted-v2'), wrong, 'pod'));
  });

  it('does not check security context constraints again when only labels of a pod change', () => {
    const labelled = { ...pod(), metadata: { name: 'p', labels: { a: 'b' } } };
    assert.equal(isSameToConstraints(labelled, pod()), true);
    assert.equal(isSameToConstraints(pod({}, { image: 'x' }), pod()), false);
    const key = 'container.seccomp.security.alpha.kubernetes.io/c';
    assert.equal(isSameToConstraints(pod({}, {}, { [key]: 'unconfined' }), pod()), false);
  });
});

describe('notation of user ID ranges', () => {
  it('parses a user ID range as start/size or first-last, and rejects other texts', () => {
    assert.deepEqual(parseBlock('1000660000/10000'), { min: 1_000_660_000, max: 1_000_669_999 });
    assert.deepEqual(parseBlock('5-6'), { min: 5, max: 6 });
    for (const wrong of ['', 'x', '5', '6-5', '5/0', '-1/5', '1e3/5', '2147483647/2', '99999999999/1'])
      assert.equal(parseBlock(wrong), undefined, wrong);
  });
});
