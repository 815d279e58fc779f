/** Upstream's documented rules: kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toUid } from '../../../../src/base/brand.ts';
import { mayStart } from '../../../../src/kubelet/core/eviction/admit.ts';
import {
  assess,
  isHard,
  isWellAboveThresholds,
  NO_PRESSURE,
  type Observations,
} from '../../../../src/kubelet/core/eviction/assess.ts';
import { exceededLimit } from '../../../../src/kubelet/core/eviction/local-storage.ts';
import { evictionMessage, refusalMessage } from '../../../../src/kubelet/core/eviction/messages.ts';
import { type Candidate, rankCandidates } from '../../../../src/kubelet/core/eviction/ranking.ts';
import {
  parseThresholds,
  type Signal,
  type ThresholdArguments,
} from '../../../../src/kubelet/core/eviction/thresholds.ts';

const MI = 1024 * 1024;

const settings = (args: ThresholdArguments, pressureTransitionMs = 300_000) => ({
  thresholds: parseThresholds(args),
  pressureTransitionMs,
  maxPodGraceSeconds: 0,
});

const seen = (of: Partial<Record<Signal, readonly [available: number, capacity: number]>>): Observations =>
  new Map(
    Object.entries(of).map(([signal, [available, capacity]]) => [signal as Signal, { available, capacity }] as const),
  );

describe('eviction thresholds', () => {
  test("eviction thresholds default to upstream's, and configured thresholds replace all defaults", () => {
    assert.deepEqual(
      parseThresholds({}).map(({ signal, value }) => [signal, value]),
      [
        ['memory.available', { quantity: 100 * MI }],
        ['nodefs.available', { fraction: 0.1 }],
        ['nodefs.inodesFree', { fraction: 0.05 }],
        ['imagefs.available', { fraction: 0.15 }],
        ['imagefs.inodesFree', { fraction: 0.05 }],
        ['pid.available', { fraction: 0.1 }],
      ],
    );
    assert.equal(parseThresholds({ hard: { 'nodefs.available': '5%' } }).length, 1);
    assert.equal(parseThresholds({ hard: {} }).length, 0);
  });

  test('a node is not under pressure only if its measurements exceed the thresholds by a margin', () => {
    const memory = settings({ hard: { 'memory.available': '100Mi' } });
    const disk = settings({ hard: { 'nodefs.available': '10%' } });
    const of = (signal: Signal, available: number) => seen({ [signal]: [available * MI, 1000 * MI] });
    assert.ok(isWellAboveThresholds(memory, of('memory.available', 151)));
    assert.ok(!isWellAboveThresholds(memory, of('memory.available', 149)));
    assert.ok(isWellAboveThresholds(disk, of('nodefs.available', 151)));
    assert.ok(!isWellAboveThresholds(disk, of('nodefs.available', 149)));
    assert.ok(!isWellAboveThresholds(disk, new Map()));
  });

  test('eviction thresholds have a grace period if soft, and may have a minimum reclaim', () => {
    const [hard, soft] = parseThresholds({
      hard: { 'memory.available': '100Mi' },
      soft: { 'memory.available': '300Mi' },
      softGracePeriods: { 'memory.available': 90_000 },
      minimumReclaim: { 'memory.available': '50Mi' },
    });
    assert.ok(hard !== undefined && soft !== undefined && isHard(hard) && !isHard(soft));
    assert.equal(soft.gracePeriodMs, 90_000);
    assert.deepEqual([hard.minimumReclaim, soft.minimumReclaim], [{ quantity: 50 * MI }, { quantity: 50 * MI }]);
  });

  for (const [args, wanted] of [
    [{ hard: { 'disk.available': '5%' } }, /^eviction-hard: unsupported eviction signal disk\.available/],
    [{ hard: { 'memory.available': 'lots' } }, /^eviction-hard: memory\.available: "lots"/],
    [{ hard: { 'memory.available': '-1' } }, /^eviction-hard: eviction threshold memory\.available must be positive/],
    [{ hard: { 'memory.available': '120%' } }, /must be between 0% and 100%/],
    [{ soft: { 'memory.available': '1Gi' } }, /^eviction-soft: grace period must be specified/],
    [{ minimumReclaim: { constructor: '1' } }, /^eviction-minimum-reclaim: unsupported/],
    [{ softGracePeriods: { x: 1 } }, /^eviction-soft-grace-period: unsupported/],
  ] as const)
    test(`eviction thresholds reject ${JSON.stringify(args)}`, () => {
      assert.throws(() => parseThresholds(args), { name: 'RangeError', message: wanted });
    });

  test('eviction thresholds are disabled with 0% and 100%', () => {
    assert.deepEqual(parseThresholds({ hard: { 'nodefs.available': '0%', 'imagefs.available': '100%' } }), []);
  });
});

describe('assessment of node pressure', () => {
  const low = seen({ 'nodefs.available': [5, 100] });
  const fine = seen({ 'nodefs.available': [50, 100] });
  const hard = { hard: { 'nodefs.available': '10%' } };

  test('reclaims at once below a hard threshold, but not exactly at the threshold', () => {
    assert.equal(assess(settings(hard), NO_PRESSURE, low, 0).reclaim.length, 1);
    assert.equal(assess(settings(hard), NO_PRESSURE, seen({ 'nodefs.available': [10, 100] }), 0).reclaim.length, 0);
    assert.equal(assess(settings(hard), NO_PRESSURE, new Map(), 0).reclaim.length, 0);
  });

  test('node pressure sets a condition at once and keeps the condition for the transition period', () => {
    const rules = settings(hard, 1_000);
    const first = assess(rules, NO_PRESSURE, low, 0);
    assert.deepEqual(first.pressures, ['DiskPressure']);
    const later = assess(rules, first.state, fine, 999);
    assert.deepEqual([later.pressures, later.reclaim.length], [['DiskPressure'], 0]);
    assert.deepEqual(assess(rules, later.state, fine, 1_000).pressures, []);
  });

  test('sets the condition of a soft threshold at once, and reclaims after its grace period', () => {
    const rules = settings({
      hard: {},
      soft: { 'nodefs.available': '10%' },
      softGracePeriods: { 'nodefs.available': 100 },
    });
    const first = assess(rules, NO_PRESSURE, low, 0);
    assert.deepEqual([first.pressures, first.reclaim.length], [['DiskPressure'], 0]);
    const interrupted = assess(rules, assess(rules, first.state, fine, 50).state, low, 100);
    assert.equal(interrupted.reclaim.length, 0);
    assert.equal(assess(rules, first.state, low, 99).reclaim.length, 0);
    assert.equal(assess(rules, first.state, low, 100).reclaim.length, 1);
  });

  test('eviction reclaims up to the minimum reclaim, but does not start between threshold and minimum', () => {
    const rules = settings({ ...hard, minimumReclaim: { 'nodefs.available': '20%' } });
    const between = seen({ 'nodefs.available': [25, 100] });
    assert.equal(assess(rules, NO_PRESSURE, between, 0).reclaim.length, 0);
    const met = assess(rules, NO_PRESSURE, low, 0);
    assert.equal(assess(rules, met.state, between, 1).reclaim.length, 1);
    assert.equal(assess(rules, met.state, seen({ 'nodefs.available': [30, 100] }), 1).reclaim.length, 0);
  });

  test('eviction reclaims for memory before other signals', () => {
    const { reclaim, pressures } = assess(
      settings({ hard: { 'pid.available': '10', 'nodefs.available': '10%', 'memory.available': '100Mi' } }),
      NO_PRESSURE,
      seen({ 'pid.available': [1, 100], 'nodefs.available': [1, 100], 'memory.available': [1, 1 << 30] }),
      0,
    );
    assert.deepEqual(
      reclaim.map(({ signal }) => signal),
      ['memory.available', 'pid.available', 'nodefs.available'],
    );
    assert.deepEqual(pressures, ['DiskPressure', 'MemoryPressure', 'PIDPressure']);
  });
});

describe('ranking of pods for eviction', () => {
  const one = (uid: string, more: Partial<Candidate>): Candidate => ({
    uid: toUid(uid),
    priority: 0,
    critical: false,
    requested: 0,
    used: 0,
    ...more,
  });
  const order = (resource: Parameters<typeof rankCandidates>[0], candidates: readonly Candidate[]): string =>
    rankCandidates(resource, candidates)
      .map(({ uid }) => uid)
      .join(' ');

  test('ranks pods by usage above requests, then by priority, then by the excess over requests', () => {
    const candidates = [
      one('within-low', { priority: -5, requested: 100, used: 90 }),
      one('over-high', { priority: 9, used: 1_000 }),
      one('over-little', { requested: 100, used: 110 }),
      one('over-much', { requested: 900, used: 950 }),
      one('within', { requested: 100, used: 100 }),
    ];
    assert.equal(order('memory', candidates), 'over-much over-little over-high within-low within');
    assert.equal(order('ephemeral-storage', candidates), 'over-much over-little over-high within-low within');
  });

  test('ranking never evicts critical pods, and ranks pods without measurements first', () => {
    const candidates = [
      one('critical', { critical: true, used: 1e9 }),
      one('big', { used: 1e6 }),
      one('unknown', { used: undefined, priority: 100 }),
    ];
    assert.equal(order('ephemeral-storage', candidates), 'unknown big');
    assert.equal(order('memory', [one('critical', { critical: true })]), '');
  });

  test('ranks pods by priority and then by the number of processes for the signal pid.available', () => {
    const candidates = [one('many', { priority: 1, used: 500 }), one('few', { used: 0 }), one('more', { used: 50 })];
    assert.equal(order('pids', candidates), 'more few many');
  });
});

describe('eviction messages', () => {
  test('eviction messages name the resource, the threshold and the containers above their requests', () => {
    const [threshold] = parseThresholds({ hard: { 'memory.available': '100Mi' } });
    assert.ok(threshold !== undefined);
    assert.equal(
      evictionMessage(threshold, seen({ 'memory.available': [50 * MI, 1 << 30] }), [
        { name: 'over', used: 200 * MI, requested: 64 * MI },
        { name: 'within', used: 10 * MI, requested: 64 * MI },
      ]),
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
        'Container over was using 200Mi, request is 64Mi, has larger consumption of memory. ',
    );
  });

  test('eviction messages convert percentages to quantities', () => {
    const [threshold] = parseThresholds({ hard: { 'nodefs.inodesFree': '5%' } });
    assert.ok(threshold !== undefined);
    assert.equal(
      evictionMessage(threshold, seen({ 'nodefs.inodesFree': [7, 1_000] }), []),
      'The node was low on resource: inodes. Threshold quantity: 50, available: 7. ',
    );
  });

  test('eviction messages name the conditions of a rejected pod', () => {
    assert.equal(
      refusalMessage(['DiskPressure', 'MemoryPressure']),
      'The node had condition: [DiskPressure MemoryPressure]. ',
    );
  });
});

describe('admission under node pressure', () => {
  const pod = { critical: false, bestEffort: false, toleratesMemoryPressure: false };
  for (const [arrival, pressures, may] of [
    [pod, [], true],
    [pod, ['DiskPressure'], false],
    [pod, ['PIDPressure'], false],
    [{ ...pod, critical: true }, ['DiskPressure', 'MemoryPressure', 'PIDPressure'], true],
    [pod, ['MemoryPressure'], true],
    [{ ...pod, bestEffort: true }, ['MemoryPressure'], false],
    [{ ...pod, bestEffort: true, toleratesMemoryPressure: true }, ['MemoryPressure'], true],
    [{ ...pod, toleratesMemoryPressure: true }, ['DiskPressure', 'MemoryPressure'], false],
  ] as const)
    test(`admission of ${JSON.stringify(arrival)} under [${pressures.join(' ')}]: ${may}`, () => {
      assert.equal(mayStart(arrival, pressures), may);
    });
});

describe('limits on local storage', () => {
  const limit = (mi: number) => ({ bytes: mi * MI, text: `${mi}Mi` });
  test('the limit of a volume is checked before the limit of its pod', () => {
    assert.equal(
      exceededLimit({
        shared: 0,
        volumes: [{ name: 'v', onDisk: true, limit: limit(1), used: 2 * MI }],
        containers: [{ name: 'c', limit: limit(1), used: 2 * MI }],
      }),
      'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
    );
  });

  test("limits a pod to the sum of its containers' limits, including volumes", () => {
    const containers = [
      { name: 'a', limit: limit(4), used: 2 * MI },
      { name: 'b', limit: limit(4), used: 3 * MI },
    ];
    const volume = (used: number) => [{ name: 'v', onDisk: true, limit: undefined, used }];
    assert.equal(exceededLimit({ volumes: volume(3 * MI), shared: 0, containers }), undefined);
    assert.equal(
      exceededLimit({ volumes: volume(3 * MI), shared: 1, containers }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. ',
    );
  });

  test('local storage of a container may not exceed the limit of the container', () => {
    assert.equal(
      exceededLimit({
        shared: 0,
        volumes: [],
        containers: [
          { name: 'a', limit: limit(1), used: MI + 1 },
          { name: 'b', limit: limit(9), used: 0 },
        ],
      }),
      'Container a exceeded its local ephemeral storage limit "1Mi". ',
    );
  });

  test('a pod without limits exceeds no limit on local storage', () => {
    assert.equal(
      exceededLimit({
        shared: 0,
        volumes: [{ name: 'v', onDisk: true, limit: undefined, used: 1e12 }],
        containers: [{ name: 'c', limit: undefined, used: 1e12 }],
      }),
      undefined,
    );
  });
});
