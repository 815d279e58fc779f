/** Inputs with the responses of upstream's current API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateVolumeSpec } from '../../../src/api/volumes/persistent.ts';
import { at, context, created, type Document, kindNamed, texts } from './samples.ts';

type Fields = Record<string, unknown>;

const volumes = kindNamed('PersistentVolume');
const claims = kindNamed('PersistentVolumeClaim');
const CLASS = 'volume.beta.kubernetes.io/storage-class';

function volume(spec: Fields): Document {
  return created('PersistentVolume', (each) => {
    each['spec'] = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec };
  });
}

const csi = { driver: 'd.example.com', volumeHandle: 'h' };

test('rejects invalid volumes', () => {
  const refused = (spec: Fields, ...errors: string[]): void => {
    assert.deepEqual(texts(volumes.strategy.validate?.(volume(spec))), errors);
  };
  refused({ csi, volumeAttributesClassName: 'fast' });
  refused(
    { csi, volumeAttributesClassName: '' },
    'spec.volumeAttributesClassName: Required value: an empty string is disallowed',
  );
  refused(
    { hostPath: { path: '/x' }, volumeAttributesClassName: 'fast' },
    'spec.csi: Required value: has to be specified when using volumeAttributesClassName',
  );
  refused(
    { csi: { ...csi, nodePublishSecretRef: { name: 's' }, controllerExpandSecretRef: { namespace: 'ns' } } },
    'spec.csi.controllerExpandSecretRef.name: Required value',
    'spec.csi.nodePublishSecretRef.namespace: Required value',
  );
  refused(
    { cephfs: { monitors: ['m'] }, gcePersistentDisk: { pdName: '' } },
    'spec.persistentDisk.pdName: Required value',
    'spec.cephFS: Forbidden: may not specify more than 1 volume type',
  );
  assert.deepEqual(
    texts(
      validateVolumeSpec(
        {
          csi,
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          volumeMode: 'Block',
          nodeAffinity: { required: { nodeSelectorTerms: [{}] } },
        },
        'spec',
        true,
      ),
    ),
    [
      'spec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes',
      'spec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes',
      'spec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes',
    ],
  );
});

test('validates changes of a volume', () => {
  const changed = (before: Fields, after: Fields): string[] =>
    texts(volumes.strategy.validateUpdate?.(volume(after), volume(before)));
  const secret = { name: 's', namespace: 'ns' };
  assert.deepEqual(changed({ csi }, { csi: { ...csi, controllerExpandSecretRef: secret } }), []);
  assert.deepEqual(changed({ csi: { ...csi, controllerExpandSecretRef: secret } }, { csi }).length, 1);
  const zone = (key: string): Fields => ({
    csi,
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: ['a'] }] }] },
    },
  });
  const [beta, ga] = [zone('failure-domain.beta.kubernetes.io/zone'), zone('topology.kubernetes.io/zone')];
  assert.deepEqual(changed(beta, ga), []);
  assert.match(
    changed(ga, beta)[0] ?? '',
    /^nodeAffinity: .*field is immutable, except for updating from beta label to GA$/,
  );
  assert.deepEqual(changed({ csi, volumeAttributesClassName: 'fast' }, { csi }), [
    'spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden',
  ]);
});

function claim(spec: Fields = {}, annotations: Fields = {}, status: Fields = { phase: 'Pending' }): Document {
  const document = created('PersistentVolumeClaim', (each) => {
    each.metadata['annotations'] = annotations;
    each['spec'] = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } }, ...spec };
  });
  document['status'] = status;
  return document;
}

const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

test('validates changes of a claim', () => {
  const bound = { phase: 'Bound', capacity: { storage: '1Gi' } };
  const changed = (before: Document, after: Document): string[] =>
    texts(claims.strategy.validateUpdate?.(after, before));
  assert.deepEqual(changed(claim({}, {}, bound), claim({ storageClassName: 'a' }, {}, bound)), []);
  assert.deepEqual(changed(claim({ storageClassName: 'a' }), claim({ storageClassName: 'b' })), [IMMUTABLE]);
  assert.deepEqual(changed(claim({}, { [CLASS]: 'a' }), claim({ storageClassName: 'b' }, { [CLASS]: 'c' })), [
    `metadata.annotations[${CLASS}]: Invalid value: "c": field is immutable`,
    IMMUTABLE,
  ]);
  const sized = (storage: string, status: Fields): Document =>
    claim({ resources: { requests: { storage } } }, {}, status);
  assert.deepEqual(changed(sized('3Gi', bound), sized('2Gi', bound)), []);
  assert.deepEqual(changed(sized('3Gi', bound), sized('1Gi', bound)), [
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ]);
  const attributes = (name: string | undefined, status: Fields): Document =>
    claim(name === undefined ? {} : { volumeAttributesClassName: name }, {}, status);
  assert.deepEqual(changed(attributes('a', bound), attributes('b', bound)), []);
  assert.deepEqual(changed(attributes('a', {}), attributes('b', {})), [IMMUTABLE]);
  const path = 'spec.volumeAttributesClassName: Forbidden: update from non-nil value to';
  assert.deepEqual(changed(attributes('a', bound), attributes(undefined, bound)), [`${path} nil is forbidden`]);
  assert.deepEqual(changed(attributes('a', bound), attributes('', bound)), [`${path} an empty string is forbidden`]);
});

test('validates data sources of claims', () => {
  const sources = (spec: Fields): unknown => {
    const { dataSource, dataSourceRef } = at(claim(spec), 'spec');
    return [dataSource, dataSourceRef];
  };
  const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'a' };
  const other = { apiGroup: 'example.com', kind: 'Image', name: 'a' };
  assert.deepEqual(sources({ dataSource: snapshot }), [snapshot, snapshot]);
  assert.deepEqual(sources({ dataSource: other }), [undefined, undefined]);
  assert.deepEqual(sources({ dataSourceRef: other }), [other, other]);
  assert.deepEqual(sources({ dataSourceRef: { ...snapshot, namespace: 'b' } }), [undefined, undefined]);
  const wrong = claim({ dataSourceRef: { ...other, apiGroup: '!' } });
  assert.match(
    texts(claims.strategy.validate?.(wrong))[0] ?? '',
    /^spec\.dataSource\.apiGroup: Invalid value: "!": a lowercase/,
  );
});

test('validates the status of a claim and warns about claims', () => {
  const old = claim();
  const status = { capacity: { storage: '-1' }, allocatedResourceStatuses: { storage: 'x' }, accessModes: ['x'] };
  const [amount, ...others] = texts(claims.statusStrategy?.validateUpdate?.(claim({}, {}, status), old));
  assert.equal(amount, 'status.capacity[storage]: Invalid value: "-1": must be a valid resource quantity');
  assert.match(
    others.join('|'),
    /^status\.allocatedResourceStatus\[storage\]: Unsupported value: "x": supported values: [^|]*$/,
  );
  const reported = claim({ resources: { requests: { storage: '0.5' } } }, { [CLASS]: 'a' });
  assert.deepEqual(claims.strategy.warnings?.(reported, undefined), [
    `metadata.annotations[${CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead`,
    'spec.resources.requests[storage]: fractional byte value "500m" is invalid, must be an integer',
  ]);
});

test('rejects invalid classes, drivers and attachments', () => {
  const refused = (kind: string, change: (each: Document) => unknown, ...errors: (string | RegExp)[]): void => {
    const { strategy } = kindNamed(kind);
    const document = created(kind, (each) => void change(each));
    const found = texts([...(strategy.validate?.(document) ?? []), ...(strategy.validateCreate?.(document) ?? [])]);
    assert.equal(found.length, errors.length, found.join('\n'));
    for (const [index, error] of errors.entries()) {
      if (typeof error === 'string') assert.equal(found[index], error);
      else assert.match(found[index] ?? '', error);
    }
  };
  const term = (values: string[], ...more: Fields[]) => ({
    matchLabelExpressions: [{ key: 'zone', values }, ...more],
  });
  const topologies =
    (...allowedTopologies: object[]) =>
    (each: Document) =>
      Object.assign(each, { allowedTopologies });
  refused('StorageClass', topologies(term(['a', 'b']), term(['a'])));
  refused(
    'StorageClass',
    topologies(term(['a', 'b']), term(['b', 'a'])),
    'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
  );
  refused('StorageClass', topologies({}), 'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""');
  refused(
    'StorageClass',
    topologies(term(['a', 'a'], { key: 'zone', values: [] })),
    'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    'allowedTopologies[0].matchLabelExpressions[1].values: Required value',
    'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
  );
  const parameters = Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`p${index}`, 'v']));
  refused(
    'VolumeAttributesClass',
    (each) => Object.assign(each, { parameters }),
    'parameters: Too long: may not be more than 512 bytes',
  );

  const spec = (fields: Fields) => (each: Document) => Object.assign(at(each, 'spec'), fields);
  const tokens = (...tokenRequests: Fields[]) => spec({ tokenRequests });
  refused('CSIDriver', (each) => Object.assign(each.metadata, { name: `${'a'.repeat(64)}` }));
  refused(
    'CSIDriver',
    tokens({ audience: 'a' }, { audience: 'a', expirationSeconds: 1 }),
    'spec.tokenRequests[1].audience: Duplicate value: "a"',
  );
  refused('CSIDriver', spec({ nodeAllocatableUpdatePeriodSeconds: 10, serviceAccountTokenInSecrets: true }));
  refused(
    'CSIDriver',
    spec({ tokenRequests: [], serviceAccountTokenInSecrets: false }),
    'spec.serviceAccountTokenInSecrets: Invalid value: false: may not be set without tokenRequests',
  );
  refused(
    'CSIDriver',
    spec({ nodeAllocatableUpdatePeriodSeconds: 9, volumeLifecycleModes: [''] }),
    'spec.volumeLifecycleModes: Unsupported value: "": supported values: "Persistent", "Ephemeral"',
    'spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds',
  );

  const driver = (nodeID: string, ...topologyKeys: string[]) =>
    spec({ drivers: [{ name: 'd', nodeID, topologyKeys }] });
  refused('CSINode', driver('n'.repeat(256)));
  refused(
    'CSINode',
    driver('ü'.repeat(129), 'a', 'a'),
    /nodeID: .*must be 256 characters or less/,
    'spec.drivers[0]: Duplicate value: "a"',
  );
  refused(
    'CSIStorageCapacity',
    (each) => Object.assign(each, { capacity: '-1024', maximumVolumeSize: '-1' }),
    'capacity: Invalid value: "-1024": must be greater than or equal to 0',
  );
  refused(
    'VolumeAttachment',
    spec({ attacher: '' }),
    'spec.attacher: Required value',
    'spec.attacher: Required value',
    /^spec.attacher: Invalid value: ""/,
  );
});

test('validates changes of classes, drivers and attachments', () => {
  const drivers = kindNamed('CSIDriver');
  const old = created(
    'CSIDriver',
    (each) => void Object.assign(at(each, 'spec'), { preventPodSchedulingIfMissing: true }),
  );
  assert.equal(old.metadata['generation'], 1);
  assert.equal(at(old, 'spec')['preventPodSchedulingIfMissing'], undefined);
  const changed = structuredClone(old);
  Object.assign(at(changed, 'spec'), { podInfoOnMount: true });
  drivers.strategy.prepareForUpdate?.(changed, old, context);
  assert.equal(changed.metadata['generation'], 2);

  const attachments = kindNamed('VolumeAttachment');
  const before = created('VolumeAttachment');
  const odd = structuredClone(before);
  Object.assign(at(odd, 'spec'), { attacher: 'Of_Old' });
  assert.deepEqual(texts(attachments.strategy.validate?.(odd, odd)), []);
  const status = {
    attached: false,
    attachmentMetadata: { '': 'x' },
    attachError: { message: 'x'.repeat(1025), errorCode: -1 },
  };
  assert.deepEqual(texts(attachments.statusStrategy?.validateUpdate?.({ ...before, status } as Document, before)), [
    'status.attachError.message: Too long: may not be more than 262144 bytes',
    'status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive',
  ]);

  const key = 'failure-domain.beta.kubernetes.io/zone';
  const why = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead';
  const allowedTopologies = [{ matchLabelExpressions: [{ key, values: ['a'] }] }];
  assert.deepEqual(
    kindNamed('StorageClass').strategy.warnings?.(
      { ...created('StorageClass'), allowedTopologies } as Document,
      undefined,
    ),
    [`allowedTopologies[0].matchLabelExpressions[0].key: ${why}`],
  );
  const nodeTopology = { matchExpressions: [{ key, operator: 'Exists' }], matchLabels: { [key]: 'a' } };
  assert.deepEqual(
    kindNamed('CSIStorageCapacity').strategy.warnings?.(
      { ...created('CSIStorageCapacity'), nodeTopology } as Document,
      undefined,
    ),
    [`nodeTopology.matchExpressions[0].key: ${key} is ${why}`, `nodeTopology.matchLabels.${key}: ${why}`],
  );
});
