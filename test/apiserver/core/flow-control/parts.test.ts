import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mandatoryLevels, suggestedSchemas } from '../../../../src/api/flow-control/defaults.ts';
import type { FlowSchema } from '../../../../src/api/generated/flowcontrol/v1.ts';
import { type AllocationClass, allocate } from '../../../../src/apiserver/core/flow-control/allocation.ts';
import { SeatDemand } from '../../../../src/apiserver/core/flow-control/demand.ts';
import { reconcileFlowObject } from '../../../../src/apiserver/core/flow-control/maintain.ts';
import { dealHand, flowHash } from '../../../../src/apiserver/core/flow-control/shuffle-sharding.ts';
import { estimateList, estimateWrite } from '../../../../src/apiserver/core/flow-control/work-estimate.ts';
import { Choices } from '../authorization/generators.ts';

const total = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

describe('shuffle sharding', () => {
  it('shuffle sharding deals distinct queues, all equally often in every position', () => {
    const [deck, hand, flows] = [16, 4, 20_000];
    const seen = Array.from({ length: hand }, () => new Array<number>(deck).fill(0));
    for (let flow = 0; flow < flows; flow++) {
      const cards = dealHand(flowHash('schema', `user-${flow}`), deck, hand);
      assert.equal(new Set(cards).size, hand);
      for (const [place, card] of cards.entries()) {
        assert.ok(Number.isInteger(card) && card >= 0 && card < deck);
        (seen[place] as number[])[card] = (seen[place]?.[card] ?? 0) + 1;
      }
    }
    for (const place of seen)
      for (const count of place) assert.ok(Math.abs(count - flows / deck) < 0.12 * (flows / deck));
  });

  it('shuffle sharding rarely deals the same hand to two flows, and deals the same hand to a flow every time', () => {
    const hands = new Set<string>();
    for (let flow = 0; flow < 2000; flow++) {
      hands.add(
        dealHand(flowHash('s', String(flow)), 128, 6)
          .sort((a, b) => a - b)
          .join(),
      );
    }
    assert.ok(hands.size >= 1999);
    assert.deepEqual(dealHand(flowHash('a', 'b'), 128, 6), dealHand(flowHash('a', 'b'), 128, 6));
    assert.notEqual(flowHash('a', 'bc'), flowHash('ab', 'c'));
    assert.deepEqual(dealHand(flowHash('all', ''), 5, 5).sort(), [0, 1, 2, 3, 4]);
  });
});

describe('allocation of seats', () => {
  /** Oracle: finds the fraction by bisection. */
  function slowly(sum: number, classes: readonly AllocationClass[]): number[] {
    let [low, high] = [0, 1e9];
    const at = (proportion: number): number[] =>
      classes.map(({ target, lower, upper }) => Math.max(lower, Math.min(upper, proportion * Math.max(target, 0.001))));
    for (let round = 0; round < 300; round++) {
      const middle = (low + high) / 2;
      if (total(at(middle)) < sum) low = middle;
      else high = middle;
    }
    return at(high);
  }

  it('allocation of seats is proportional within bounds, and distributes all seats', () => {
    const choices = new Choices(11);
    for (let round = 0; round < 2000; round++) {
      const classes = Array.from({ length: 1 + choices.below(9) }, () => {
        const lower = choices.below(40);
        return { lower, upper: lower + choices.below(80), target: lower + choices.below(60) };
      });
      const [least, most] = [total(classes.map(({ lower }) => lower)), total(classes.map(({ upper }) => upper))];
      const sum = least + choices.below(most - least + 1);
      const found = allocate(sum, classes)?.shares ?? [];
      assert.ok(Math.abs(total(found) - sum) < 1e-4, `round ${round}: ${total(found)} of ${sum}`);
      for (const [index, expected] of slowly(sum, classes).entries()) {
        assert.ok(Math.abs((found[index] ?? -1) - expected) < 1e-3, `round ${round}`);
      }
    }
  });

  it('allocation of seats is undefined if the bounds contradict the sum', () => {
    assert.equal(allocate(5, [{ target: 6, lower: 6, upper: 9 }]), undefined);
    assert.equal(allocate(10, [{ target: 6, lower: 6, upper: 9 }]), undefined);
    assert.deepEqual(allocate(0, [{ target: 0, lower: 0, upper: 9 }])?.shares, [0]);
  });

  it('demand is the time-weighted sum of seats in use and waiting', () => {
    const choices = new Choices(3);
    const demand = new SeatDemand(0);
    const values: number[] = [];
    let value = 0;
    for (let ms = 0; ms < 10_000; ms++) {
      if (choices.chance(0.02)) {
        value = choices.below(30);
        demand.set(value, ms);
      }
      values.push(value);
    }
    const statistics = demand.settle(10_000);
    const average = total(values) / values.length;
    const deviation = Math.sqrt(total(values.map((each) => (each - average) ** 2)) / values.length);
    assert.ok(Math.abs(statistics.average - average) < 1e-9);
    assert.ok(Math.abs(statistics.deviation - deviation) < 1e-6);
    assert.equal(statistics.highWatermark, Math.max(...values));
    assert.ok(Math.abs(statistics.smoothed - average - deviation) < 1e-6);
    demand.set(0, 10_000);
    const calm = demand.settle(20_000);
    assert.equal(calm.highWatermark, value);
    assert.ok(Math.abs(calm.smoothed - 0.977 * statistics.smoothed) < 1e-6, 'demand is forgotten slowly');
    assert.equal(demand.settle(30_000).highWatermark, 0);
  });
});

describe('seats of a request', () => {
  const all = { limit: undefined, fromCache: true, selective: false };
  it('a list takes one seat per hundred objects, at most ten, and at most the limit of the level', () => {
    const seats = (stored: number, most = 10): number => estimateList({ ...all, stored }, most).initialSeats;
    assert.deepEqual(
      [0, 1, 100, 101, 500, 5000].map((stored) => seats(stored)),
      [1, 1, 1, 2, 5, 10],
    );
    assert.equal(seats(5000, 3), 3);
    assert.equal(
      estimateList({ ...all, stored: 5000, limit: 100 }, 10).initialSeats,
      10,
      'the cache is looked through',
    );
    const stored = { stored: 1000, limit: 100, fromCache: false };
    assert.equal(estimateList({ ...stored, selective: false }, 10).initialSeats, 2);
    assert.equal(estimateList({ ...stored, limit: 10, stored: 300, selective: true }, 10).initialSeats, 4);
  });

  it('a write takes one seat, and further seats after its execution if many watches are notified', () => {
    assert.deepEqual(estimateWrite(9, 10), { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 });
    assert.deepEqual(estimateWrite(10, 10), { initialSeats: 1, finalSeats: 1, additionalLatencyMs: 5 });
    assert.deepEqual(estimateWrite(31, 10), { initialSeats: 1, finalSeats: 4, additionalLatencyMs: 5 });
    assert.equal(estimateWrite(5000, 10).finalSeats, 10);
  });
});

describe('default configuration objects', () => {
  const [wanted] = suggestedSchemas;
  const [exempt] = mandatoryLevels;
  assert.ok(wanted !== undefined && exempt !== undefined);
  const { spec } = wanted;
  assert.ok(spec !== undefined);
  const changed = (annotation: string | undefined, generation: number): FlowSchema => ({
    ...wanted,
    metadata: {
      name: wanted.metadata?.name ?? '',
      generation,
      ...(annotation === undefined ? {} : { annotations: { 'apf.kubernetes.io/autoupdate-spec': annotation } }),
    },
    spec: { ...spec, matchingPrecedence: 77 },
  });

  it('default configuration objects are restored only while the server manages them', () => {
    const mended = reconcileFlowObject(wanted, changed('true', 4), false);
    assert.deepEqual(mended?.spec, wanted.spec);
    assert.equal(reconcileFlowObject(wanted, changed('false', 1), false), undefined);
    const untouched = reconcileFlowObject(wanted, changed(undefined, 1), false);
    assert.deepEqual(untouched?.spec, wanted.spec);
    assert.equal(untouched?.metadata?.annotations?.['apf.kubernetes.io/autoupdate-spec'], 'true');
    const own = reconcileFlowObject(wanted, changed('perhaps', 2), false);
    assert.equal(own?.spec?.matchingPrecedence, 77);
    assert.equal(own?.metadata?.annotations?.['apf.kubernetes.io/autoupdate-spec'], 'false');
    assert.equal(reconcileFlowObject(wanted, { ...changed('true', 1), spec }, false), undefined);
  });

  it('default configuration objects are always restored if they are mandatory, except the shares of the exempt level', () => {
    assert.equal(reconcileFlowObject(wanted, changed('false', 3), true)?.spec?.matchingPrecedence, 500);
    const annotations = { 'apf.kubernetes.io/autoupdate-spec': 'false' };
    const own = {
      metadata: { name: 'exempt', annotations },
      spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 9, lendablePercent: 50 } },
    };
    assert.equal(reconcileFlowObject(exempt, own, true), undefined);
    const followed = {
      ...own,
      metadata: { ...own.metadata, annotations: { 'apf.kubernetes.io/autoupdate-spec': 'true' } },
    };
    assert.equal(reconcileFlowObject(exempt, followed, true)?.spec?.exempt?.nominalConcurrencyShares, 0);
  });
});
