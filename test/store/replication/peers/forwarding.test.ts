import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Clock } from '../../../../src/base/time/clock.ts';
import { Forwarding } from '../../../../src/store/replication/peers/forwarding.ts';
import {
  decodeNumbered,
  encodeForwarded,
  encodeNumbered,
  type Forwarded,
  Frame,
} from '../../../../src/store/replication/peers/peer-protocol.ts';

const clock: Clock = { nowMs: () => 0, monotonicMs: () => 0, setTimer: () => ({ cancel: () => {} }) };
const ANSWER: Forwarded = { redirect: false, code: 0, text: '', body: new Uint8Array(), index: 5 };

describe('request forwarding to the leader', () => {
  it('ignores responses to forwarded requests of an earlier run of this member', async () => {
    const numbers: number[] = [];
    const ask = (forwarding: Forwarding): Promise<Forwarded> =>
      forwarding.request('b', 1_000, (number) => numbers.push(number));
    const earlier = new Forwarding(clock, 2 ** 40 - 1);
    ask(earlier).catch(() => {});
    const now = new Forwarding(clock, 4_711);
    let isAnswered = false;
    const answer = ask(now).finally(() => {
      isAnswered = true;
    });
    const [old = 0, own = 0] = numbers;
    now.answered(old, 'b', ANSWER);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isAnswered, false);
    now.answered(own, 'b', ANSWER);
    assert.equal((await answer).index, 5);
    earlier.stop();
  });

  it('encodes and decodes request numbers above 32 bits', () => {
    const number = 2 ** 40 + 12_345;
    const frame = encodeNumbered(Frame.forwarded, number, encodeForwarded(ANSWER));
    assert.equal(decodeNumbered(frame).number, number);
  });
});
