/**
 * Inputs with the responses of upstream's current API server, for newer fields and for errors whose wording has
 * changed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../../../src/api/meta/object.ts';
import { at, context, created, type Document, defaulted, kindNamed, texts } from '../kinds/samples.ts';

const pods = kindNamed('Pod');
type Fields = Record<string, JsonValue>;

/** Errors of a small pod with the given fields in its spec, its container and its metadata. */
function errorsOf(spec: Fields, container: Fields = {}, metadata: Fields = {}): string[] {
  const pod = defaulted('Pod', (document) => {
    document['spec'] = { containers: [{ name: 'c', image: 'i:1', ...container }], ...spec } as JsonValue;
    document['metadata'] = { name: 'p', namespace: 'ns', ...metadata };
  });
  pods.strategy.prepareForCreate?.(pod, context);
  return texts([...(pods.strategy.validate?.(pod) ?? []), ...(pods.strategy.validateCreate?.(pod) ?? [])]);
}

const inContainer = (container: Fields, ...errors: string[]): void => {
  assert.deepEqual(
    errorsOf({}, container),
    errors.map((each) => `spec.containers[0].${each}`),
  );
};
const inPod = (spec: Fields, ...errors: string[]): void => {
  assert.deepEqual(
    errorsOf(spec),
    errors.map((each) => `spec.${each}`),
  );
};
const emptyDir = { volumes: [{ name: 'v', emptyDir: {} }] };
const mounted = (mount: Fields, ...errors: string[]): void => {
  assert.deepEqual(
    errorsOf(emptyDir, { volumeMounts: [{ name: 'v', mountPath: '/v', ...mount }] }),
    errors.map((each) => `spec.containers[0].volumeMounts.${each}`),
  );
};

test('validates security contexts', () => {
  inPod({ securityContext: { supplementalGroupsPolicy: 'Strict', seLinuxChangePolicy: 'MountOption' } });
  inPod(
    { securityContext: { supplementalGroupsPolicy: 'x', seLinuxChangePolicy: 'y' } },
    'securityContext.supplementalGroupsPolicy: Unsupported value: "x": supported values: "Merge", "Strict"',
    'securityContext.seLinuxChangePolicy: Unsupported value: "y": supported values: "MountOption", "Recursive"',
  );
  inPod(
    { securityContext: { appArmorProfile: { type: 'Localhost' } } },
    'securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost',
  );
  inContainer(
    { securityContext: { appArmorProfile: { type: 'RuntimeDefault', localhostProfile: 'x' } } },
    'securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost',
  );
  inContainer(
    { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: ' x' } } },
    'securityContext.appArmorProfile.localhostProfile: Invalid value: " x": must not be padded with whitespace',
  );
  inContainer(
    { securityContext: { seccompProfile: { type: '' } } },
    'securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set',
  );
  inPod(
    { hostUsers: false, hostNetwork: true, hostPID: true },
    'hostNetwork: Forbidden: when `pod.Spec.HostUsers` is false',
    'HostPID: Forbidden: when `pod.Spec.HostUsers` is false',
  );
  inPod(
    {
      hostNetwork: true,
      securityContext: {
        sysctls: [
          { name: 'net/ipv4.x', value: '1' },
          { name: 'A', value: '1' },
        ],
      },
    },
    `securityContext.sysctls[0].name: Invalid value: "net/ipv4.x": may not be specified when 'hostNetwork' is true`,
    'securityContext.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
  );
});

test('validates pod fields that only one operating system supports', () => {
  inPod({ os: { name: 'plan9' } }, 'os: Unsupported value: "plan9": supported values: "linux", "windows"');
  inPod(
    { os: { name: 'linux' }, securityContext: { windowsOptions: {} } },
    'securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
  );
  inPod(
    { os: { name: 'windows' }, hostPID: false, hostIPC: true, securityContext: { runAsUser: 1, sysctls: [] } },
    'hostIPC: Forbidden: cannot be set for a windows pod',
    'securityContext.runAsUser: Forbidden: cannot be set for a windows pod',
  );
  inPod(
    { securityContext: { windowsOptions: { hostProcess: true } } },
    'hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers',
  );
});

test('validates environment variables', () => {
  const from = (valueFrom: Fields): Fields => ({ env: [{ name: 'A', valueFrom }] });
  inContainer(
    from({ resourceFieldRef: { resource: 'limits.cpu', divisor: '2m' } }),
    `env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
  );
  inContainer(from({ resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } }));
  inContainer(
    from({ fieldRef: { fieldPath: "spec.x['a']" } }),
    `env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x['a']": error converting fieldPath: field label does not support subscript: spec.x['a']`,
  );
  inContainer(
    from({ fieldRef: { fieldPath: 'status.phase' } }),
    'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
  );
  inContainer(
    from({}),
    'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
  );
});

test('validates mounts and devices', () => {
  mounted({ recursiveReadOnly: 'Disabled' });
  mounted(
    { recursiveReadOnly: 'Enabled' },
    'recursiveReadOnly: Forbidden: may only be specified when readOnly is true',
  );
  mounted(
    { readOnly: true, recursiveReadOnly: 'IfPossible', mountPropagation: 'HostToContainer' },
    'recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified',
  );
  mounted(
    { recursiveReadOnly: 'x' },
    'recursiveReadOnly: Unsupported value: "x": supported values: "Disabled", "Enabled", "IfPossible"',
  );
  assert.deepEqual(errorsOf(emptyDir, { volumeDevices: [{ name: 'v', devicePath: '/d' }] }), [
    'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
  ]);
  assert.deepEqual(
    errorsOf(
      { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
      { volumeMounts: [{ name: 'v', mountPath: '/d' }], volumeDevices: [{ name: 'v', devicePath: '/d' }] },
    ),
    [
      'volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices',
      'volumeMounts[0].mountPath: Invalid value: "/d": must not already exist as a path in volumeDevices',
      'volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts',
      'volumeDevices[0].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts',
    ].map((each) => `spec.containers[0].${each}`),
  );
});

test('validates volumes', () => {
  const volume = (source: Fields, ...errors: string[]): void => {
    inPod({ volumes: [{ name: 'v', ...source }] }, ...errors.map((each) => `volumes[0].${each}`));
  };
  volume({ image: { reference: 'i:1' } });
  volume({ image: {} }, 'image.reference: Required value');
  volume({ csi: { driver: 'd'.repeat(64) } }, 'csi.driver: Too long: may not be more than 63 bytes');
  volume({ gcePersistentDisk: { pdName: '' } }, 'persistentDisk.pdName: Required value');
  volume({ emptyDir: {}, cephfs: { monitors: ['m'] } }, 'cephFS: Forbidden: may not specify more than 1 volume type');
  volume(
    { iscsi: { targetPortal: 'p', iqn: 'x', lun: 300 } },
    'iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
    'iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive',
  );
  volume(
    { azureDisk: { diskName: 'n', diskURI: 'u', kind: 'Managed' } },
    'azureDisk.diskURI: Unsupported value: "u": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
  );
  const template = { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } };
  volume({ ephemeral: { volumeClaimTemplate: template } });
  volume(
    { ephemeral: { volumeClaimTemplate: { ...template, metadata: { name: 'x' } } } },
    'ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set',
  );
  inPod(
    {
      volumes: [
        { name: 'v', ephemeral: { volumeClaimTemplate: template } },
        { name: 'w', persistentVolumeClaim: { claimName: 'p-v' } },
      ],
    },
    'volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-v": must not reference a PVC that gets created for an ephemeral volume',
  );
  const projected = (...sources: Fields[]): Fields => ({ projected: { sources } });
  volume(projected({}));
  volume(
    projected(
      { configMap: { name: 'a', items: [{ key: 'k', path: 'f' }] } },
      { secret: { name: 's', items: [{ key: 'k', path: 'f' }] } },
    ),
    'projected: Invalid value: "s": conflicting duplicate paths',
  );
  volume(
    projected({ configMap: { name: 'a' }, secret: { name: 's' } }),
    'projected.sources[0]: Forbidden: may not specify more than 1 volume type per source',
  );
  volume(
    projected({ clusterTrustBundle: { path: 'f' } }),
    'projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified',
  );
  volume(
    { downwardAPI: { items: [{ path: 'a' }, { path: 'b' }] } },
    'downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
    'downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
  );
  assert.deepEqual(errorsOf({ volumes: [{ name: 'v', ...projected({ serviceAccountToken: { path: 't' } }) }] }), [
    'spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
  ]);
});

test('validates resources of containers and pods, and claims', () => {
  const limits = (amounts: Fields): Fields => ({ resources: { limits: amounts } });
  inContainer(
    limits({ cpu: '1', 'hugepages-2Mi': '3Mi' }),
    ...['limits', 'requests'].map(
      (part) =>
        `resources.${part}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
    ),
  );
  inContainer(
    { resources: { claims: [{ name: 'x' }] } },
    'resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty',
  );
  const claims = {
    resourceClaims: [
      { name: 'b', resourceClaimName: 'r' },
      { name: 'a', resourceClaimTemplateName: 't' },
    ],
  };
  assert.deepEqual(
    errorsOf(claims, { resources: { claims: [{ name: 'a', request: 'one' }, { name: 'a' }, { name: 'x' }] } }),
    [
      'spec.containers[0].resources.claims[1]: Duplicate value: "a"',
      'spec.containers[0].resources.claims[2]: Not found: "x": must be one of the names in pod.spec.resourceClaims: a, b',
    ],
  );
  inPod(
    { resourceClaims: [{ name: 'a' }, { name: 'b', resourceClaimName: 'r', resourceClaimTemplateName: 't' }] },
    'resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
    'resourceClaims[1]: Invalid value: {"name":"b","resourceClaimName":"r","resourceClaimTemplateName":"t"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified',
  );
  assert.deepEqual(errorsOf({ resources: { requests: { cpu: '1' } } }, limits({ cpu: '2' })), [
    'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
  ]);
  assert.deepEqual(
    errorsOf(
      { resources: { limits: { cpu: '1' }, requests: { cpu: '1' } } },
      { resources: { limits: { cpu: '2' }, requests: { cpu: '1' } } },
    ),
    ['spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1'],
  );
  inPod(
    { resources: { limits: { 'ephemeral-storage': '1' } } },
    ...['limits'].map(
      (part) =>
        `resources.${part}[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"`,
    ),
  );
  inPod(
    { overhead: { 'a/b/c': '1' } },
    `overhead.limits[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    `overhead.limits[a/b/c]: Invalid value: "a/b/c": doesn't follow extended resource name standard`,
  );
});

test('derives pod resources from container resources', () => {
  const of = (resources: Fields, ...containers: Fields[]): unknown =>
    at(
      defaulted('Pod', (document) => {
        document['spec'] = {
          resources,
          containers: containers.map((each, index) => ({ name: `c${index}`, image: 'i:1', resources: each })),
        } as JsonValue;
      }),
      'spec',
      'resources',
    );
  const cpu = (amount: string): Fields => ({ requests: { cpu: amount } });
  assert.deepEqual(of({ limits: { cpu: '4', memory: '1Gi' } }, cpu('1'), cpu('500m')), {
    limits: { cpu: '4', memory: '1Gi' },
    requests: { cpu: '1500m', memory: '1Gi' },
  });
  assert.deepEqual(of({ requests: { memory: '1Gi' } }, { limits: { memory: '1Gi' } }, { limits: { memory: '2Gi' } }), {
    limits: { memory: '3Gi' },
    requests: { memory: '1Gi' },
  });
  assert.deepEqual(of({ requests: { memory: '1Gi' } }, { limits: { memory: '1Gi' } }, {}), {
    requests: { memory: '1Gi' },
  });
});

test('validates restart policies and rules', () => {
  const rule = { action: 'Restart', exitCodes: { operator: 'In', values: [42] } };
  inContainer({ restartPolicy: 'Never', restartPolicyRules: [rule] });
  inContainer(
    { restartPolicyRules: [rule] },
    'restartPolicy: Required value: must specify restartPolicy when restart rules are used',
  );
  inContainer(
    { restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart', exitCodes: { values: [1] } }] },
    'restartPolicyRules[0].exitCodes.operator: Unsupported value: "": supported values: "In", "NotIn"',
  );
  inContainer({ resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] });
  assert.deepEqual(
    errorsOf(
      { restartPolicy: 'Never' },
      { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] },
    ),
    [
      `spec.containers[0].resizePolicy: Invalid value: "RestartContainer": must be 'NotRequired' when \`restartPolicy\` is 'Never'`,
    ],
  );
});

test('validates scheduling fields', () => {
  const spread = (more: Fields, ...errors: string[]): void => {
    const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', ...more };
    inPod({ topologySpreadConstraints: [constraint] }, ...errors.map((each) => `topologySpreadConstraints[0].${each}`));
  };
  spread({ maxSkew: 0 }, 'maxSkew: Invalid value: 0: must be greater than zero');
  spread({ topologyKey: '-' });
  spread({ matchLabelKeys: ['a'], labelSelector: {} });
  spread({ matchLabelKeys: ['a'] }, 'matchLabelKeys: Forbidden: must not be specified when labelSelector is not set');
  inPod(
    {
      hostAliases: [
        { ip: '1.2.3.4', hostnames: ['ok'] },
        { ip: 'x', hostnames: ['ok', '!'] },
      ],
    },
    'hostAliases[1].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    "hostAliases[1].hostnames[1]: Invalid value: \"!\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  );
  inPod({ dnsConfig: { searches: ['.', '_tcp.example.com', 'a_b'] } });
  inPod({ hostname: 'a.b' }, 'hostname: Invalid value: "a.b": must not contain dots');
});

test('merges matchLabelKeys into selectors', () => {
  const selector = { matchLabels: { app: 'x' } };
  const pod = defaulted('Pod', (document) => {
    at(document, 'metadata')['labels'] = { app: 'x', rev: '7', tenant: 't' };
    at(document, 'spec')['affinity'] = {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'h', labelSelector: selector, matchLabelKeys: ['rev', 'none'], mismatchLabelKeys: ['tenant'] },
        ],
      },
    };
    at(document, 'spec')['topologySpreadConstraints'] = [
      {
        maxSkew: 1,
        topologyKey: 'z',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: selector,
        matchLabelKeys: ['rev'],
      },
    ];
  });
  pods.strategy.prepareForCreate?.(structuredClone(pod), context);
  const stored = structuredClone(pod);
  pods.strategy.prepareForCreate?.(stored, context);
  const rev = { key: 'rev', operator: 'In', values: ['7'] };
  const term = at(stored, 'spec', 'affinity', 'podAntiAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 0);
  assert.deepEqual(term['labelSelector'], {
    ...selector,
    matchExpressions: [rev, { key: 'tenant', operator: 'NotIn', values: ['t'] }],
  });
  assert.deepEqual(at(stored, 'spec', 'topologySpreadConstraints', 0)['labelSelector'], {
    ...selector,
    matchExpressions: [rev],
  });
  assert.deepEqual(texts(pods.strategy.validate?.(stored)), []);
  at(term, 'labelSelector')['matchLabels'] = { rev: '8' };
  assert.deepEqual(texts(pods.strategy.validate?.(stored)), [
    'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]: Invalid value: "rev": exists in both matchLabelKeys and labelSelector',
  ]);
});

test('validates annotations of pods that Kubernetes interprets', () => {
  const annotated = (annotations: Fields, ...errors: string[]): void => {
    assert.deepEqual(
      errorsOf({}, { securityContext: { seccompProfile: { type: 'Unconfined' } } }, { annotations }),
      errors,
    );
  };
  const appArmor = 'container.apparmor.security.beta.kubernetes.io';
  annotated(
    { 'controller.kubernetes.io/pod-deletion-cost': '+1' },
    'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer',
  );
  annotated({ [`${appArmor}/c`]: 'runtime/default' });
  annotated(
    { [`${appArmor}/x`]: 'what' },
    `metadata.annotations[${appArmor}/x]: Invalid value: "x": container not found`,
    `metadata.annotations[${appArmor}/x]: Invalid value: "what": invalid AppArmor profile name: "what"`,
  );
  annotated(
    { 'container.seccomp.security.alpha.kubernetes.io/c': 'runtime/default' },
    'spec.containers[0].securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match',
  );
});

test('copies profile annotations to fields and warns about them', () => {
  const pod = defaulted('Pod', (document) => {
    document['spec'] = { containers: [{ name: 'c', image: 'i' }] };
    document['metadata'] = {
      name: 'p.q',
      annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'localhost/mine' },
    };
  });
  pods.strategy.prepareForCreate?.(pod, context);
  assert.deepEqual(at(pod, 'spec', 'containers', 0, 'securityContext'), {
    appArmorProfile: { type: 'Localhost', localhostProfile: 'mine' },
  });
  assert.deepEqual(pods.strategy.warnings?.(pod, undefined), [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead',
  ]);
});

test('warns about deprecated and ignored fields of pods', () => {
  const warned = (spec: Fields, container: Fields, ...warnings: string[]): void => {
    const pod = defaulted('Pod', (document) => {
      document['spec'] = { containers: [{ name: 'c', image: 'i', ...container }], ...spec } as JsonValue;
    });
    assert.deepEqual(pods.strategy.warnings?.(pod, undefined), warnings);
    assert.deepEqual(pods.strategy.warnings?.(pod, pod), []);
  };
  warned(
    { nodeSelector: { 'beta.kubernetes.io/os': 'linux' }, terminationGracePeriodSeconds: -1 },
    {},
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    'spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  );
  warned(
    {
      volumes: [
        { name: 'g', gitRepo: { repository: 'r' } },
        {
          name: 'm',
          configMap: {
            name: 'x',
            items: [
              { key: 'a', path: 'd' },
              { key: 'b', path: 'd/e' },
            ],
          },
        },
      ],
    },
    {},
    'spec.volumes[0].gitRepo: deprecated in v1.11',
    'volume "m" (ConfigMap "x"): overlapping paths: "d/e" with "d"',
  );
  warned(
    { imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}], hostAliases: [{ ip: '1.2.3.4' }, { ip: '1.2.3.4' }] },
    {},
    'spec.hostAliases[1].ip: duplicate ip "1.2.3.4"',
    'spec.imagePullSecrets[1].name: duplicate name "a"',
    'spec.imagePullSecrets[2].name: invalid empty name ""',
  );
  warned(
    {},
    {
      resources: { limits: { memory: '100m' }, requests: { memory: '100m' } },
      env: [
        { name: 'A', value: '1' },
        { name: 'A', value: '$(A)2' },
        { name: 'A', value: '3' },
      ],
      ports: [
        { containerPort: 80 },
        { containerPort: 80 },
        { containerPort: 80, hostPort: 1 },
        { containerPort: 81, hostIP: '1.1.1.1' },
      ],
    },
    'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer',
    'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
    'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply',
    'spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]',
    'spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]',
    'spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]',
    'spec.containers[0].ports[3]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP HostIP:1.1.1.1}',
  );
  const podAffinityTerm = { topologyKey: 'h' };
  warned(
    {
      affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm }] } },
    },
    {},
    'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod',
  );
});

const ended = { name: 'c', state: { terminated: { exitCode: 1 } } };
const running = { name: 'c', state: { running: {} } };

test('validates updates of the status of a pod', () => {
  const write = (policy: string, before: Fields, now: Fields): string[] => {
    const old = created('Pod');
    at(old, 'spec')['restartPolicy'] = policy;
    Object.assign(at(old, 'status'), before);
    const next = structuredClone(old);
    next['status'] = { ...(old['status'] as Fields), ...now };
    at(next, 'metadata')['ownerReferences'] = [{ kind: 'X' }];
    pods.statusStrategy?.prepareForUpdate?.(next, old, context);
    assert.equal(at(next, 'metadata')['ownerReferences'], undefined);
    return texts(pods.statusStrategy?.validateUpdate?.(next, old));
  };
  const was = { containerStatuses: [ended] };
  const now = { containerStatuses: [running] };
  const gone = ['status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state'];
  assert.deepEqual(write('Always', was, now), []);
  assert.deepEqual(write('OnFailure', was, now), []);
  assert.deepEqual(write('Never', was, now), gone);
  assert.deepEqual(
    write('Always', { ephemeralContainerStatuses: [ended] }, { ephemeralContainerStatuses: [running] }),
    ['status.ephemeralContainerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state'],
  );
  assert.deepEqual(write('Always', {}, { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] }), [
    'status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP for each IP family',
  ]);
  assert.deepEqual(write('Always', {}, { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.2' }] }), [
    'status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`',
  ]);
  assert.deepEqual(
    write(
      'Always',
      {},
      {
        conditions: [
          { type: 'a b', status: 'True' },
          { type: 'Ready', status: 'True' },
        ],
      },
    ).length,
    1,
  );
  assert.deepEqual(write('Always', {}, { nominatedNodeName: 'n' }), []);
  assert.deepEqual(write('Always', {}, { qosClass: 'BestEffort' }), [
    'status.qosClass: Invalid value: "BestEffort": field is immutable',
  ]);
});

test('validates the claim that the scheduler creates for extended resources', () => {
  const old = created('Pod');
  const spec = { containers: [{ name: 'c', image: 'i', resources: { requests: { 'example.com/gpu': '1' } } }] };
  Object.assign(at(old, 'spec'), spec);
  const write = (extendedResourceClaimStatus: object): string[] => {
    const next = { ...structuredClone(old), status: { ...(old['status'] as Fields), extendedResourceClaimStatus } };
    return texts(pods.statusStrategy?.validateUpdate?.(next, old));
  };
  const mapping = { containerName: 'c', resourceName: 'example.com/gpu', requestName: 'r' };
  const path = 'status.extendedResourceClaimStatus';
  const list = `${path}.requestMappings`;
  assert.deepEqual(write({ resourceClaimName: 'p-x', requestMappings: [mapping] }), []);
  assert.deepEqual(write({}), [
    `${list}: Required value: at least one request mapping is required`,
    `${path}.resourceClaimName: Required value`,
  ]);
  const wrong = [
    { ...mapping, containerName: 'd' },
    { ...mapping, resourceName: 'cpu' },
  ];
  assert.deepEqual(write({ resourceClaimName: 'p', requestMappings: wrong }), [
    `${list}[0].containerName: Invalid value: "d": must match the name of an entry in spec.initContainers.name or spec.containers.name`,
    `${list}[1].resourceName: Invalid value: "cpu": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`,
  ]);
  assert.deepEqual(write({ resourceClaimName: 'p', requestMappings: [mapping, mapping] }), [
    `${list}[1].containerName: Duplicate value: "c"`,
    `${list}[1].resourceName: Duplicate value: "example.com/gpu"`,
    `${list}[1].requestName: Duplicate value: "r"`,
  ]);
});

test('keeps observedGeneration if an older kubelet omits the field', () => {
  const old = created('Pod');
  Object.assign(at(old, 'status'), {
    observedGeneration: 3,
    conditions: [{ type: 'Ready', status: 'False', observedGeneration: 2 }],
  });
  const next = structuredClone(old);
  next['status'] = { qosClass: 'Burstable', conditions: [{ type: 'Ready', status: 'True' }] };
  pods.statusStrategy?.prepareForUpdate?.(next, old, context);
  assert.equal(at(next, 'status')['observedGeneration'], 3);
  assert.equal(at(next, 'status', 'conditions', 0)['observedGeneration'], 2);
});

test('changes only resources in a resize and rejects a resize of mirror pods', () => {
  const resize = pods.subresourceStrategies?.['resize'];
  const write = (change: (pod: Document, old: Document) => void): [string[], Document] => {
    const old = created('Pod');
    const next = structuredClone(old);
    change(next, old);
    resize?.prepareForUpdate?.(next, old, context);
    return [texts(resize?.validateUpdate?.(next, old)), next];
  };
  const [errors, stored] = write((pod) => {
    const container = at(pod, 'spec', 'containers', 0);
    container['image'] = 'other';
    at(container, 'resources')['requests'] = { cpu: '250m', memory: '64Mi' };
    at(pod, 'metadata')['labels'] = { changed: 'yes' };
  });
  assert.deepEqual(errors, []);
  assert.equal(at(stored, 'spec', 'containers', 0)['image'], 'example.com/app:1');
  assert.equal(at(stored, 'spec', 'containers', 0, 'resources', 'requests')['cpu'], '250m');
  assert.equal(at(stored, 'metadata')['labels'], undefined);
  assert.equal(at(stored, 'metadata')['generation'], 2);
  const [refused] = write((_, old) => {
    at(old, 'metadata')['annotations'] = { 'kubernetes.io/config.mirror': 'x' };
  });
  assert.deepEqual(refused, [': Forbidden: static pods cannot be resized']);
});

test('allows a gated pod to narrow its node selection only', () => {
  const terms = (...keys: string[]): Fields => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms:
          keys.length === 0 ? [] : [{ matchExpressions: keys.map((key) => ({ key, operator: 'Exists' })) }],
      },
    },
  });
  const write = (before: Fields, now: Fields): string[] => {
    const old = created('Pod');
    Object.assign(at(old, 'spec'), { schedulingGates: [{ name: 'g' }], ...before });
    const next = structuredClone(old);
    Object.assign(at(next, 'spec'), now);
    return texts(pods.strategy.validateUpdate?.(next, old));
  };
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  assert.deepEqual(write({ affinity: terms('a') }, { affinity: terms('a', 'b') }), []);
  assert.deepEqual(write({ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'b', c: 'd' } }), []);
  assert.deepEqual(write({ affinity: terms('a', 'b') }, { affinity: terms('a') }), [
    `${path}[0]: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)`,
  ]);
  assert.deepEqual(write({ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'c' } }), [
    'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
  ]);
  assert.deepEqual(write({}, { schedulingGates: [{ name: 'h' }] }), [
    "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
  ]);
});

test('validates hostnameOverride', () => {
  inPod({ hostnameOverride: 'db.example' });
  inPod(
    { hostnameOverride: 'db', setHostnameAsFQDN: true, hostNetwork: true },
    'hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true',
    'hostnameOverride: Forbidden: may not be specified when hostNetwork is true',
  );
  inPod({ hostnameOverride: 'a'.repeat(65) }, 'hostnameOverride: Too long: may not be more than 64 bytes');
  assert.match(errorsOf({ hostnameOverride: 'Not-RFC1123' }).join(), /^spec\.hostnameOverride: Invalid value: /);
});
