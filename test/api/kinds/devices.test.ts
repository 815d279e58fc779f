/** Kinds of dynamic resource allocation: a change of the sample, and what is wrong with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, context, created, type Document, defaulted, kindNamed, texts } from './samples.ts';

const requests = (d: Document): Document[] => at(d, 'spec', 'devices')['requests'] as unknown as Document[];
const exactly = (d: Document): Record<string, unknown> => at(d, 'spec', 'devices', 'requests', 0, 'exactly');
const device = (d: Document): Record<string, unknown> => at(d, 'spec', 'devices', 0);

type Case = readonly [string, string, (document: Document) => unknown, string[]];

const CREATE: readonly Case[] = [
  [
    'a request of nothing',
    'ResourceClaim',
    (d) => delete requests(d)[0]?.['exactly'],
    ['spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required'],
  ],
  [
    'two of a name',
    'ResourceClaim',
    (d) => Object.assign(requests(d)[1] ?? {}, { name: 'gpu' }),
    [
      'spec.devices.requests[1].name: Duplicate value: "gpu"',
      'spec.devices.constraints[0].requests[1]: Invalid value: "net": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
      'spec.devices.config[0].requests[0]: Invalid value: "net/fast": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
    ],
  ],
  [
    'no class',
    'ResourceClaim',
    (d) => delete exactly(d)['deviceClassName'],
    ['spec.devices.requests[0].exactly.deviceClassName: Required value'],
  ],
  [
    'a count of all',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { allocationMode: 'All', count: 2 }),
    ["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
  ],
  [
    'less than one',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { count: -1 }),
    ['spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero'],
  ],
  [
    'a mode that is none',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { allocationMode: 'Some' }),
    [
      'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
    ],
  ],
  [
    'a selector without expression',
    'ResourceClaim',
    (d) => Object.assign(exactly(d), { selectors: [{}] }),
    ['spec.devices.requests[0].exactly.selectors[0].cel: Required value'],
  ],
  [
    'an attribute of nobody',
    'ResourceClaim',
    (d) => Object.assign(at(d, 'spec', 'devices', 'constraints', 0), { matchAttribute: 'numa' }),
    ['spec.devices.constraints[0].matchAttribute: Invalid value: "numa": must include a domain'],
  ],
  [
    'parameters that are no object',
    'ResourceClaim',
    (d) => Object.assign(at(d, 'spec', 'devices', 'config', 0, 'opaque'), { parameters: 'x' }),
    ['spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object'],
  ],
  [
    'parameters that are too long',
    'DeviceClass',
    (d) => Object.assign(at(d, 'spec', 'config', 0, 'opaque'), { parameters: { a: 'x'.repeat(10 * 1024) } }),
    ['spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes'],
  ],
  [
    'a resource of Kubernetes',
    'DeviceClass',
    (d) => Object.assign(at(d, 'spec'), { extendedResourceName: 'kubernetes.io/gpu' }),
    ['spec.extendedResourceName: Invalid value: "kubernetes.io/gpu": must be a valid extended resource name'],
  ],
  [
    'within a template',
    'ResourceClaimTemplate',
    (d) => delete at(d, 'spec', 'spec', 'devices', 'requests', 0)['name'],
    [
      'spec.spec.devices.requests[0].name: Required value',
      'spec.spec.devices.constraints[0].requests[0]: Invalid value: "gpu": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
    ],
  ],
  [
    'nodes twice',
    'ResourceSlice',
    (d) => Object.assign(at(d, 'spec'), { allNodes: true }),
    [
      'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
    ],
  ],
  [
    'no nodes',
    'ResourceSlice',
    (d) => delete at(d, 'spec')['nodeName'],
    [
      'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
    ],
  ],
  [
    'no slices',
    'ResourceSlice',
    (d) => Object.assign(at(d, 'spec', 'pool'), { resourceSliceCount: 0 }),
    ['spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero'],
  ],
  [
    'two values',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { a: { int: 1, bool: true } } }),
    ['spec.devices[0].attributes[a]: Invalid value: {"int":1,"bool":true}: exactly one value must be specified'],
  ],
  [
    'a version that is none',
    'ResourceSlice',
    (d) => Object.assign(device(d), { attributes: { a: { version: '1.2' } } }),
    [
      'spec.devices[0].attributes[a].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0',
    ],
  ],
  [
    'too many attributes',
    'ResourceSlice',
    (d) =>
      Object.assign(device(d), {
        attributes: Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`a${index}`, { int: 1 }])),
      }),
    ['spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32'],
  ],
  [
    'nodes of a device of a slice for a node',
    'ResourceSlice',
    (d) => Object.assign(device(d), { nodeName: 'n2' }),
    [
      'spec.devices[0].nodeName: Invalid value: "n2": nodeName can only be set if `perDeviceNodeSelection` is set to true in the slice',
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

test('samples are as they should be, and what is asked for once stays', () => {
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

test('a claim is reserved once it is allocated, for what its status names', () => {
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
    'status.reservedFor[1].uid: Duplicate value: "u"',
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
  const networkData = { ips: ['10.0.0.1'] };
  assert.match(
    statusErrors({ allocation, devices: [{ ...known, networkData }] }).join(),
    /networkData.ips\[0\]: .*must be a valid address in CIDR form/,
  );
});
