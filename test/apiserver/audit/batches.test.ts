/** Delivery of audit event batches by size and time, and the rate limit. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { batchedSink, EventBatches } from '../../../src/apiserver/audit/batches.ts';
import { ManualClock, settle } from '../../client/clocks.ts';

interface Step {
  /** Number of new events. */
  readonly offer?: number;
  /** Elapsed time. */
  readonly ms?: number;
  /** Number of completed deliveries. */
  readonly answered?: number;
  /** Sizes of the batches that were sent since the previous step. */
  readonly gone: readonly number[];
}

const CASES: ReadonlyArray<{
  readonly what: string;
  readonly settings: ConstructorParameters<typeof EventBatches>[0];
  readonly atOnce?: number;
  readonly steps: readonly Step[];
}> = [
  {
    what: 'delivers a full batch at once, and a partial batch after the maximum wait of its first event',
    settings: { bufferEvents: 100, batchEvents: 10, batchWaitMs: 1000 },
    steps: [
      { offer: 25, gone: [10, 10] },
      { ms: 999, gone: [] },
      { offer: 1, gone: [] },
      { ms: 1, gone: [6] },
      { ms: 5000, gone: [] },
      { offer: 3, gone: [] },
      { ms: 1000, gone: [3] },
    ],
  },
  {
    what: 'delivers a burst of batches, then a limited number of batches per second',
    settings: { bufferEvents: 100, batchEvents: 1, batchWaitMs: 0, throttle: { perSecond: 4, burst: 3 } },
    steps: [
      { offer: 8, gone: [1, 1, 1] },
      { ms: 249, gone: [] },
      { ms: 1, gone: [1] },
      { ms: 250, gone: [1] },
      { ms: 750, gone: [1, 1, 1] },
      { ms: 60_000, gone: [] },
      { offer: 5, gone: [1, 1, 1] },
    ],
  },
  {
    what: 'delivers events that waited for a throttle token in one batch',
    settings: { bufferEvents: 100, batchEvents: 10, batchWaitMs: 100, throttle: { perSecond: 1, burst: 1 } },
    steps: [
      { offer: 1, gone: [] },
      { ms: 100, gone: [1] },
      { offer: 4, gone: [] },
      { ms: 100, gone: [] },
      { offer: 3, gone: [] },
      { ms: 900, gone: [7] },
    ],
  },
  {
    what: 'limits the number of concurrent deliveries',
    settings: { bufferEvents: 100, batchEvents: 2, batchWaitMs: 100 },
    atOnce: 2,
    steps: [
      { offer: 8, gone: [2, 2] },
      { ms: 1000, gone: [] },
      { answered: 1, gone: [2] },
      { answered: 2, gone: [2] },
    ],
  },
];

describe('batches of audit events', () => {
  for (const { what, settings, atOnce, steps } of CASES) {
    it(what, async () => {
      const clock = new ManualClock();
      const gone: number[] = [];
      const open: (() => void)[] = [];
      const deliver = (events: readonly string[]): Promise<void> => {
        gone.push(events.length);
        return atOnce === undefined ? Promise.resolve() : new Promise((resolve) => open.push(resolve));
      };
      const batches = new EventBatches(settings, { atOnce: atOnce ?? 1000, deliver }, clock);
      for (const [at, step] of steps.entries()) {
        for (let event = 0; event < (step.offer ?? 0); event++) assert.equal(batches.offer('{}'), true);
        await clock.advance(step.ms ?? 0);
        for (const end of open.splice(0, step.answered ?? 0)) end();
        await settle();
        assert.deepEqual(gone.splice(0), step.gone, `step ${at}`);
      }
    });
  }

  it('a batch queue drops audit events beyond the limit, and delivers waiting events on close', async () => {
    const kept: string[] = [];
    let dropped = 0;
    const sink = batchedSink(
      {
        accept: (event) => {
          kept.push(event);
          return undefined;
        },
        close: async () => void kept.push('closed'),
      },
      { bufferEvents: 4, batchEvents: 2, batchWaitMs: 1000, throttle: { perSecond: 0.001, burst: 1 } },
      new ManualClock(),
      () => {
        dropped += 1;
      },
    );
    for (let at = 0; at < 10; at++) assert.equal(sink.accept(String(at)), undefined);
    assert.deepEqual([kept, dropped], [['0', '1'], 4]);
    await sink.close();
    assert.deepEqual(kept, ['0', '1', '2', '3', '4', '5', 'closed']);
  });
});
