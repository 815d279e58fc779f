import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../../src/api/generated/core/v1.ts';
import {
  firstConfiguration,
  maxUnavailable,
  nextNodes,
} from '../../../../../src/openshift/machine-config/core/pools/candidates.ts';
import {
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  type MachineConfigPool,
} from '../../../../../src/openshift/machine-config/kinds/machine-config-types.ts';

interface Facts {
  readonly zone?: string;
  readonly created?: string;
  readonly desired?: string;
  readonly current?: string;
  readonly state?: string;
  readonly ready?: boolean;
  readonly cordoned?: boolean;
}

function host(name: string, facts: Facts = {}): Node {
  const { zone, created = '2026-01-01T00:00:00Z', desired = 'old', current = 'old', state = 'Done' } = facts;
  return {
    metadata: {
      name,
      creationTimestamp: created,
      labels: zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone },
      annotations: { [DESIRED_CONFIG]: desired, [CURRENT_CONFIG]: current, [CONFIG_STATE]: state },
    },
    spec: facts.cordoned === true ? { unschedulable: true } : {},
    status: { conditions: [{ type: 'Ready', status: facts.ready === false ? 'False' : 'True' }] },
  };
}

const pool = (name: string, spec: MachineConfigPool['spec'] = {}): MachineConfigPool => ({
  metadata: { name },
  spec: { configuration: { name: 'new' }, ...spec },
});
const names = (selection: ReturnType<typeof nextNodes>): string[] =>
  selection.next.map(({ metadata }) => metadata?.name ?? '');

test('orders nodes by zone and then by age, with nodes without a zone last', () => {
  const nodes = [
    host('plain', { created: '2025-01-01T00:00:00Z' }),
    host('b1', { zone: 'b', created: '2025-06-01T00:00:00Z' }),
    host('a2', { zone: 'a', created: '2026-06-01T00:00:00Z' }),
    host('a1', { zone: 'a', created: '2026-05-01T00:00:00Z' }),
  ];
  assert.deepEqual(names(nextNodes(pool('worker', { maxUnavailable: 4 }), nodes, undefined)), [
    'a1',
    'a2',
    'b1',
    'plain',
  ]);
  assert.deepEqual(names(nextNodes(pool('worker'), nodes, undefined)), ['a1']);
});

test('nodes that are unavailable or fail with the new config count against maxUnavailable', () => {
  const nodes = [host('a'), host('b'), host('c', { ready: false })];
  assert.deepEqual(names(nextNodes(pool('worker'), nodes, undefined)), []);
  assert.deepEqual(names(nextNodes(pool('worker', { maxUnavailable: 2 }), nodes, undefined)), ['a']);
  const cordoned = [host('a'), host('b', { cordoned: true })];
  assert.deepEqual(names(nextNodes(pool('worker'), cordoned, undefined)), []);
  const failing = [host('a'), host('b', { desired: 'new', state: 'Unreconcilable' })];
  assert.deepEqual(names(nextNodes(pool('worker'), failing, undefined)), []);
  const retargeted = [host('a', { desired: 'bad', state: 'Degraded' }), host('b', { desired: 'new', current: 'new' })];
  assert.deepEqual(names(nextNodes(pool('worker'), retargeted, undefined)), ['a']);
});

test('accepts maxUnavailable as a number or a percentage, rounded down to at least one node', () => {
  assert.equal(maxUnavailable(pool('worker', { maxUnavailable: '34%' }), 3), 1);
  assert.equal(maxUnavailable(pool('worker', { maxUnavailable: '67%' }), 3), 2);
  assert.equal(maxUnavailable(pool('worker', { maxUnavailable: 0 }), 3), 1);
  assert.equal(maxUnavailable(pool('worker', { maxUnavailable: null }), 3), 1);
  assert.equal(maxUnavailable(pool('worker', { maxUnavailable: 'many' }), 3), 1);
});

test('updates one master at a time, and the leader of the store last', () => {
  const masters = ['m1', 'm2', 'm3'].map((name) => host(name));
  const wide = pool('master', { maxUnavailable: 3 });
  const first = nextNodes(wide, masters, 'm1');
  assert.deepEqual(names(first), ['m2']);
  assert.equal(first.deferredLeader?.metadata?.name, 'm1');
  const last = [host('m1'), ...['m2', 'm3'].map((name) => host(name, { desired: 'new', current: 'new' }))];
  assert.deepEqual(names(nextNodes(wide, last, 'm1')), ['m1']);
});

test('updates no master if the other masters would lose the quorum', () => {
  const wide = pool('master', { maxUnavailable: 5 });
  for (const [ready, wanted] of [
    [1, []],
    [2, []],
    [3, ['m0']],
  ] as const) {
    const masters = [0, 1, 2].map((index) => host(`m${index}`, { ready: index < ready }));
    assert.deepEqual(names(nextNodes(wide, masters, undefined)), wanted, `${ready} of 3`);
  }
  assert.deepEqual(names(nextNodes(wide, [host('only')], 'only')), ['only']);
  assert.deepEqual(names(nextNodes(wide, [host('m0'), host('m1', { ready: false })], undefined)), []);
});

test('updates no node of a paused or deleted pool, and assigns the last completed config to a new node', () => {
  assert.deepEqual(names(nextNodes(pool('worker', { paused: true }), [host('a')], undefined)), []);
  const status = { configuration: { name: 'complete' } };
  const fresh = host('a', { desired: '', current: '' });
  assert.equal(firstConfiguration({ ...pool('worker', { paused: true }), status }, fresh), 'complete');
  assert.equal(firstConfiguration(pool('worker'), fresh), 'new');
  assert.equal(firstConfiguration(pool('worker'), host('b')), undefined);
});
