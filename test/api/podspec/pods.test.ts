import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { pullPolicyOf } from '../../../src/api/podspec/defaults.ts';
import { qosClassOf } from '../../../src/api/podspec/qos.ts';
import { at, context, created, type Document, defaulted, kindNamed, texts } from '../kinds/samples.ts';

const pods = kindNamed('Pod');

function errorsOf(change: (spec: Record<string, unknown>, pod: Document) => void): string[] {
  const pod = defaulted('Pod', (document) => change(at(document, 'spec'), document));
  pods.strategy.prepareForCreate?.(pod, context);
  return texts([...(pods.strategy.validate?.(pod) ?? []), ...(pods.strategy.validateCreate?.(pod) ?? [])]);
}

const main = (spec: Record<string, unknown>): Record<string, unknown> => at(spec, 'containers', 0);

test('sets the defaults of a pod', () => {
  const spec = at(
    defaulted('Pod', (document) => {
      document['spec'] = {
        hostNetwork: true,
        containers: [
          {
            name: 'a',
            image: 'x',
            ports: [{ containerPort: 80 }],
            resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
            livenessProbe: { httpGet: { port: 80 } },
            env: [{ name: 'N', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          },
        ],
        volumes: [{ name: 'e' }, { name: 's', secret: { secretName: 's' } }, { name: 'h', hostPath: { path: '/' } }],
        serviceAccount: 'old-name',
      };
    }),
    'spec',
  );
  assert.deepEqual(spec, {
    hostNetwork: true,
    containers: [
      {
        name: 'a',
        image: 'x',
        ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
        resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
        livenessProbe: {
          httpGet: { port: 80, path: '/', scheme: 'HTTP' },
          timeoutSeconds: 1,
          periodSeconds: 10,
          successThreshold: 1,
          failureThreshold: 3,
        },
        env: [{ name: 'N', valueFrom: { fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v1' } } }],
        imagePullPolicy: 'Always',
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    volumes: [
      { name: 'e', emptyDir: {} },
      { name: 's', secret: { secretName: 's', defaultMode: 420 } },
      { name: 'h', hostPath: { path: '/', type: '' } },
    ],
    serviceAccount: 'old-name',
    serviceAccountName: 'old-name',
    enableServiceLinks: true,
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
  });
});

test('sets no defaults in pod templates that apply only to pods', () => {
  const template = at(
    defaulted('Deployment', (document) => {
      at(document, 'spec', 'template', 'spec')['hostNetwork'] = true;
    }),
    'spec',
    'template',
    'spec',
  );
  assert.equal(template['enableServiceLinks'], undefined);
  assert.equal(at(template, 'containers', 0, 'resources')['requests'], undefined);
  assert.equal(at(template, 'containers', 0, 'ports', 0)['hostPort'], undefined);
});

test('derives the pull policy from the tag of the image', () => {
  const policies: Record<string, string> = {
    ' ': 'IfNotPresent',
    nginx: 'Always',
    'nginx:latest': 'Always',
    'nginx:1': 'IfNotPresent',
    'host:5000/nginx': 'Always',
    'host:5000/nginx:1': 'IfNotPresent',
    [`nginx@sha256:${'0'.repeat(64)}`]: 'IfNotPresent',
  };
  for (const [image, policy] of Object.entries(policies)) assert.equal(pullPolicyOf(image), policy, image);
});

test('computes the QoS class of a pod', () => {
  const pod = (...resources: object[]): Pod => ({
    spec: { containers: resources.map((each, index) => ({ name: `c${index}`, resources: each })) },
  });
  const guaranteed = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1000m', memory: '1Gi' } };
  assert.equal(qosClassOf(pod({})), 'BestEffort');
  assert.equal(qosClassOf(pod({ requests: { cpu: '0' } })), 'BestEffort');
  assert.equal(qosClassOf(pod({ limits: { 'example.com/gpu': '1' } })), 'BestEffort');
  assert.equal(qosClassOf(pod(guaranteed)), 'Guaranteed');
  assert.equal(qosClassOf(pod(guaranteed, {})), 'Burstable');
  assert.equal(qosClassOf(pod({ limits: { cpu: '1' }, requests: { cpu: '1' } })), 'Burstable');
  assert.equal(qosClassOf(pod({ ...guaranteed, requests: { cpu: '500m', memory: '1Gi' } })), 'Burstable');
});

type Case = readonly [(spec: Record<string, unknown>, pod: Document) => void, string[]];

/** Changes of the sample with upstream's errors. */
const CASES: readonly Case[] = [
  [
    (spec) => {
      spec['containers'] = [];
    },
    ['spec.containers: Required value'],
  ],
  [
    (spec) => {
      main(spec)['name'] = 'A_b';
    },
    [
      "spec.containers[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    (spec) => {
      main(spec)['name'] = 'init';
    },
    ['spec.initContainers[0].name: Duplicate value: "init"'],
  ],
  [
    (spec) => {
      delete main(spec)['image'];
    },
    ['spec.containers[0].image: Required value'],
  ],
  [
    (spec) => {
      main(spec)['image'] = ' x';
    },
    ['spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'],
  ],
  [
    (spec) => {
      main(spec)['imagePullPolicy'] = 'Sometimes';
    },
    [
      'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
    ],
  ],
  [
    (spec) => {
      at(main(spec), 'ports', 0)['containerPort'] = 70000;
    },
    ['spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive'],
  ],
  [
    (spec) => {
      main(spec)['ports'] = [
        { containerPort: 1, hostPort: 5 },
        { containerPort: 2, hostPort: 5 },
      ];
    },
    ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//5"'],
  ],
  [
    (spec) => {
      main(spec)['env'] = [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }];
    },
    ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
  ],
  [
    (spec) => {
      main(spec)['env'] = [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.containers' } } }];
    },
    [
      'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers": error converting fieldPath: field label not supported: spec.containers',
    ],
  ],
  [
    (spec) => {
      main(spec)['env'] = [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } }];
    },
    [
      "spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    (spec) => {
      main(spec)['envFrom'] = [{}];
    },
    ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
  ],
  [
    (spec) => {
      main(spec)['resources'] = { limits: { cpu: '1' }, requests: { cpu: '2' } };
    },
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  ],
  [
    (spec) => {
      main(spec)['resources'] = { limits: { memory: '-1' } };
    },
    [
      'spec.containers[0].resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
    ],
  ],
  [
    (spec) => {
      main(spec)['resources'] = { requests: { 'example.com/gpu': '1' } };
    },
    ['spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources'],
  ],
  [
    (spec) => {
      main(spec)['resources'] = { limits: { disk: '1' } };
    },
    [
      'spec.containers[0].resources.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.limits[disk]: Invalid value: "disk": must be a standard resource for containers',
      'spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource for containers',
    ],
  ],
  [
    (spec) => {
      main(spec)['livenessProbe'] = {};
    },
    ['spec.containers[0].livenessProbe: Required value: must specify a handler type'],
  ],
  [
    (spec) => {
      main(spec)['livenessProbe'] = { exec: { command: ['a'] }, tcpSocket: { port: 1 } };
    },
    ['spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type'],
  ],
  [
    (spec) => {
      main(spec)['livenessProbe'] = { exec: { command: ['a'] }, successThreshold: 2 };
    },
    ['spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1'],
  ],
  [
    (spec) => {
      main(spec)['readinessProbe'] = { exec: { command: ['a'] }, terminationGracePeriodSeconds: 2 };
    },
    [
      'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 2: must not be set for readinessProbes',
    ],
  ],
  [
    (spec) => {
      main(spec)['readinessProbe'] = { httpGet: { port: 'toolongportname12' } };
    },
    [
      'spec.containers[0].readinessProbe.httpGet.port: Invalid value: "toolongportname12": must be no more than 15 characters',
    ],
  ],
  [
    (spec) => {
      at(spec, 'initContainers', 0)['livenessProbe'] = { exec: { command: ['a'] } };
    },
    [
      'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ],
  ],
  [
    (spec) => {
      main(spec)['volumeMounts'] = [{ name: 'nope', mountPath: '/a' }];
    },
    ['spec.containers[0].volumeMounts[0].name: Not found: "nope"'],
  ],
  [
    (spec) => {
      main(spec)['volumeMounts'] = [{ name: 'data', mountPath: '/a', subPath: '../x' }];
    },
    ['spec.containers[0].volumeMounts.subPath: Invalid value: "../x": must not contain \'..\''],
  ],
  [
    (spec) => {
      main(spec)['volumeMounts'] = [
        { name: 'data', mountPath: '/a' },
        { name: 'data', mountPath: '/a' },
      ];
    },
    ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique'],
  ],
  [
    (spec) => {
      main(spec)['volumeMounts'] = [{ name: 'data', mountPath: '/a', mountPropagation: 'Bidirectional' }];
    },
    [
      'spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers',
    ],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({ name: 'data', emptyDir: {} });
    },
    ['spec.volumes[3].name: Duplicate value: "data"'],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({ name: 'z', emptyDir: {}, hostPath: { path: '/x' } });
    },
    ['spec.volumes[3].hostPath: Forbidden: may not specify more than 1 volume type'],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({ name: 'z', hostPath: { path: '/x/../y' } });
    },
    ['spec.volumes[3].hostPath.path: Invalid value: "/x/../y": must not contain \'..\''],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({ name: 'z', secret: { secretName: 's', defaultMode: 0o1777 } });
    },
    [
      'spec.volumes[3].secret.defaultMode: Invalid value: 1023: must be a number between 0 and 0777 (octal), both inclusive',
    ],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({ name: 'z', configMap: { name: 'c', items: [{ key: 'a', path: '/etc' }] } });
    },
    ['spec.volumes[3].configMap.items[0].path: Invalid value: "/etc": must be a relative path'],
  ],
  [
    (spec) => {
      (spec['volumes'] as unknown[]).push({
        name: 'z',
        projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 60 } }] },
      });
    },
    [
      'spec.volumes[3].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes',
    ],
  ],
  [
    (spec) => {
      spec['restartPolicy'] = 'Perhaps';
    },
    ['spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"'],
  ],
  [
    (spec) => {
      spec['terminationGracePeriodSeconds'] = -1;
    },
    [],
  ],
  [
    (spec) => {
      spec['activeDeadlineSeconds'] = 0;
    },
    ['spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive'],
  ],
  [
    (spec) => {
      spec['dnsPolicy'] = 'None';
    },
    ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
  ],
  [
    (spec) => {
      spec['dnsPolicy'] = 'None';
      spec['dnsConfig'] = { nameservers: ['1.2.3.4', '1.2.3.5', '1.2.3.6', 'x'] };
    },
    [
      'spec.dnsConfig.nameservers: Invalid value: ["1.2.3.4","1.2.3.5","1.2.3.6","x"]: must not have more than 3 nameservers',
      'spec.dnsConfig.nameservers[3]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
  ],
  [
    (spec) => {
      spec['tolerations'] = [{ operator: 'Equal', value: 'a' }];
    },
    [
      'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  ],
  [
    (spec) => {
      spec['tolerations'] = [{ key: 'a', operator: 'Exists', tolerationSeconds: 1 }];
    },
    ['spec.tolerations[0].effect: Invalid value: "": effect must be \'NoExecute\' when `tolerationSeconds` is set'],
  ],
  [
    (spec) => {
      spec['affinity'] = {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
      };
    },
    [
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term',
    ],
  ],
  [
    (spec) => {
      spec['affinity'] = {
        podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, podAffinityTerm: {} }] },
      };
    },
    [
      'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100',
      'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Required value: can not be empty',
      'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Invalid value: "": name part must be non-empty',
      `spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
    ],
  ],
  [
    (spec) => {
      spec['securityContext'] = { runAsUser: -1, sysctls: [{ name: 'net.a', value: '1' }] };
      spec['hostNetwork'] = true;
    },
    [
      'spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive',
      'spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be specified when \'hostNetwork\' is true',
    ],
  ],
  [
    (spec) => {
      const named = ['a-', 'b..', 'kernel.shmmax', 'c-d_e/f'].map((name) => ({ name, value: '1' }));
      spec['securityContext'] = { sysctls: named };
    },
    [0, 1].map(
      (index) =>
        `spec.securityContext.sysctls[${index}].name: Invalid value: ${['"a-"', '"b.."'][index]}: must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
    ),
  ],
  [
    (spec) => {
      main(spec)['securityContext'] = { privileged: true, allowPrivilegeEscalation: false };
    },
    [
      'spec.containers[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
    ],
  ],
  [
    (spec) => {
      spec['ephemeralContainers'] = [{ name: 'e', image: 'x' }];
    },
    ['spec.ephemeralContainers: Forbidden: cannot be set on create'],
  ],
  [
    (_, pod) => {
      pod.metadata['annotations'] = { 'kubernetes.io/config.mirror': 'abc' };
    },
    [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "abc": must set spec.nodeName if mirror pod annotation is set',
    ],
  ],
];

test("rejects invalid pods with upstream's field errors", () => {
  for (const [change, expected] of CASES) assert.deepEqual(errorsOf(change), expected);
});

test('allows the same changes of a pod as upstream', () => {
  const old = created('Pod');
  const update = (change: (spec: Record<string, unknown>) => void): string[] => {
    const now = structuredClone(old);
    change(at(now, 'spec'));
    pods.strategy.prepareForUpdate?.(now, old, context);
    return texts([...(pods.strategy.validate?.(now) ?? []), ...(pods.strategy.validateUpdate?.(now, old) ?? [])]);
  };
  const forbidden =
    'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';
  assert.deepEqual(
    update((spec) => {
      main(spec)['image'] = 'other:2';
    }),
    [],
  );
  assert.deepEqual(
    update((spec) => {
      at(spec, 'initContainers', 0)['image'] = 'other:2';
    }),
    [],
  );
  assert.deepEqual(
    update((spec) => {
      spec['activeDeadlineSeconds'] = 5;
    }),
    [],
  );
  assert.deepEqual(
    update((spec) => {
      (spec['tolerations'] as unknown[]).push({ key: 'z', operator: 'Exists' });
    }),
    [],
  );
  assert.deepEqual(
    update((spec) => {
      at(spec, 'tolerations', 0)['tolerationSeconds'] = 5;
    }),
    [],
  );
  assert.deepEqual(
    update((spec) => {
      spec['tolerations'] = [];
    }),
    ['spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds'],
  );
  assert.deepEqual(
    update((spec) => {
      main(spec)['command'] = ['x'];
    }),
    [forbidden],
  );
  assert.deepEqual(
    update((spec) => {
      spec['nodeName'] = 'n';
    }),
    [forbidden],
  );
  assert.deepEqual(
    update((spec) => {
      spec['nodeSelector'] = { a: 'b' };
    }),
    [forbidden],
  );
  assert.deepEqual(
    update((spec) => {
      main(spec)['image'] = '';
    }),
    ['spec.containers[0].image: Required value', 'spec.containers[0].image: Required value'],
  );
  assert.deepEqual(
    update((spec) => {
      (spec['containers'] as unknown[]).push({ ...main(spec), name: 'b' });
    }),
    ['spec.containers: Forbidden: pod updates may not add or remove containers'],
  );
});

test('the ephemeralcontainers subresource adds ephemeral containers and changes no other field', () => {
  const strategy = pods.subresourceStrategies?.['ephemeralcontainers'];
  assert.ok(strategy);
  const old = created('Pod');
  const now = structuredClone(old);
  at(now, 'spec')['ephemeralContainers'] = [{ name: 'debug', image: 'busybox', targetContainerName: 'main' }];
  main(at(now, 'spec'))['image'] = 'sneaked:1';
  pods.setDefaults?.(now);
  strategy.prepareForUpdate?.(now, old, context);
  assert.deepEqual(texts(strategy.validateUpdate?.(now, old)), []);
  assert.equal(main(at(now, 'spec'))['image'], 'example.com/app:1');
  const without = structuredClone(now);
  delete at(without, 'spec')['ephemeralContainers'];
  strategy.prepareForUpdate?.(without, now, context);
  assert.match(texts(strategy.validateUpdate?.(without, now)).join(), /may not be removed/);
});

test('rejects a resize that changes the QoS class', () => {
  const strategy = pods.subresourceStrategies?.['resize'];
  assert.ok(strategy);
  const old = created('Pod');
  const resized = structuredClone(old);
  at(main(at(resized, 'spec')), 'resources', 'limits')['memory'] = '128Mi';
  assert.deepEqual(texts(strategy.validateUpdate?.(resized, old)), []);
  const other = structuredClone(old);
  main(at(other, 'spec'))['resources'] = {};
  assert.deepEqual(texts(strategy.validateUpdate?.(other, old)), [
    'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
    'spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed',
    'spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed',
  ]);
});

test('resizes CPU and memory of running containers and removes no request or limit', () => {
  const strategy = pods.subresourceStrategies?.['resize'];
  const old = created('Pod', (pod) => {
    const spec = at(pod, 'spec');
    const resources = { requests: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '1Gi' }, limits: { cpu: '2' } };
    spec['containers'] = [
      { name: 'a', image: 'i', resources },
      { name: 'b', image: 'i' },
    ];
    spec['initContainers'] = [
      { name: 'once', image: 'i', resources: { requests: { cpu: '1' } } },
      { name: 'beside', image: 'i', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } },
    ];
  });
  const cases: [change: (spec: Record<string, unknown>) => unknown, refusals: string[]][] = [
    [
      (spec) =>
        (main(spec)['resources'] = {
          requests: { cpu: '2', memory: '2Gi', 'ephemeral-storage': '1Gi' },
          limits: { cpu: '3', memory: '3Gi' },
        }),
      [],
    ],
    [
      (spec) => delete at(main(spec), 'resources', 'limits')['cpu'],
      ['spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed'],
    ],
    [
      (spec) => delete at(main(spec), 'resources', 'requests')['memory'],
      ['spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed'],
    ],
    [
      (spec) => (at(main(spec), 'resources', 'requests')['ephemeral-storage'] = '2Gi'),
      ['spec: Forbidden: only cpu and memory resources are mutable'],
    ],
    [
      (spec) => (spec['containers'] as unknown[]).reverse(),
      [0, 1].map(
        (index) => `spec.containers[${index}].name: Forbidden: containers may not be renamed or reordered on resize`,
      ),
    ],
    [
      (spec) => (at(spec, 'initContainers', 0, 'resources', 'requests')['cpu'] = '2'),
      ['spec.initContainers[0].resources: Forbidden: resources for non-sidecar init containers are immutable'],
    ],
    [(spec) => (at(spec, 'initContainers', 1, 'resources', 'requests')['cpu'] = '2'), []],
  ];
  for (const [change, refusals] of cases) {
    const now = structuredClone(old);
    change(at(now, 'spec'));
    assert.deepEqual(texts(strategy?.validateUpdate?.(now, old)), refusals);
  }
});

test('uses a grace period only for pods that are assigned to a node', () => {
  const grace = (change: (pod: Document) => void): number | undefined =>
    pods.defaultGraceSeconds?.(created('Pod', change));
  assert.equal(
    grace(() => {}),
    undefined,
    'not scheduled yet',
  );
  assert.equal(
    grace((pod) => {
      at(pod, 'spec')['nodeName'] = 'n';
    }),
    30,
  );
  const done = created('Pod', (pod) => {
    at(pod, 'spec')['nodeName'] = 'n';
  });
  at(done, 'status')['phase'] = 'Succeeded';
  assert.equal(pods.defaultGraceSeconds?.(done), undefined);
});
