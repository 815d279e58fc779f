import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type PacedWatch, WatchPace } from '../../../../src/apiserver/rest/watches/watch-pace.ts';

/** A clock and event loop controlled by the test. */
class Loop {
  now = 0;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  #deferred: (() => void)[] = [];
  readonly nowMs = (): number => this.now;
  readonly monotonicMs = (): number => this.now;
  readonly setTimer = (delayMs: number, callback: () => void) => {
    this.#timers.push({ atMs: this.now + delayMs, callback });
    return { cancel: () => assert.fail('no timer is cancelled') };
  };
  readonly defer = (run: () => void): void => {
    this.#deferred.push(run);
  };

  get waiting(): number {
    return this.#timers.length + this.#deferred.length;
  }

  endTurn(): void {
    for (const run of this.#deferred.splice(0)) run();
  }

  advanceTo(ms: number): void {
    this.now = ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= ms);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > ms);
    for (const { callback } of due) callback();
  }
}

const sent: { readonly watch: string; readonly bytes: Buffer }[] = [];
const texts = (): string[] => sent.splice(0).map(({ watch, bytes }) => `${watch}:${bytes.toString()}`);
const watchOf = (name: string, connection: object, source: object): PacedWatch => ({
  connection,
  source,
  credits: Number.POSITIVE_INFINITY,
  creditedMs: 0,
  put: (bytes) => sent.push({ watch: name, bytes }),
});
const setUp = () => {
  const loop = new Loop();
  sent.length = 0;
  return { loop, pace: new WatchPace(loop, loop.defer), connection: {} };
};
const line = (text: string): Buffer => Buffer.from(text);

it('sends all watch lines of one event-loop turn together at its end, without a timer', () => {
  const { loop, pace, connection } = setUp();
  const watch = watchOf('w', connection, {});
  for (const text of ['a', 'b', 'c']) pace.write(watch, line(text));
  loop.endTurn();
  assert.deepEqual(texts(), ['w:abc']);
  assert.equal(loop.waiting, 0);
  pace.write(watch, line('d'));
  loop.endTurn();
  assert.deepEqual(texts(), ['w:d']);
});

it('sends watch events of one connection in order, and events of only one kind in one event-loop turn', () => {
  const { loop, pace, connection } = setUp();
  const [namespaces, jobs] = [watchOf('ns', connection, {}), watchOf('job', connection, {})];
  pace.write(namespaces, line('1'));
  pace.write(namespaces, line('2'));
  pace.write(jobs, line('3'));
  pace.write(namespaces, line('4'));
  loop.endTurn();
  assert.deepEqual(texts(), ['ns:12']);
  loop.endTurn();
  assert.deepEqual(texts(), ['job:3']);
  loop.endTurn();
  assert.deepEqual(texts(), ['ns:4']);
  assert.equal(loop.waiting, 0);
});

it('sends a long queue of watch events at once, still in order', () => {
  const { loop, pace, connection } = setUp();
  const watches = [watchOf('a', connection, {}), watchOf('b', connection, {})];
  for (let at = 0; at < 40; at++) pace.write(watches[at % 2] as PacedWatch, line(`${at}`));
  loop.endTurn();
  assert.deepEqual(
    texts(),
    Array.from({ length: 40 }, (_, at) => `${at % 2 === 0 ? 'a' : 'b'}:${at}`),
  );
});

it('delays a watch with an unusually high event rate and all other watches of its connection', () => {
  const { loop, pace, connection } = setUp();
  const [busy, idle] = [watchOf('busy', connection, {}), watchOf('idle', connection, {})];
  const other = watchOf('other', {}, {});
  for (let at = 0; at < 50; at++) {
    pace.write(busy, line('.'));
    loop.endTurn();
  }
  assert.equal(texts().length, 50);
  pace.write(busy, line('1'));
  pace.write(busy, line('2'));
  pace.write(idle, line('3'));
  pace.write(other, line('4'));
  loop.endTurn();
  assert.deepEqual(texts(), ['other:4']);
  loop.advanceTo(5);
  loop.endTurn();
  assert.deepEqual(texts(), ['busy:12', 'idle:3']);
  loop.advanceTo(1_000);
  pace.write(busy, line('5'));
  loop.endTurn();
  assert.deepEqual(texts(), ['busy:5']);
});

it('concatenates the lines of an event-loop turn once for all watches that send the same lines', () => {
  const { loop, pace, connection } = setUp();
  const kind = {};
  const [one, two, other] = [watchOf('1', connection, kind), watchOf('2', connection, kind), watchOf('3', {}, kind)];
  const lines = ['a', 'b', 'c'].map(line);
  for (const each of lines) for (const watch of [one, two]) pace.write(watch, each);
  for (const each of lines.toReversed()) pace.write(other, each);
  loop.endTurn();
  assert.equal(sent[0]?.bytes, sent[1]?.bytes);
  assert.deepEqual(texts(), ['1:abc', '2:abc', '3:cba']);
});

it('sends the remaining lines once when a watch ends', () => {
  const { loop, pace, connection } = setUp();
  const [ending, other] = [watchOf('ending', connection, {}), watchOf('other', connection, {})];
  pace.write(ending, line('a'));
  pace.write(other, line('b'));
  pace.write(ending, line('c'));
  pace.finish(ending);
  assert.deepEqual(texts(), ['ending:a', 'ending:c']);
  for (let turn = 0; turn < 3; turn++) loop.endTurn();
  assert.deepEqual(texts(), ['other:b']);
});
