import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FlowCounters } from '../../../../src/apiserver/core/flow-control/counters.ts';
import { FlowRequest } from '../../../../src/apiserver/core/flow-control/flow-queue.ts';
import { PriorityLevel } from '../../../../src/apiserver/core/flow-control/priority-level.ts';
import { QueueSet } from '../../../../src/apiserver/core/flow-control/queue-set.ts';
import { Choices } from '../authorization/generators.ts';
import { Oracle, type OracleRequest } from './oracle.ts';

const level = new PriorityLevel<number>({ metadata: { name: 'level' }, spec: { type: 'Exempt' } }, 0);

interface Shape {
  readonly initial: number;
  readonly final?: number;
  readonly latencyMs?: number;
}

function requestOf(id: number, { initial, final = 0, latencyMs = 0 }: Shape, nowMs: number): FlowRequest<number> {
  const work = { initialSeats: initial, finalSeats: final, additionalLatencyMs: latencyMs };
  return new FlowRequest(id, level, new FlowCounters('level', 'schema'), '', work, nowMs);
}

/** Starts the request at once if no request waits and enough seats are free; otherwise queues it. */
function arrive(set: QueueSet<number>, request: FlowRequest<number>, hand: readonly number[], nowMs: number) {
  if (set.waiting === 0 && set.fits(request.seats)) {
    set.execute(request, hand, nowMs);
    return undefined;
  }
  return set.enqueue(request, hand, nowMs);
}

describe('queues of a priority level', () => {
  it('queues of a priority level behave like a reference implementation over random histories', () => {
    for (let seed = 1; seed <= 400; seed++) {
      const choices = new Choices(seed);
      const queues = 1 + choices.below(8);
      const handSize = 1 + choices.below(queues);
      const queueLengthLimit = 1 + choices.below(5);
      const limit = choices.below(13);
      const set = new QueueSet<number>({ type: 'queue', queues, handSize, queueLengthLimit }, limit, 0);
      const oracle = new Oracle(queues, queueLengthLimit, limit, 0);
      const mine = new Map<number, FlowRequest<number>>();
      const theirs = new Map<number, OracleRequest>();
      const hands = Array.from({ length: 4 }, () =>
        choices.some(
          Array.from({ length: queues }, (_, index) => index),
          handSize,
          handSize,
        ),
      );
      const output = (what: string): string => `seed ${seed}: ${what}`;
      let executing: number[] = [];
      let waiting: number[] = [];
      let lingering: number[] = [];
      let nowMs = 0;
      for (let step = 0; step < 120; step++) {
        nowMs += choices.below(4);
        const kind = choices.below(10);
        if (kind < 5) {
          const initial = 1 + choices.below(choices.chance(0.2) ? 10 : 2);
          const final = choices.chance(0.3) ? 1 + choices.below(6) : 0;
          const latencyMs = final > 0 ? 5 : 0;
          const request = requestOf(step, { initial, final, latencyMs }, nowMs);
          const other: OracleRequest = {
            id: step,
            initial,
            final,
            latencyMs,
            arrivedMs: nowMs,
            arrivalR: 0,
            startMs: 0,
            queue: 0,
          };
          const hand = choices.one(hands);
          const direct = set.waiting === 0 && set.fits(request.seats);
          const reason = arrive(set, request, hand, nowMs);
          assert.equal(reason ?? 'waiting', oracle.arrive(other, hand, nowMs), output('arrival'));
          if (reason === undefined) {
            mine.set(step, request);
            theirs.set(step, other);
            if (direct) {
              assert.equal(oracle.dispatch(nowMs)?.id, step, output('at once'));
              executing.push(step);
            } else waiting.push(step);
          }
        } else if (kind < 8 && executing.length > 0) {
          const id = choices.one(executing);
          executing = executing.filter((each) => each !== id);
          const request = mine.get(id) as FlowRequest<number>;
          request.finishedMs = nowMs;
          if (!set.finish(request, nowMs)) lingering.push(id);
          oracle.finish(theirs.get(id) as OracleRequest, nowMs);
        } else if (kind === 8 && lingering.length > 0) {
          const id = choices.one(lingering);
          lingering = lingering.filter((each) => each !== id);
          set.release(mine.get(id) as FlowRequest<number>, nowMs);
          oracle.release(theirs.get(id) as OracleRequest, nowMs);
        } else if (kind === 9 && waiting.length > 0 && choices.chance(0.5)) {
          const id = choices.one(waiting);
          waiting = waiting.filter((each) => each !== id);
          set.reject(mine.get(id) as FlowRequest<number>, 'cancelled', nowMs);
          oracle.drop(theirs.get(id) as OracleRequest, nowMs);
        }
        for (;;) {
          const next = set.dispatch(nowMs);
          assert.equal(next?.owner, oracle.dispatch(nowMs)?.id, output(`turn at step ${step}`));
          if (next === undefined) break;
          waiting = waiting.filter((each) => each !== next.owner);
          executing.push(next.owner);
        }
        assert.equal(set.seatsInUse, oracle.inUse, output('seats in use'));
        assert.equal(set.waiting, waiting.length, output('waiting'));
        assert.equal(set.executing.length, executing.length, output('executing'));
        // The limit is exceeded only by a single request that is wider than the limit.
        if (executing.length > 1 && lingering.length === 0)
          assert.ok(set.seatsInUse <= limit, output('over the limit'));
        // No request waits while all seats are free.
        if (executing.length === 0 && lingering.length === 0)
          assert.equal(set.waiting, 0, output('idle while some wait'));
      }
    }
  });

  it('queues of a priority level are removed when idle: millions of empty queues use no memory', () => {
    const set = new QueueSet<number>({ type: 'queue', queues: 10_000_000, handSize: 1, queueLengthLimit: 5 }, 4, 0);
    for (let id = 0; id < 1000; id++) {
      const request = requestOf(id, { initial: 1 }, id);
      arrive(set, request, [id * 7919], id);
      request.finishedMs = id;
      set.finish(request, id);
    }
    assert.ok([...set.queues()].length <= 128);
    assert.equal(set.idle, true);
  });

  /** Simulates flows that always have waiting requests. Returns the seat-milliseconds of each flow. */
  function serve(options: {
    readonly hands: readonly (readonly number[])[];
    readonly backlog: readonly number[];
    readonly seats: (flow: number, choices: Choices) => number;
    readonly serviceMs: (flow: number, choices: Choices) => number;
    readonly durationMs: number;
    readonly limit: number;
  }): number[] {
    const { hands, backlog, limit, durationMs } = options;
    const choices = new Choices(7);
    const set = new QueueSet<number>({ type: 'queue', queues: 64, handSize: 4, queueLengthLimit: 1000 }, limit, 0);
    const had = hands.map(() => 0);
    const pending = hands.map(() => 0);
    const running: { readonly request: FlowRequest<number>; readonly endMs: number }[] = [];
    for (let nowMs = 0; nowMs < durationMs; nowMs++) {
      for (let at = running.length - 1; at >= 0; at--) {
        const each = running[at];
        if (each === undefined || each.endMs > nowMs) continue;
        running.splice(at, 1);
        each.request.finishedMs = nowMs;
        set.finish(each.request, nowMs);
        const flow = each.request.owner;
        had[flow] = (had[flow] ?? 0) + each.request.seats * (nowMs - each.request.startedMs);
      }
      const begin = (request: FlowRequest<number>): void => {
        const flow = request.owner;
        pending[flow] = (pending[flow] ?? 0) - 1;
        running.push({ request, endMs: nowMs + options.serviceMs(flow, choices) });
      };
      for (const [flow, hand] of hands.entries()) {
        while ((pending[flow] ?? 0) < (backlog[flow] ?? 0)) {
          const request = requestOf(flow, { initial: options.seats(flow, choices) }, nowMs);
          pending[flow] = (pending[flow] ?? 0) + 1;
          assert.equal(arrive(set, request, hand, nowMs), undefined);
          if (request.state === 'executing') begin(request);
        }
      }
      for (let next = set.dispatch(nowMs); next !== undefined; next = set.dispatch(nowMs)) begin(next);
      assert.ok(set.seatsInUse <= limit);
    }
    return had;
  }

  const apart = [[0], [1], [2]];

  it('queues of a priority level give flows equal shares of seat time, independent of the duration of requests', () => {
    const had = serve({
      hands: apart,
      backlog: [10, 10, 10],
      seats: () => 1,
      serviceMs: (flow, choices) => 1 + choices.below([40, 20, 8][flow] ?? 1),
      durationMs: 20_000,
      limit: 12,
    });
    const mean = had.reduce((all, each) => all + each, 0) / had.length;
    for (const each of had) assert.ok(Math.abs(each - mean) < 0.05 * mean, `${had.join()}`);
  });

  it('queues of a priority level give flows with wide requests and flows with narrow requests equal shares of seat time', () => {
    const had = serve({
      hands: apart,
      backlog: [10, 10, 10],
      seats: (flow) => [1, 2, 4][flow] ?? 1,
      serviceMs: (flow, choices) => 1 + choices.below([20, 10, 5][flow] ?? 1),
      durationMs: 20_000,
      limit: 24,
    });
    const mean = had.reduce((all, each) => all + each, 0) / had.length;
    for (const each of had) assert.ok(Math.abs(each - mean) < 0.15 * mean, `${had.join()}`);
  });

  it('queues of a priority level give a flow with more requests no larger share, and leave no seats unused', () => {
    const had = serve({
      hands: apart,
      backlog: [200, 12, 12],
      seats: () => 1,
      serviceMs: () => 10,
      durationMs: 10_000,
      limit: 6,
    });
    const [most = 0, second = 0, third = 0] = had;
    assert.ok(Math.abs(most - second) < 0.05 * most && Math.abs(most - third) < 0.05 * most, `${had.join()}`);
    assert.ok(most + second + third > 0.98 * 6 * 10_000, `${had.join()}`);
  });

  it('queues of a priority level dispatch a wide request despite a continuous stream of narrow requests', () => {
    const had = serve({
      hands: [[0], [1]],
      backlog: [50, 1],
      seats: (flow) => (flow === 0 ? 1 : 10),
      serviceMs: () => 5,
      durationMs: 5_000,
      limit: 10,
    });
    assert.ok((had[1] ?? 0) > 0.2 * 10 * 5_000, `${had.join()}`);
  });

  it('queues of a priority level serve a flow with few requests at once while another flow has a long queue', () => {
    const set = new QueueSet<number>({ type: 'queue', queues: 8, handSize: 1, queueLengthLimit: 1000 }, 2, 0);
    for (let id = 0; id < 300; id++) arrive(set, requestOf(id, { initial: 1 }, 0), [0], 0);
    const late = requestOf(1000, { initial: 1 }, 50);
    arrive(set, late, [1], 50);
    for (const each of [...set.executing]) {
      each.finishedMs = 50;
      set.finish(each, 50);
    }
    assert.deepEqual([set.dispatch(50)?.owner, set.dispatch(50)?.owner], [2, 1000]);
  });

  it('queues of a priority level report requests that have waited too long', () => {
    const set = new QueueSet<number>({ type: 'queue', queues: 4, handSize: 1, queueLengthLimit: 10 }, 1, 0);
    for (let id = 0; id < 6; id++) arrive(set, requestOf(id, { initial: 1 }, id * 10), [id % 3], id * 10);
    assert.equal(set.oldestMs, 10);
    const late = [...set.waitingSince(30)];
    assert.deepEqual(late.map(({ owner }) => owner).sort(), [1, 2, 3]);
    for (const each of late) set.reject(each, 'time-out', 60);
    assert.equal(set.waiting, 2);
    assert.equal(set.oldestMs, 40);
  });
});
