import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edgeConfig } from '../../../src/gossip/core/index.ts';
import type { GossipMessage } from '../../../src/gossip/core/port.ts';
import {
  detectionTimes,
  disagreements,
  type Fault,
  falsePositives,
  type Scenario,
  seeded,
  simulate,
} from './simulation.ts';

const calm: Scenario = {
  members: 8,
  durationMs: 60_000,
  loss: 0.05,
  duplication: 0.02,
  delayMs: [0.2, 20],
  faults: [],
};
/** The shortest suspicion lasts 4 probe intervals. Half a round of probing, one probe and the broadcast are added. */
const DETECTION_BOUND_MS = 20_000;

/** Random faults, followed by a minute without faults in which the ring must converge. */
function randomScenario(seed: number): Scenario {
  const random = seeded(seed ^ 0x5eed);
  const members = 3 + Math.floor(random() * 8);
  const faults: Fault[] = [];
  const count = 1 + Math.floor(random() * 5);
  const doomed = Math.floor(random() * members);
  for (let i = 0; i < count; i++) {
    const atMs = 3000 + random() * 20_000;
    const node = Math.floor(random() * members);
    const forMs = 500 + random() * 20_000;
    const kind = Math.floor(random() * 4);
    if (kind === 0) faults.push({ atMs, kind: 'crash', node: doomed });
    else if (kind === 1) faults.push({ atMs, kind: 'pause', node, forMs });
    else if (kind === 2) faults.push({ atMs, kind: 'partition', side: Math.floor(random() * (1 << members)), forMs });
    else faults.push({ atMs, kind: 'leave', node: doomed });
  }
  return { ...calm, members, durationMs: 45_000 + 60_000, loss: random() * 0.1, faults };
}

test('all members of a gossip ring agree on the states of members after random faults have ended', (t) => {
  const begin = performance.now();
  let seeds = 0;
  for (let seed = 1; seed <= 60 && performance.now() - begin < 6000; seed++) {
    const scenario = randomScenario(seed);
    // A leaving member that is partitioned or stopped meanwhile may be recorded as failed instead of left.
    const run = simulate(seed, scenario);
    const leavers = scenario.faults.flatMap((fault) => (fault.kind === 'leave' ? [fault.node] : []));
    const wrong = disagreements(run, scenario).filter(
      (each) =>
        !leavers.some((node) => each.endsWith(`takes n${node} for dead`) || each.endsWith(`takes n${node} for left`)),
    );
    assert.deepEqual(wrong, [], `seed ${seed}: ${JSON.stringify(scenario.faults)}`);
    seeds++;
  }
  t.diagnostic(`${seeds} seeds`);
  assert.ok(seeds >= 5);
});

test('the same seed produces the same run of the gossip simulation', () => {
  const scenario = randomScenario(7);
  assert.equal(simulate(7, scenario).hash, simulate(7, scenario).hash);
  assert.notEqual(simulate(7, scenario).hash, simulate(8, scenario).hash);
});

test('every member detects a crash within the time bound, without false suspicions', () => {
  for (let seed = 1; seed <= 8; seed++) {
    const scenario: Scenario = { ...calm, faults: [{ atMs: 20_000, kind: 'crash', node: 3 }] };
    const run = simulate(seed, scenario);
    for (const ms of detectionTimes(run, scenario)) assert.ok(ms <= DETECTION_BOUND_MS, `seed ${seed}: ${ms} ms`);
    assert.deepEqual(falsePositives(run, scenario), [], `seed ${seed}`);
    assert.deepEqual(disagreements(run, scenario), [], `seed ${seed}`);
  }
});

test('three hosts detect a crash within four seconds at 10 % datagram loss, and tolerate pauses of 1.5 s', () => {
  const small: Scenario = { ...calm, members: 3, durationMs: 40_000, config: edgeConfig };
  for (let seed = 1; seed <= 20; seed++) {
    const crash: Scenario = { ...small, loss: 0.1, faults: [{ atMs: 15_000, kind: 'crash', node: 2 }] };
    const times = detectionTimes(simulate(seed, crash), crash);
    assert.ok(times.length > 0 && times.every((ms) => ms <= 4000), `seed ${seed}: ${times.join(', ')} ms`);
    const faults: Fault[] = [];
    for (let i = 0; i < 12; i++) faults.push({ atMs: 5000 + i * 2000, kind: 'pause', node: 0, forMs: 1500 });
    const stutter: Scenario = { ...small, faults };
    assert.deepEqual(falsePositives(simulate(seed, stutter), stutter), [], `seed ${seed}`);
  }
});

test('a member that leaves the gossip ring is not reported as failed', () => {
  const scenario: Scenario = { ...calm, faults: [{ atMs: 20_000, kind: 'leave', node: 2 }] };
  const run = simulate(3, scenario);
  assert.deepEqual(disagreements(run, scenario), []);
  const seen = run.observations.filter((each) => each.about === 2 && each.atMs >= 20_000).map((each) => each.kind);
  assert.deepEqual(seen, new Array(7).fill('left'));
});

test('Lifeguard prevents that members with short pauses are declared dead', () => {
  const faults: Fault[] = [];
  for (let i = 0; i < 30; i++)
    for (const node of [0, 1]) faults.push({ atMs: 5000 + i * 2000 + node * 700, kind: 'pause', node, forMs: 1900 });
  // The shortest suspicion of hosts, in multiples of their probe interval.
  const config = { suspicionMult: 3 };
  const guarded: Scenario = { ...calm, members: 12, loss: 0.02, durationMs: 90_000, faults, config };
  const plain: Scenario = { ...guarded, config: { ...config, awarenessLimit: 1, suspicionMaxMult: 1, stallMs: 1e12 } };
  let withGuard = 0;
  let without = 0;
  for (let seed = 1; seed <= 6; seed++) {
    withGuard += falsePositives(simulate(seed, guarded), guarded).length;
    without += falsePositives(simulate(seed, plain), plain).length;
  }
  assert.equal(withGuard, 0);
  assert.ok(without > 0, 'the load must be one that plain SWIM fails under');
});

test('the checks detect a planted bug: a member that never receives accusations cannot refute them', () => {
  const hear = (node: string, message: GossipMessage): GossipMessage | undefined =>
    (message.kind === 'suspect' || message.kind === 'dead') && message.node === node ? undefined : message;
  const faults: Fault[] = [{ atMs: 10_000, kind: 'pause', node: 1, forMs: 15_000 }];
  const healthy: Scenario = { ...calm, faults };
  assert.deepEqual(disagreements(simulate(5, healthy), healthy), []);
  const broken: Scenario = { ...healthy, hear };
  assert.notDeepEqual(disagreements(simulate(5, broken), broken), []);
  assert.notDeepEqual(falsePositives(simulate(5, broken), broken), []);
});

test('the checks detect a planted bug: without reconnects to dead members, a split ring never merges', () => {
  const faults: Fault[] = [{ atMs: 10_000, kind: 'partition', side: 0b1111, forMs: 60_000 }];
  const healthy: Scenario = { ...calm, durationMs: 130_000, faults };
  assert.deepEqual(disagreements(simulate(6, healthy), healthy), []);
  const broken: Scenario = { ...healthy, config: { reconnectIntervalMs: 1e12 } };
  assert.notDeepEqual(disagreements(simulate(6, broken), broken), []);
});

test('the checks detect a planted bug: a suspicion never becomes a death within the time bound', () => {
  const faults: Fault[] = [{ atMs: 20_000, kind: 'crash', node: 3 }];
  const broken: Scenario = { ...calm, faults, config: { suspicionMult: 1000 } };
  assert.ok(detectionTimes(simulate(4, broken), broken).some((ms) => ms > DETECTION_BOUND_MS));
});
