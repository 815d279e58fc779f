/** Cases in which upstream's server and this one once differed, found by `test/upstream/differential.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateObjectMetaUpdate } from '../../../src/api/meta/validation.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { schemaOfType } from '../../../src/api/schema/index.ts';
import { at, context, created, type Document, defaulted, kindNamed, sample, texts } from './samples.ts';

type Change = (document: Document) => void;

const errorsOf = (kind: string, change: Change): string[] =>
  texts(kindNamed(kind).strategy.validate?.(created(kind, change)));

const volume =
  (name: string, source: object): Change =>
  (pod) => {
    at(pod, 'spec')['volumes'] = [{ name: 'data', [name]: source }];
  };

const CREATE: readonly [string, Change, readonly string[]][] = [
  [
    'Namespace',
    (d) => {
      d['spec'] = { finalizers: ['mine'] };
    },
    ['spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'],
  ],
  [
    'Namespace',
    (d) => {
      d['spec'] = { finalizers: ['orphan', 'example.com/mine'] };
    },
    [],
  ],
  [
    'Endpoints',
    (d) => {
      at(d, 'subsets', 0, 'ports', 0)['appProtocol'] = 'a/b/c';
    },
    [
      "subsets[0].ports[0].appProtocol: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ],
  ],
  [
    'VolumeAttachment',
    (d) => {
      at(d, 'spec', 'source')['inlineVolumeSpec'] = { accessModes: ['ReadWriteOnce'] };
    },
    ['spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
  ],
  [
    'FlowSchema',
    (d) => {
      at(d, 'spec', 'rules', 0, 'resourceRules', 0)['apiGroups'] = [];
    },
    ['spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group'],
  ],
  [
    'HorizontalPodAutoscaler',
    (d) => {
      at(d, 'spec', 'metrics', 0)['pods'] = {
        metric: { name: 'hits' },
        target: { type: 'AverageValue', averageValue: '1' },
      };
    },
    ['spec.metrics[0].pods: Forbidden: must populate the given metric source only'],
  ],
  ['Pod', volume('emptyDir', { medium: 'Whatever' }), []],
  [
    'Pod',
    volume('rbd', { image: 'i' }),
    ['spec.volumes[0].rbd.monitors: Required value', 'spec.containers[0].volumeMounts[0].name: Not found: "data"'],
  ],
  [
    'Pod',
    volume('gcePersistentDisk', { pdName: 'd', partition: 300 }),
    [
      'spec.volumes[0].persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive',
      'spec.containers[0].volumeMounts[0].name: Not found: "data"',
    ],
  ],
  [
    'PersistentVolume',
    (d) => {
      at(d, 'spec')['scaleIO'] = { gateway: 'g' };
    },
    [
      'spec.scaleIO.system: Required value',
      'spec.scaleIO.volumeName: Required value',
      'spec.local: Forbidden: may not specify more than 1 volume type',
    ],
  ],
  [
    'Pod',
    (d) => {
      at(d, 'spec')['securityContext'] = { windowsOptions: { runAsUserName: 'DOMAIN\\a/b', gmsaCredentialSpec: '' } };
    },
    [
      'spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
      'spec.securityContext.windowsOptions.runAsUserName: Invalid value: "DOMAIN\\\\a/b": runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]',
    ],
  ],
  [
    'Pod',
    (d) => {
      at(d, 'spec')['schedulerName'] = 'Not a name';
      at(d, 'spec')['imagePullSecrets'] = [{ name: 'Not a name' }];
    },
    [],
  ],
];

test('rejects the same new objects as upstream', () => {
  for (const [kind, change, expected] of CREATE) assert.deepEqual(errorsOf(kind, change), expected, kind);
});

test('an annotation change increases the generation of a deployment, but not of an EndpointSlice', () => {
  const generation = (kind: string, change: Change): unknown => {
    const old = created(kind);
    const next = structuredClone(old);
    change(next);
    kindNamed(kind).strategy.prepareForUpdate?.(next, old, context);
    return next.metadata['generation'];
  };
  const annotate: Change = (d) => {
    d.metadata['annotations'] = { a: 'b' };
  };
  const label: Change = (d) => {
    d.metadata['labels'] = { a: 'b' };
  };
  assert.deepEqual([generation('Deployment', annotate), generation('Deployment', label)], [2, 1]);
  assert.deepEqual([generation('EndpointSlice', annotate), generation('EndpointSlice', label)], [1, 2]);
});

test('keeps the deletion time of a pod on status updates', () => {
  const old = created('Pod');
  const next = structuredClone(old);
  next.metadata['deletionTimestamp'] = '2020-01-01T00:00:00Z';
  kindNamed('Pod').statusStrategy?.prepareForUpdate?.(next, old, context);
  assert.equal(next.metadata['deletionTimestamp'], undefined);
});

test('stores the template generation of a daemon set in an annotation', () => {
  const strategy = kindNamed('DaemonSet').strategy;
  const of = (d: Document): unknown =>
    (d.metadata['annotations'] as Record<string, string>)['deprecated.daemonset.template.generation'];
  const first = created('DaemonSet');
  assert.equal(of(first), '1');
  const unset = structuredClone(first);
  delete unset.metadata['annotations'];
  kindNamed('DaemonSet').setDefaults?.(unset);
  assert.equal(of(unset), '0', 'before it is counted it is none, which is owned by who left it out');
  const same = structuredClone(first);
  same.metadata['annotations'] = {};
  strategy.prepareForUpdate?.(same, first, context);
  assert.equal(of(same), '1');
  const next = structuredClone(same);
  at(next, 'spec', 'template', 'spec')['hostNetwork'] = true;
  strategy.prepareForUpdate?.(next, same, context);
  assert.equal(of(next), '2');
});

test('copies the labels of the pod template to a job without labels, including generated labels', () => {
  const labels = (change?: Change): unknown => Object.keys((created('Job', change).metadata['labels'] ?? {}) as object);
  const generated = [
    'batch.kubernetes.io/job-name',
    'job-name',
    'batch.kubernetes.io/controller-uid',
    'controller-uid',
  ];
  assert.deepEqual(labels(), ['app', ...generated]);
  assert.deepEqual(
    labels((job) => {
      job.metadata['labels'] = { own: 'label' };
    }),
    ['own'],
  );
});

test('status updates of some kinds keep all stored metadata', () => {
  for (const kind of ['CustomResourceDefinition', 'FlowSchema', 'PriorityLevelConfiguration', 'APIService']) {
    const old = created(kind);
    const next = structuredClone(old);
    next.metadata['labels'] = { a: 'b' };
    kindNamed(kind).statusStrategy?.prepareForUpdate?.(next, old, context);
    assert.equal(next.metadata['labels'], undefined, kind);
  }
});

test('shows empty node info and keeps podCIDR equal to the first of podCIDRs', () => {
  const node = defaulted('Node', (d) => {
    d['spec'] = { podCIDR: '10.2.0.0/24', podCIDRs: ['10.1.0.0/24'] };
    d['status'] = { nodeInfo: { osImage: 'Debian' } };
  });
  assert.deepEqual(at(node, 'spec')['podCIDRs'], ['10.2.0.0/24']);
  assert.deepEqual(at(node, 'status', 'daemonEndpoints'), { kubeletEndpoint: { Port: 0 } });
  assert.equal(at(node, 'status', 'nodeInfo')['kernelVersion'], '');
});

test('field skeletons of built-in kinds contain only existing fields', () => {
  const known = builtinKinds.filter(({ skeleton }) => skeleton !== undefined);
  assert.ok(known.length >= 40, String(known.length));
  for (const { schemaName, skeleton = {} } of known) {
    const schema = schemaOfType(schemaName);
    assert.ok(schema?.kind === 'object', schemaName);
    for (const field of Object.keys(skeleton)) assert.ok(schema.fields.has(field), `${schemaName}.${field}`);
  }
});

/** The kind's sample with a change, decoded and defaulted. */
function readAs(kind: string, change: Change): Document {
  const document = structuredClone(sample(kind)) as unknown as Document;
  change(document);
  const definition = kindNamed(kind);
  const schema = schemaOfType(definition.schemaName);
  assert.ok(schema !== undefined, kind);
  assert.deepEqual(pruneAndCheck(schema, document).typeErrors, []);
  definition.setDefaults?.(document);
  return document;
}

test('omits empty fields unless upstream distinguishes them from absent ones', () => {
  const pod = readAs('Pod', (d) => {
    Object.assign(at(d, 'spec'), { hostNetwork: false, hostname: '', hostAliases: [], enableServiceLinks: false });
    Object.assign(at(d, 'spec'), {
      terminationGracePeriodSeconds: 0,
      dnsPolicy: '',
      automountServiceAccountToken: false,
    });
  });
  const { hostNetwork, hostname, hostAliases, dnsPolicy, enableServiceLinks } = at(pod, 'spec');
  assert.deepEqual([hostNetwork, hostname, hostAliases, dnsPolicy], [undefined, undefined, undefined, 'ClusterFirst']);
  assert.equal(enableServiceLinks, false);
  assert.equal(at(pod, 'spec')['terminationGracePeriodSeconds'], 0);
  assert.equal(at(pod, 'spec')['automountServiceAccountToken'], false);

  const deployment = readAs('Deployment', (d) => {
    Object.assign(at(d, 'spec'), { replicas: 0, minReadySeconds: 0, revisionHistoryLimit: 0, paused: false });
  });
  const { replicas, minReadySeconds, revisionHistoryLimit, paused } = at(deployment, 'spec');
  assert.deepEqual([replicas, minReadySeconds, revisionHistoryLimit, paused], [0, undefined, 0, undefined]);
});

const EMPTY_POLICIES: readonly [string, Change, string][] = [
  [
    'StorageClass',
    (d) => Object.assign(d, { volumeBindingMode: '' }),
    'volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer"',
  ],
  ['PriorityClass', (d) => Object.assign(d, { preemptionPolicy: '' }), 'preemptionPolicy: Required value'],
  [
    'NetworkPolicy',
    (d) => Object.assign(at(d, 'spec', 'ingress', 0, 'ports', 0), { protocol: '' }),
    'spec.ingress[0].ports[0].protocol: Unsupported value: "": supported values: "TCP", "UDP", "SCTP"',
  ],
  [
    'ValidatingWebhookConfiguration',
    (d) => Object.assign(at(d, 'webhooks', 0), { failurePolicy: '' }),
    'webhooks[0].failurePolicy: Unsupported value: "": supported values: "Fail", "Ignore"',
  ],
  [
    'PersistentVolumeClaim',
    (d) => Object.assign(at(d, 'spec'), { volumeMode: '' }),
    'spec.volumeMode: Unsupported value: "": supported values: "Block", "Filesystem"',
  ],
];

test('does not default an empty string that differs from an absent field', () => {
  for (const [kind, change, expected] of EMPTY_POLICIES) {
    const errors = texts(kindNamed(kind).strategy.validate?.(readAs(kind, change)));
    assert.deepEqual(errors, [expected], kind);
  }
});

test('ignores deletion fields on updates and validates generateName', () => {
  const old = created('ConfigMap');
  const next = structuredClone(old);
  Object.assign(next.metadata, { deletionGracePeriodSeconds: 5, generateName: 'Not Valid!' });
  Object.assign(next.metadata, { ownerReferences: [{ name: 'x' }] });
  const fields = validateObjectMetaUpdate(next, old, kindNamed('ConfigMap')).map(({ field }) => field);
  assert.deepEqual(fields, [
    'metadata.ownerReferences.apiVersion',
    'metadata.ownerReferences.kind',
    'metadata.ownerReferences.uid',
    'metadata.generateName',
    'metadata.deletionGracePeriodSeconds',
  ]);
});

const EVENT = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'x', namespace: 'ns' },
  involvedObject: { kind: 'Pod', namespace: 'ns', name: 'p' },
  reason: 'Started',
  type: 'Normal',
  action: 'Start',
  eventTime: '2026-01-02T03:04:05.000000Z',
  reportingComponent: 'example.com/kubelet',
  reportingInstance: 'n1',
};

test('requires a reporting controller for events with eventTime and rejects deprecated fields in events.k8s.io/v1', () => {
  const { strategy } = kindNamed('Event');
  const found = (change: object, apiVersion = 'events.k8s.io/v1', old?: object): string[] => {
    const event = { ...structuredClone(EVENT), ...change } as unknown as Document;
    return texts([
      ...(strategy.validate?.(event) ?? []),
      ...(strategy.validateVersion?.(apiVersion, event, old as Document | undefined) ?? []),
    ]);
  };
  assert.deepEqual(found({}), []);
  const older = { eventTime: undefined, type: 'Odd', count: 1, firstTimestamp: '2026-01-02T03:04:05Z' };
  assert.deepEqual(found(older, 'v1'), []);
  assert.deepEqual(found(older), [
    'eventTime: Required value',
    'type: Invalid value: "": has invalid value: Odd',
    'firstTimestamp: Invalid value: "": needs to be unset',
    'count: Invalid value: "": needs to be unset',
  ]);
  assert.deepEqual(found({ action: '', reportingInstance: 'x'.repeat(129) }, 'v1'), [
    'reportingInstance: Invalid value: "": can have at most 128 characters',
    'action: Required value',
  ]);
  assert.deepEqual(found({ series: { count: 1 } }), [
    'series.count: Invalid value: "": should be at least 2',
    'series.lastObservedTime: Required value',
  ]);
  const series = { count: 2, lastObservedTime: '2026-01-02T03:04:06.000000Z' };
  assert.deepEqual(found({ series }, 'events.k8s.io/v1', EVENT), []);
  assert.deepEqual(found({ series, reason: 'Other' }, 'events.k8s.io/v1', EVENT), [
    'reason: Invalid value: "Other": field is immutable',
  ]);
  assert.deepEqual(found({ eventTime: undefined, metadata: { name: 'x', namespace: 'kube-system' } }, 'v1'), [
    'involvedObject.namespace: Invalid value: "ns": does not match event.namespace',
  ]);
});
