import assert from 'node:assert/strict';
import { it } from 'node:test';
import '../../../src/base/json/json.ts';
import { atOnce } from '../../../src/base/concurrency/steps.ts';
import { jsonSteps } from '../../../src/base/json/json-steps.ts';
import { Choices } from '../../apiserver/core/patch/choices.ts';

const KEYS = ['a', '1', '__proto__', 'toJSON', 'ä"\\', '', 'constructor'];
const LEAVES = [null, true, 0, -1.5, 9007199254740993n, 'x', '\ud800"\n', '', undefined, 'y'.repeat(5000)];

function random(choices: Choices, depth: number): unknown {
  const roll = choices.below(10);
  if (depth === 0 || roll < 3) return LEAVES[choices.below(LEAVES.length)];
  const length = roll === 9 ? 1_100 : choices.below(6);
  const children = Array.from({ length }, (_, at) => [
    choices.chance(0.5) ? choices.one(KEYS) : `k${at}`,
    random(choices, roll === 9 ? 0 : depth - 1),
  ]);
  if (choices.chance(0.4)) return children.map(([, value]) => value);
  return Object.fromEntries(children) as object;
}

it('formatting JSON in steps returns the same text as JSON.stringify', () => {
  let steps = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const choices = new Choices(seed);
    const value = { all: Array.from({ length: 20 }, () => random(choices, 4)), of: random(choices, 3) };
    const writing = jsonSteps(value);
    for (let step = writing.next(); ; step = writing.next()) {
      if (step.done === true) {
        assert.equal(step.value, JSON.stringify(value), `seed ${seed}`);
        break;
      }
      steps += 1;
    }
  }
  assert.ok(steps > 100, `${steps} steps`);
  const deep = JSON.parse(`${'['.repeat(500)}${'[],'.repeat(3000)}[]${']'.repeat(500)}`) as object;
  assert.equal(atOnce(jsonSteps(deep)), JSON.stringify(deep));
});
