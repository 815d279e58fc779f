import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, context, created, type Document, defaulted, kindNamed, texts } from './samples.ts';

type Change = (document: Document) => void;

/** Field errors for creating a changed sample after defaulting. */
function createErrors(kind: string, change: Change): string[] {
  const document = defaulted(kind, change);
  const { strategy } = kindNamed(kind);
  strategy.prepareForCreate?.(document, context);
  return texts(strategy.validate?.(document));
}

function updateErrors(kind: string, change: Change): string[] {
  const old = created(kind);
  const now = structuredClone(old);
  change(now);
  const { strategy } = kindNamed(kind);
  kindNamed(kind).setDefaults?.(now);
  strategy.prepareForUpdate?.(now, old, context);
  return texts(strategy.validateUpdate?.(now, old));
}

/** Kind, change, and upstream's errors. */
const CREATE: readonly [string, Change, string[]][] = [
  [
    'StatefulSet',
    (d) => {
      const [container] = at(d, 'spec', 'template', 'spec')['containers'] as Document[];
      (container as Document)['volumeMounts'] = [
        { name: 'www', mountPath: '/claimed' },
        { name: 'nobody', mountPath: '/nobody' },
      ];
    },
    ['spec.template.spec.containers[0].volumeMounts[1].name: Not found: "nobody"'],
  ],
  [
    'StatefulSet',
    (d) => {
      const pod = at(d, 'spec', 'template', 'spec');
      const [container] = pod['containers'] as Document[];
      pod['volumes'] = [{ name: 'www', emptyDir: {} }];
      (container as Document)['volumeMounts'] = [{ name: 'www', mountPath: '/claimed' }];
    },
    [],
  ],
  ['Deployment', (d) => delete at(d, 'spec')['selector'], ['spec.selector: Required value']],
  [
    'Deployment',
    (d) => {
      at(d, 'spec')['selector'] = {};
    },
    ['spec.selector: Invalid value: {}: empty selector is invalid for deployment'],
  ],
  [
    'Deployment',
    (d) => {
      at(d, 'spec', 'template', 'metadata')['labels'] = { app: 'y' };
    },
    ['spec.template.metadata.labels: Invalid value: {"app":"y"}: `selector` does not match template `labels`'],
  ],
  [
    'Deployment',
    (d) => {
      at(d, 'spec')['replicas'] = -1;
    },
    ['spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
  ],
  [
    'Deployment',
    (d) => {
      at(d, 'spec', 'template', 'spec')['restartPolicy'] = 'Never';
    },
    ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
  ],
  [
    'Deployment',
    (d) => {
      at(d, 'spec')['strategy'] = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } };
    },
    ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
  ],
  [
    'Deployment',
    (d) => {
      at(d, 'spec')['minReadySeconds'] = 700;
    },
    ['spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds'],
  ],
  [
    'DaemonSet',
    (d) => {
      at(d, 'spec')['updateStrategy'] = { rollingUpdate: { maxUnavailable: 0 } };
    },
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0'],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec')['ports'] = [];
    },
    ['spec.ports: Required value'],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec')['ports'] = [
        { port: 80, name: 'a' },
        { port: 80, name: 'b' },
      ];
    },
    ['spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}'],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec')['ports'] = [{ port: 80 }, { port: 81, name: 'b' }];
    },
    ['spec.ports[0].name: Required value'],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec', 'ports', 0)['nodePort'] = 30080;
    },
    ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec', 'ports', 0)['port'] = 0;
    },
    ['spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive'],
  ],
  [
    'Service',
    (d) => {
      d['spec'] = { type: 'ExternalName' };
    },
    ['spec.externalName: Required value'],
  ],
  [
    'Service',
    (d) => {
      at(d, 'spec')['clusterIP'] = '10.0.0.300';
    },
    ['spec.clusterIPs[0]: Invalid value: "10.0.0.300": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ],
  [
    'Secret',
    (d) => {
      d['type'] = 'kubernetes.io/tls';
    },
    ['data[tls.crt]: Required value', 'data[tls.key]: Required value'],
  ],
  [
    'ConfigMap',
    (d) => {
      d['binaryData'] = { a: 'aGk=' };
    },
    ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
  ],
  [
    'ConfigMap',
    (d) => {
      d['data'] = { a: 'x'.repeat(1024 * 1024 + 1) };
    },
    ['[]: Too long: may not be more than 1048576 bytes'],
  ],
  [
    'Role',
    (d) => {
      d['rules'] = [{ verbs: ['get'], nonResourceURLs: ['/x'] }];
    },
    ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
  ],
  [
    'ClusterRole',
    (d) => {
      d['rules'] = [{}];
    },
    [
      'rules[0].verbs: Required value: verbs must contain at least one value',
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
    ],
  ],
  [
    'ClusterRoleBinding',
    (d) => {
      d['subjects'] = [{ kind: 'ServiceAccount', name: 'a' }];
    },
    ['subjects[0].namespace: Required value'],
  ],
  [
    'RoleBinding',
    (d) => {
      d['roleRef'] = { kind: 'Secret', name: 'a' };
    },
    ['roleRef.kind: Unsupported value: "Secret": supported values: "Role", "ClusterRole"'],
  ],
  [
    'CertificateSigningRequest',
    (d) => {
      at(d, 'spec')['expirationSeconds'] = 60;
    },
    ['spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)'],
  ],
  [
    'CertificateSigningRequest',
    (d) => {
      at(d, 'spec')['request'] = btoa('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    },
    ['spec.request: PEM block type must be CERTIFICATE REQUEST'],
  ],
  [
    'Lease',
    (d) => {
      at(d, 'spec')['leaseDurationSeconds'] = 0;
    },
    ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
  ],
  [
    'EndpointSlice',
    (d) => {
      at(d, 'endpoints', 0)['addresses'] = ['127.0.0.1'];
    },
    ['endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ],
  [
    'Event',
    (d) => {
      at(d, 'involvedObject')['namespace'] = 'other';
    },
    ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
  ],
  [
    'PriorityClass',
    (d) => {
      d['value'] = 2_000_000_000;
    },
    ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000'],
  ],
  [
    'Node',
    (d) => {
      at(d, 'spec')['taints'] = [{ key: 'a', effect: 'Never' }];
    },
    [
      'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
  ],
];

test("rejects invalid documents with upstream's field errors", () => {
  for (const [kind, change, expected] of CREATE) {
    const found = createErrors(kind, change);
    if (kind === 'CertificateSigningRequest' && expected[0]?.startsWith('spec.request')) {
      assert.match(found.join(), /^spec\.request: Invalid value: .*: PEM block type must be CERTIFICATE REQUEST$/);
    } else assert.deepEqual(found, expected);
  }
});

const UPDATE: readonly [string, Change, string[]][] = [
  [
    'Deployment',
    (d) => {
      at(d, 'spec')['selector'] = { matchLabels: { app: 'y' } };
      at(d, 'spec', 'template', 'metadata')['labels'] = { app: 'y' };
    },
    ['spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable'],
  ],
  [
    'Secret',
    (d) => {
      d['type'] = 'other';
    },
    ['type: Invalid value: "other": field is immutable'],
  ],
  [
    'RoleBinding',
    (d) => {
      at(d, 'roleRef')['name'] = 'z';
    },
    [
      'roleRef: Invalid value: {"kind":"Role","name":"z","apiGroup":"rbac.authorization.k8s.io"}: cannot change roleRef',
    ],
  ],
  [
    'PriorityClass',
    (d) => {
      d['value'] = 5;
    },
    ['value: Forbidden: may not be changed in an update.'],
  ],
  [
    'ControllerRevision',
    (d) => {
      d['data'] = { b: 1 };
    },
    ['data: Invalid value: {"b":1}: field is immutable'],
  ],
  [
    'EndpointSlice',
    (d) => {
      d['addressType'] = 'FQDN';
      at(d, 'endpoints', 0)['addresses'] = ['a.example'];
    },
    ['addressType: Invalid value: "FQDN": field is immutable'],
  ],
  [
    'Node',
    (d) => {
      at(d, 'spec')['podCIDR'] = '10.1.0.0/24';
    },
    ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
  ],
];

test("rejects changes of immutable fields with upstream's field errors", () => {
  for (const [kind, change, expected] of UPDATE) assert.deepEqual(updateErrors(kind, change), expected, kind);
});

test('rejects changes of immutable config maps and secrets', () => {
  const old = created('ConfigMap', (d) => {
    d['immutable'] = true;
  });
  const now = structuredClone(old);
  now['data'] = { a: 'c' };
  assert.deepEqual(texts(kindNamed('ConfigMap').strategy.validateUpdate?.(now, old)), [
    'data: Forbidden: field is immutable when `immutable` is set',
  ]);
});

test('increases the generation for changes of the spec only', () => {
  const kind = kindNamed('Deployment');
  const old = created('Deployment');
  assert.equal(old.metadata['generation'], 1);
  const scaled = structuredClone(old);
  at(scaled, 'spec')['replicas'] = 3;
  kind.strategy.prepareForUpdate?.(scaled, old, context);
  assert.equal(scaled.metadata['generation'], 2);
  const labelled = structuredClone(old);
  labelled.metadata['labels'] = { a: 'b' };
  labelled.metadata['generation'] = 17;
  kind.strategy.prepareForUpdate?.(labelled, old, context);
  assert.equal(labelled.metadata['generation'], 1);
  const status = structuredClone(old);
  status['status'] = { replicas: 2 };
  kind.statusStrategy?.prepareForUpdate?.(status, old, context);
  assert.deepEqual([status.metadata['generation'], status['status']], [1, { replicas: 2 }]);
});

test('drops the status of new objects, except for nodes', () => {
  const pod = created('Pod', (d) => {
    d['status'] = { phase: 'Running', podIP: '10.0.0.1' };
  });
  assert.deepEqual(pod['status'], { phase: 'Pending', qosClass: 'Burstable' });
  assert.equal(at(created('Node'), 'status', 'nodeInfo')['osImage'], 'Debian');
});

test("sets upstream's defaults for workloads and services", () => {
  const deployment = at(defaulted('Deployment'), 'spec');
  assert.deepEqual(
    [
      deployment['replicas'],
      deployment['revisionHistoryLimit'],
      deployment['progressDeadlineSeconds'],
      deployment['strategy'],
    ],
    [1, 10, 600, { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }],
  );
  assert.deepEqual(at(defaulted('DaemonSet'), 'spec')['updateStrategy'], {
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  const controller = defaulted('ReplicationController');
  assert.deepEqual([at(controller, 'spec')['selector'], controller.metadata['labels']], [{ app: 'x' }, { app: 'x' }]);
  const service = at(
    defaulted('Service', (d) => {
      at(d, 'spec')['ports'] = [{ port: 80 }];
    }),
    'spec',
  );
  assert.deepEqual(service, {
    selector: { app: 'x' },
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    sessionAffinity: 'None',
    type: 'ClusterIP',
    internalTrafficPolicy: 'Cluster',
  });
  assert.deepEqual(
    at(
      defaulted('Service', (d) => {
        at(d, 'spec')['sessionAffinity'] = 'ClientIP';
      }),
      'spec',
    )['sessionAffinityConfig'],
    {
      clientIP: { timeoutSeconds: 10800 },
    },
  );
  assert.deepEqual(at(defaulted('Namespace'), 'metadata', 'labels'), { 'kubernetes.io/metadata.name': 'x' });
  assert.deepEqual(at(created('Namespace'), 'spec')['finalizers'], ['kubernetes']);
});

test('keeps allocated fields of a service that the client does not send', () => {
  const kind = kindNamed('Service');
  const old = created('Service', (d) => {
    Object.assign(at(d, 'spec'), {
      type: 'NodePort',
      clusterIP: '172.30.0.9',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    });
    at(d, 'spec', 'ports', 0)['nodePort'] = 30080;
  });
  assert.deepEqual(at(old, 'spec')['clusterIPs'], ['172.30.0.9']);
  const now = defaulted('Service', (d) => {
    at(d, 'spec')['type'] = 'NodePort';
  });
  kind.strategy.prepareForUpdate?.(now, old, context);
  assert.deepEqual(
    [at(now, 'spec')['clusterIP'], at(now, 'spec')['clusterIPs'], at(now, 'spec', 'ports', 0)['nodePort']],
    ['172.30.0.9', ['172.30.0.9'], 30080],
  );
  assert.deepEqual(texts(kind.strategy.validateUpdate?.(now, old)), []);
  const clusterOnly = structuredClone(old);
  at(clusterOnly, 'spec')['type'] = 'ClusterIP';
  kind.strategy.prepareForUpdate?.(clusterOnly, old, context);
  assert.equal(at(clusterOnly, 'spec', 'ports', 0)['nodePort'], undefined);
  assert.deepEqual(texts(kind.strategy.validateUpdate?.(clusterOnly, old)), []);
  const moved = structuredClone(old);
  Object.assign(at(moved, 'spec'), { clusterIP: '172.30.0.10', clusterIPs: ['172.30.0.10'] });
  assert.deepEqual(texts(kind.strategy.validateUpdate?.(moved, old)), [
    'spec.clusterIPs[0]: Invalid value: ["172.30.0.10"]: may not change once set',
  ]);
});

test('releases allocations of a service that becomes ExternalName, even if the client clears only the addresses', () => {
  const { strategy } = kindNamed('Service');
  const old = created('Service');
  Object.assign(at(old, 'spec'), { clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'] });
  Object.assign(at(old, 'spec'), { ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' });
  const now = structuredClone(old);
  Object.assign(at(now, 'spec'), { type: 'ExternalName', externalName: 'example.com', clusterIP: '' });
  old['status'] = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
  delete at(now, 'spec')['clusterIPs'];
  strategy.prepareForUpdate?.(now, old, context);
  assert.deepEqual(texts(strategy.validateUpdate?.(now, old)), []);
  assert.equal(at(now, 'spec')['ipFamilyPolicy'], undefined);
  assert.deepEqual(at(now, 'status')['loadBalancer'], {});
});

test('defaults ipMode of load balancer addresses to VIP', () => {
  const ingress = [{ ip: '192.0.2.1' }, { ip: '192.0.2.2', ipMode: 'Proxy' }, { hostname: 'lb.example.com' }];
  const service = defaulted('Service', (document) => {
    at(document, 'spec')['type'] = 'LoadBalancer';
    document['status'] = { loadBalancer: { ingress } };
  });
  const modes = (at(service, 'status', 'loadBalancer')['ingress'] as { ipMode?: string }[]).map((each) => each.ipMode);
  assert.deepEqual(modes, ['VIP', 'Proxy', undefined]);
});

test('copies a change of clusterIP to clusterIPs', () => {
  const kind = kindNamed('Service');
  const old = created('Service', (d) => {
    at(d, 'spec')['clusterIP'] = 'None';
  });
  const updated = (clusterIP: string | undefined, clusterIPs: string[]): string[] => {
    const now = structuredClone(old);
    Object.assign(at(now, 'spec'), { clusterIP, clusterIPs });
    kind.strategy.prepareForUpdate?.(now, old, context);
    return texts([...(kind.strategy.validate?.(now) ?? []), ...(kind.strategy.validateUpdate?.(now, old) ?? [])]);
  };
  assert.deepEqual(updated('172.30.0.12', ['None']), [
    'spec.clusterIPs[0]: Invalid value: ["172.30.0.12"]: may not change once set',
  ]);
  assert.deepEqual(updated('', ['None']), []);
  assert.deepEqual(updated(undefined, ['None']), []);
  assert.equal(updated('172.30.0.12', ['172.30.0.13'])[0]?.includes('first value must match'), true);
});

test('converts stringData of secrets to data', () => {
  const secret = defaulted('Secret', (d) => {
    d['data'] = { a: 'eA==', b: 'eQ==' };
  });
  assert.deepEqual(
    [secret['data'], secret['stringData'], secret['type']],
    [{ a: btoa('\u00c3\u00a4\u00e2\u0082\u00ac'), b: 'eQ==' }, undefined, 'Opaque'],
  );
});

test('sets the requester of a certificate request to the authenticated user', () => {
  const request = created('CertificateSigningRequest', (d) => {
    Object.assign(at(d, 'spec'), { username: 'system:admin', groups: ['system:masters'], uid: 'x' });
    d['status'] = { conditions: [{ type: 'Approved', status: 'True' }] };
  });
  assert.deepEqual(
    [at(request, 'spec')['username'], at(request, 'spec')['groups'], at(request, 'spec')['uid'], request['status']],
    ['alice', ['g1'], 'u1', {}],
  );
});

test('accepts approval of certificate requests through /approval and certificates through /status only', () => {
  const kind = kindNamed('CertificateSigningRequest');
  const approval = kind.subresourceStrategies?.['approval'];
  const { statusStrategy } = kind;
  assert.ok(approval && statusStrategy);
  const old = created('CertificateSigningRequest');
  const approve = (document: Document): Document => {
    document['status'] = { conditions: [{ type: 'Approved', status: 'True', reason: 'r' }] };
    return document;
  };
  const approved = approve(structuredClone(old));
  approval.prepareForUpdate?.(approved, old, context);
  assert.deepEqual(texts(approval.validateUpdate?.(approved, old)), []);
  assert.equal(at(approved, 'status', 'conditions', 0)['lastTransitionTime'], '2026-01-02T03:04:05Z');
  const sneaky = approve(structuredClone(old));
  statusStrategy.prepareForUpdate?.(sneaky, old, context);
  assert.deepEqual(sneaky['status'], {}, 'a status update cannot decide');
  const certificate = btoa('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
  const issued = structuredClone(approved);
  at(issued, 'status')['certificate'] = certificate;
  statusStrategy.prepareForUpdate?.(issued, approved, context);
  assert.deepEqual(texts(statusStrategy.validateUpdate?.(issued, approved)), []);
  const both = structuredClone(approved);
  (at(both, 'status')['conditions'] as unknown[]).push({ type: 'Denied', status: 'True' });
  approval.prepareForUpdate?.(both, approved, context);
  assert.deepEqual(texts(approval.validateUpdate?.(both, approved)), [
    'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
  ]);
  const undone = structuredClone(approved);
  at(undone, 'status')['conditions'] = [];
  approval.prepareForUpdate?.(undone, approved, context);
  assert.deepEqual(texts(approval.validateUpdate?.(undone, approved)), [
    'status.conditions: Forbidden: updates may not remove a condition of type "Approved"',
  ]);
});

test('converts all versions of events to the same stored form', () => {
  const alias = kindNamed('Event').aliases?.[0];
  assert.ok(alias);
  const given = {
    metadata: { name: 'e', namespace: 'ns' },
    regarding: { kind: 'Pod', name: 'p' },
    note: 'hello',
    reportingController: 'c',
    deprecatedCount: 2,
    eventTime: '2026-01-02T03:04:05.000000Z',
  };
  const stored = alias.convertTo(given);
  assert.deepEqual(stored, {
    metadata: { name: 'e', namespace: 'ns' },
    involvedObject: { kind: 'Pod', name: 'p' },
    message: 'hello',
    reportingComponent: 'c',
    count: 2,
    eventTime: '2026-01-02T03:04:05.000000Z',
  });
  assert.deepEqual(alias.convertFrom(stored), given);
});

test('rejects access reviews without a subject or with an ambiguous action', () => {
  const review = (kind: string, spec: object, metadata = {}): string[] =>
    texts(kindNamed(kind).strategy.validate?.({ metadata, spec } as never));
  assert.deepEqual(review('SelfSubjectAccessReview', {}), [
    'spec.resourceAttributes: Invalid value: "null": exactly one of nonResourceAttributes or resourceAttributes must be specified',
  ]);
  assert.deepEqual(review('SubjectAccessReview', { nonResourceAttributes: { path: '/' } }), [
    'spec.user: Invalid value: "": at least one of user or group must be specified',
  ]);
  assert.deepEqual(
    review('LocalSubjectAccessReview', { user: 'u', resourceAttributes: { namespace: 'a' } }, { namespace: 'b' }),
    ['spec.resourceAttributes.namespace: Invalid value: "a": must match metadata.namespace'],
  );
});
