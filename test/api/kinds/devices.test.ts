/** Validation of dynamic resource allocation: changes of the samples and the expected errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, context, created, type Document, defaulted, kindNamed, texts } from './samples.ts';

const requests = (d: Document): Document[] => at(d, 'spec', 'devices')['requests'] as unknown as Document[];
const exactly = (d: Document): Record<string, unknown> => at(d, 'spec', 'devices', 'requests', 0, 'exactly');
const device = (d: Document): Record<string, unknown> => at(d, 'spec', 'devices', 0);

type Case = readonly [string, string, (document: Document) => unknown, string[]];

const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/** A capacity of 10 with the request policy `policy`. */
const policy =
  (requestPolicy: object, allowMultipleAllocations = true) =>
  (d: Document): unknown =>
    Object.assign(device(d), { allowMultipleAllocations, capacity: { memory: { value: '10', requestPolicy } } });
const POLICY = 'spec.devices[0].capacity[memory].requestPolicy';

const CREATE: readonly Case[] = [
  [
    'a request policy requires allowMultipleAllocations',
    'ResourceSlice',
    policy({}, false),
    [`${POLICY}: Forbidden: allowMultipleAllocations must be true`],
  ],
  ['accepts a request policy with only a default', 'ResourceSlice', policy({ default: '20' }), []],
  ['accepts validValues with a default', 'ResourceSlice', policy({ default: '2', validValues: ['1', '2', '10'] }), []],
  [
    'validValues require a default',
    'ResourceSlice',
    policy({ validValues: ['1'] }),
    [`${POLICY}.default: Required value: required when validValues is defined`],
  ],
  [
    'rejects validValues together with validRange',
    'ResourceSlice',
    policy({ default: '1', validValues: ['1'], validRange: { min: '1' } }),
    [
      `${POLICY}: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`,
    ],
  ],
  [
    'rejects unsorted, duplicate and too large validValues',
    'ResourceSlice',
    policy({ default: '3', validValues: ['2', '1', '1', '11'] }),
    [
      `${POLICY}.validValues[1]: Invalid value: "1": values must be sorted in ascending order`,
      `${POLICY}.validValues[3]: Invalid value: "11": option is larger than capacity value: 10`,
      `${POLICY}.validValues[2]: Duplicate value: "1"`,
      `${POLICY}.validValues: Invalid value: "3": default value is not valid according to the requestPolicy`,
    ],
  ],
  [
    'accepts a validRange with a default',
    'ResourceSlice',
    policy({ default: '4', validRange: { min: '2', max: '8', step: '2' } }),
    [],
  ],
  [
    'validRange requires min',
    'ResourceSlice',
    policy({ default: '4', validRange: { max: '8' } }),
    [`${POLICY}.validRange.min: Required value: required when validRange is defined`],
  ],
  [
    'validRange requires a default',
    'ResourceSlice',
    policy({ validRange: { min: '1' } }),
    [`${POLICY}.default: Required value: required when validRange is defined`],
  ],
  [
    'rejects a validRange with min above max, capacity and default',
    'ResourceSlice',
    policy({ default: '13', validRange: { min: '14', max: '12' } }),
    [
      `${POLICY}.validRange.min: Invalid value: "14": min is larger than capacity value: 10`,
      `${POLICY}.validRange.default: Invalid value: "13": default is less than min: 14`,
      `${POLICY}.validRange.max: Invalid value: "14": min is larger than max: 12`,
      `${POLICY}.validRange.max: Invalid value: "12": max is larger than capacity value: 10`,
      `${POLICY}.validRange.default: Invalid value: "13": default is more than max: 12`,
    ],
  ],
  [
    'rejects a step that misses the default and max',
    'ResourceSlice',
    policy({ default: '4', validRange: { min: '1', max: '10', step: '9500m' } }),
    [
      `${POLICY}.validRange.step: Invalid value: "9500m": one step 10500m is larger than capacity value: 10`,
      `${POLICY}.validRange.step: Invalid value: "4": value is not a multiple of a given step (9500m) from (1)`,
      `${POLICY}.validRange.step: Invalid value: "10": value is not a multiple of a given step (9500m) from (1)`,
    ],
  ],
  [
    'rejects a step of zero',
    'ResourceSlice',
    policy({ default: '1', validRange: { min: '1', step: '0' } }),
    [`${POLICY}.validRange.step: Invalid value: "0": must be greater than zero`],
  ],
  [
    'accepts bindingConditions with bindingFailureConditions',
    'ResourceSlice',
    (d) => Object.assign(device(d), { bindingConditions: ['a'], bindingFailureConditions: ['b'] }),
    [],
  ],
  [
    'bindingConditions require bindingFailureConditions and must be unique',
    'ResourceSlice',
    (d) => Object.assign(device(d), { bindingConditions: ['a', 'a'] }),
    [
      'spec.devices[0].bindingConditions[1]: Duplicate value: "a"',
      'spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions',
    ],
  ],
  [
    'rejects a condition in both bindingConditions and bindingFailureConditions',
    'ResourceSlice',
    (d) => Object.assign(device(d), { bindingConditions: ['a'], bindingFailureConditions: ['a'] }),
    [
      'spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions',
    ],
  ],
  [
    'rejects more than four bindingConditions',
    'ResourceSlice',
    (d) => Object.assign(device(d), { bindingConditions: ['a', 'b', 'c', 'd', 'e'], bindingFailureConditions: ['f'] }),
    ['spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items'],
  ],
  [
    'drops list attributes and rejects an attribute without a value',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { a: { ints: [1] } }, nodeAllocatableResourceMappings: { cpu: {} } }),
    ['spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified'],
  ],
  [
    'rejects attribute names with an empty part or two slashes',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { 'a/b/c': { int: 1 }, '/b': { int: 1 }, 'a/': { int: 1 } } }),
    [
      'spec.devices[0].attributes: Invalid value: "a/b/c": must not contain more than one slash',
      'spec.devices[0].attributes: Invalid value: "": the domain must not be empty',
      'spec.devices[0].attributes: Invalid value: "": the name must not be empty',
    ],
  ],
  [
    'rejects devices together with sharedCounters',
    'ResourceSlice',
    (d) => Object.assign(at(d, 'spec'), { sharedCounters: [{ counters: { c: { value: '1' } } }] }),
    [
      'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
      'spec.sharedCounters[0].name: Required value',
    ],
  ],
  [
    'perDeviceNodeSelection requires nodes for each device',
    'ResourceSlice',
    (d) => {
      delete at(d, 'spec')['nodeName'];
      Object.assign(at(d, 'spec'), { perDeviceNodeSelection: true });
      Object.assign(device(d), { nodeName: '' });
    },
    [
      'spec.devices[0].nodeName: Invalid value: "": must not be empty',
      'spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec',
    ],
  ],
  [
    'accepts seventeen tolerations',
    'ResourceClaim',
    (d) =>
      Object.assign(exactly(d), { tolerations: [...Array.from({ length: 16 }, () => ({ key: 'k' })), { value: 'v' }] }),
    [],
  ],
  [
    'rejects tolerations with an invalid operator or value',
    'ResourceClaim',
    (d) =>
      Object.assign(exactly(d), {
        tolerations: [
          { operator: 'Exists', value: 'v' },
          { operator: 'Gt', key: 'k' },
        ],
      }),
    [
      'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`',
      'spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
    ],
  ],
  [
    'rejects a request with both exactly and firstAvailable, without further errors',
    'ResourceClaim',
    (d) => Object.assign(requests(d)[0] ?? {}, { firstAvailable: [{ name: 'a' }] }),
    [
      'spec.devices.requests[0]: Invalid value: "null": exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set',
    ],
  ],
  [
    'accepts a constraint with matchAttribute and distinctAttribute',
    'ResourceClaim',
    (d) => Object.assign(at(d, 'spec', 'devices', 'constraints', 0), { distinctAttribute: 'numa' }),
    [],
  ],
  [
    'rejects an extendedResourceName with a space',
    'DeviceClass',
    (d) => Object.assign(at(d, 'spec'), { extendedResourceName: 'example.com/g p' }),
    ['spec.extendedResourceName: Invalid value: "example.com/g p": must be a valid extended resource name'],
  ],
  [
    'a request requires exactly or firstAvailable',
    'ResourceClaim',
    (d) => delete requests(d)[0]?.['exactly'],
    ['spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required'],
  ],
  [
    'rejects two requests of the same name',
    'ResourceClaim',
    (d) => Object.assign(requests(d)[1] ?? {}, { name: 'gpu' }),
    [
      'spec.devices.requests[1]: Duplicate value: "gpu"',
      'spec.devices.constraints[0].requests[1]: Invalid value: "net": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
      'spec.devices.config[0].requests[0]: Invalid value: "net/fast": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
    ],
  ],
  [
    'an exact request requires deviceClassName',
    'ResourceClaim',
    (d) => delete exactly(d)['deviceClassName'],
    ['spec.devices.requests[0].exactly.deviceClassName: Required value'],
  ],
  [
    'rejects count with allocationMode All',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { allocationMode: 'All', count: 2 }),
    ["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
  ],
  [
    'rejects a count below one',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { count: -1 }),
    ['spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero'],
  ],
  [
    'rejects an unknown allocationMode',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { allocationMode: 'Some' }),
    [
      'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
    ],
  ],
  [
    'a selector requires a CEL expression',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { selectors: [{}] }),
    ['spec.devices.requests[0].exactly.selectors[0].cel: Required value'],
  ],
  [
    'rejects matchAttribute without a domain',
    'ResourceClaim',
    (d) => Object.assign(at(d, 'spec', 'devices', 'constraints', 0), { matchAttribute: 'numa' }),
    [
      'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified name must be a domain and a name separated by a slash',
    ],
  ],
  [
    'rejects opaque parameters that are not an object',
    'ResourceClaim',
    (d) => Object.assign(at(d, 'spec', 'devices', 'config', 0, 'opaque'), { parameters: 'x' }),
    ['spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object'],
  ],
  [
    'rejects opaque parameters above 10 KiB',
    'DeviceClass',
    (d) => Object.assign(at(d, 'spec', 'config', 0, 'opaque'), { parameters: { a: 'x'.repeat(10 * 1024) } }),
    ['spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes'],
  ],
  [
    'rejects an extendedResourceName in the domain kubernetes.io',
    'DeviceClass',
    (d) => Object.assign(at(d, 'spec'), { extendedResourceName: 'kubernetes.io/gpu' }),
    ['spec.extendedResourceName: Invalid value: "kubernetes.io/gpu": must be a valid extended resource name'],
  ],
  [
    'reports errors of the claim in a template with their full path',
    'ResourceClaimTemplate',
    (d) => delete at(d, 'spec', 'spec', 'devices', 'requests', 0)['name'],
    [
      `spec.spec.devices.requests[0].name: Invalid value: "": ${LABEL_RULE}`,
      'spec.spec.devices.constraints[0].requests[0]: Invalid value: "gpu": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
    ],
  ],
  [
    'rejects nodeName together with allNodes',
    'ResourceSlice',
    (d) => Object.assign(at(d, 'spec'), { allNodes: true }),
    [
      'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
    ],
  ],
  [
    'a slice requires a node selection',
    'ResourceSlice',
    (d) => delete at(d, 'spec')['nodeName'],
    [
      'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
    ],
  ],
  [
    'rejects a resourceSliceCount of zero',
    'ResourceSlice',
    (d) => Object.assign(at(d, 'spec', 'pool'), { resourceSliceCount: 0 }),
    ['spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero'],
  ],
  [
    'rejects an attribute with two values',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { a: { int: 1, bool: true } } }),
    ['spec.devices[0].attributes[a]: Invalid value: {"int":1,"bool":true}: exactly one value must be specified'],
  ],
  [
    'rejects an attribute version that is not semantic',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { a: { version: '1.2' } } }),
    [
      'spec.devices[0].attributes[a].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0',
    ],
  ],
  [
    'rejects more than 32 attributes and capacities',
    'ResourceSlice',
    (d) =>
      Object.assign(device(d), {
        attributes: Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`a${index}`, { int: 1 }])),
      }),
    ['spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32'],
  ],
  [
    'rejects node selection of a device without perDeviceNodeSelection',
    'ResourceSlice',
    (d) => Object.assign(device(d), { nodeName: 'n2' }),
    [
      'spec.devices[0]: Invalid value: "null": `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec',
    ],
  ],
];

for (const [what, kind, change, expected] of CREATE) {
  test(`${kind}: ${what}`, () => {
    const document = defaulted(kind, change);
    kindNamed(kind).strategy.prepareForCreate?.(document, context);
    assert.deepEqual(texts(kindNamed(kind).strategy.validate?.(document)), expected);
  });
}

test('accepts valid samples of device kinds and rejects changes of their spec', () => {
  for (const kind of ['DeviceClass', 'ResourceClaim', 'ResourceClaimTemplate', 'ResourceSlice']) {
    const { strategy } = kindNamed(kind);
    const old = created(kind);
    assert.deepEqual(texts(strategy.validate?.(old)), [], kind);
    assert.deepEqual(texts(strategy.validateUpdate?.(structuredClone(old), old)), [], kind);
  }
  const claim = created('ResourceClaim');
  const other = structuredClone(claim);
  exactly(other)['count'] = 2;
  const { strategy } = kindNamed('ResourceClaim');
  assert.match(texts(strategy.validateUpdate?.(other, claim)).join(), /^spec: Invalid value: .*field is immutable$/);
  const slice = created('ResourceSlice');
  const moved = structuredClone(slice);
  at(moved, 'spec')['driver'] = 'other.example.com';
  assert.deepEqual(texts(kindNamed('ResourceSlice').strategy.validateUpdate?.(moved, slice)), [
    'spec.driver: Invalid value: "other.example.com": field is immutable',
  ]);
});

test('allows reservations only for allocated claims', () => {
  const statusErrors = (status: object, before: object = {}) => {
    const old = { ...created('ResourceClaim'), status: before };
    const now = { ...structuredClone(old), status };
    return texts(kindNamed('ResourceClaim').statusStrategy?.validateUpdate?.(now, old));
  };
  const result = { request: 'gpu', driver: 'gpu.example.com', pool: 'n1', device: 'gpu-0' };
  const allocation = { devices: { results: [result] } };
  const consumer = { resource: 'pods', name: 'p', uid: 'u' };
  const { request: _, ...known } = result;
  assert.deepEqual(statusErrors({ allocation, reservedFor: [consumer], devices: [known] }), []);
  assert.deepEqual(statusErrors({ reservedFor: [consumer] }), [
    'status.reservedFor: Forbidden: may not be specified when `allocated` is not set',
  ]);
  assert.deepEqual(statusErrors({ allocation, reservedFor: [consumer, consumer] }), [
    'status.reservedFor[1]: Duplicate value: "u"',
  ]);
  assert.match(
    statusErrors({ allocation: {} }, { allocation }).join(),
    /^status.allocation: Invalid value: .*field is immutable$/,
  );
  assert.deepEqual(statusErrors({ allocation: { devices: { results: [{ ...result, request: 'none' }] } } }), [
    'status.allocation.devices.results[0].request: Invalid value: "none": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
  ]);
  assert.deepEqual(statusErrors({ allocation, devices: [{ ...known, device: 'gpu-1' }] }), [
    'status.devices[0]: Invalid value: "gpu.example.com/n1/gpu-1": must be an allocated device in the claim',
  ]);
  const share = '01234567-89ab-cdef-0123-456789abcdef';
  assert.deepEqual(statusErrors({ allocation: { devices: { results: [{ ...result, shareID: share }] } } }), []);
  const wrong = { shareID: `{${share.toUpperCase()}}`, bindingConditions: ['a'], tolerations: [{}] };
  const sources = [{ opaque: { driver: 'a', parameters: {} }, requests: ['none'] }];
  const at0 = 'status.allocation.devices.results[0]';
  assert.deepEqual(statusErrors({ allocation: { devices: { results: [{ ...result, ...wrong }], config: sources } } }), [
    `${at0}.bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions`,
    `${at0}.tolerations[0].operator: Required value`,
    `${at0}.shareID: Invalid value: "${wrong.shareID}": uid must be in RFC 4122 normalized form, \`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx\` with lowercase hexadecimal characters`,
    'status.allocation.devices.config[0].source: Required value',
    'status.allocation.devices.config[0].requests[0]: Invalid value: "none": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
  ]);
  for (const [shareID, why] of [
    ['abc', 'invalid UUID length: 3'],
    [`urn:abcd:${share}`, 'invalid urn prefix: "urn:abcd:"'],
    [`[${share}]`, 'invalid bracketed UUID format'],
    ['x'.repeat(36), 'invalid UUID format'],
  ]) {
    assert.deepEqual(statusErrors({ allocation: { devices: { results: [{ ...result, shareID }] } } }), [
      `${at0}.shareID: Invalid value: "${shareID}": error validating uid: ${why}`,
    ]);
  }
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'r', lastTransitionTime: '2026-01-01T00:00:00Z' },
    { type: 'Ready', status: 'Yes', observedGeneration: -1, reason: '0' },
  ];
  const conditionsAt = 'status.devices[0].conditions[1]';
  assert.deepEqual(
    statusErrors({ allocation, devices: [{ ...known, conditions }] }).map((text) =>
      text.replace(/ with alphabetic.*/, ''),
    ),
    [
      `${conditionsAt}.type: Duplicate value: "Ready"`,
      `${conditionsAt}.status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"`,
      `${conditionsAt}.observedGeneration: Invalid value: -1: must be greater than or equal to zero`,
      `${conditionsAt}.lastTransitionTime: Required value`,
      `${conditionsAt}.reason: Invalid value: "0": a condition reason must start`,
    ],
  );
  const networkData = { ips: ['10.0.0.1'] };
  assert.match(
    statusErrors({ allocation, devices: [{ ...known, networkData }] }).join(),
    /networkData.ips\[0\]: .*must be a valid address in CIDR form/,
  );
});

test('drops the status of released devices and skips unchanged parts of slices', () => {
  const result = { driver: 'gpu.example.com', pool: 'n1', device: 'gpu-0' };
  const allocation = { devices: { results: [{ ...result, request: 'gpu' }] } };
  const old = { ...created('ResourceClaim'), status: { allocation, devices: [result] } };
  const released = { ...structuredClone(old), status: { devices: [result] } };
  kindNamed('ResourceClaim').statusStrategy?.prepareForUpdate?.(released, old, context);
  assert.deepEqual(released.status, {});
  const kept = structuredClone(old);
  kindNamed('ResourceClaim').statusStrategy?.prepareForUpdate?.(kept, old, context);
  assert.deepEqual(kept.status, old.status);

  const { strategy } = kindNamed('ResourceSlice');
  const before = created('ResourceSlice');
  Object.assign(device(before), {
    capacity: { 'a/b/c': { value: '1' } },
    attributes: { a: { ints: [1] } },
    taints: [{}],
    nodeAllocatableResourceMappings: { cpu: {} },
  });
  const now = structuredClone(before);
  strategy.prepareForUpdate?.(now, before, context);
  assert.deepEqual(device(now)['attributes'], { a: { ints: [1] } });
  assert.deepEqual(device(now)['nodeAllocatableResourceMappings'], { cpu: {} });
  Object.assign(device(before), { taints: device(now)['taints'] });
  assert.deepEqual(texts(strategy.validate?.(now, before)), []);
  assert.equal(texts(strategy.validate?.(now)).length, 4);
  Object.assign(at(now, 'spec'), { driver: 'GPU.example.com' });
  assert.deepEqual(strategy.warnings?.(now, before), [
    'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters',
  ]);
  assert.deepEqual(strategy.warnings?.(before, undefined), []);
});
