import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCondition, transitionTime, withCondition } from '../../../src/api/meta/conditions.ts';
import { generator } from '../../support/random.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly lastTransitionTime?: string;
}

test('updates lastTransitionTime only when the status of a condition changes, and keeps the order of conditions', () => {
  const random = generator(5);
  const pick = (texts: readonly string[]): string => texts[Math.floor(random() * texts.length)] ?? '';
  for (let run = 0; run < 300; run++) {
    let conditions: Condition[] | undefined;
    // Oracle: all conditions that were set, in order.
    const history: (Condition & { readonly at: string })[] = [];
    for (let step = 0; step < 40; step++) {
      const condition = { type: pick(['A', 'B', 'C']), status: pick(['True', 'False', 'Unknown']), reason: `${step}` };
      const at = `time ${step}`;
      const before = structuredClone(conditions);
      const next: Condition[] = withCondition(conditions, condition, at);
      assert.deepEqual(conditions, before);
      conditions = next;
      history.push({ ...condition, at });
    }
    const types = [...new Set(history.map(({ type }) => type))];
    const expected = types.map((type) => {
      const own = history.filter((each) => each.type === type);
      const { status, reason } = own.at(-1) ?? assert.fail();
      const since = own.findLastIndex((each) => each.status !== status) + 1;
      return { type, status, reason, lastTransitionTime: own[since]?.at };
    });
    assert.deepEqual(conditions, expected);
    for (const type of ['A', 'B', 'C'])
      assert.deepEqual(
        findCondition(conditions, type),
        expected.find((each) => each.type === type),
      );
  }
});

test('conditions without a transition time get the current time', () => {
  assert.equal(transitionTime({ status: 'True' }, 'True', 'now'), 'now');
  assert.equal(transitionTime({ status: 'True', lastTransitionTime: null }, 'True', 'now'), 'now');
  assert.equal(findCondition(undefined, 'A'), undefined);
});
