import assert from 'node:assert/strict';
import { it } from 'node:test';
import { WatchPace } from '../../../../src/components/apiserver/rest/watch-pace.ts';

/** A clock whose timers run when it is told. */
class Clock {
  now = 0;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  readonly nowMs = (): number => this.now;
  readonly monotonicMs = (): number => this.now;
  readonly setTimer = (delayMs: number, callback: () => void) => {
    this.#timers.push({ atMs: this.now + delayMs, callback });
    return { cancel: () => assert.fail('nothing is cancelled') };
  };

  get waiting(): number {
    return this.#timers.length;
  }

  advanceTo(ms: number): void {
    this.now = ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= ms);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > ms);
    for (const { callback } of due) callback();
  }
}

/** Writes as a watch does, and notes when what left. */
class Watch {
  readonly sent: { readonly atMs: number; readonly bytes: Buffer }[] = [];
  readonly #clock: Clock;
  readonly #pace: WatchPace;
  #held: Buffer[] = [];

  constructor(clock: Clock, pace: WatchPace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  write(line: Buffer): void {
    if (this.#held.length > 0 || !this.#pace.mayWrite(this)) this.#held.push(line);
    else this.sent.push({ atMs: this.#clock.now, bytes: line });
  }

  sendHeld(): boolean {
    if (this.#held.length === 0) return false;
    this.sent.push({ atMs: this.#clock.now, bytes: this.#pace.join(this.#held) });
    this.#held = [];
    return true;
  }

  get texts(): string[] {
    return this.sent.map(({ bytes }) => bytes.toString());
  }
}

it('sends the first event at once, what follows in its pause together, and rests when nothing comes', () => {
  const clock = new Clock();
  const pace = new WatchPace(clock);
  const watch = new Watch(clock, pace);
  watch.write(Buffer.from('a'));
  assert.deepEqual(watch.texts, ['a']);
  clock.advanceTo(2);
  watch.write(Buffer.from('b'));
  watch.write(Buffer.from('c'));
  assert.deepEqual(watch.texts, ['a']);
  clock.advanceTo(5);
  assert.deepEqual(watch.texts, ['a', 'bc']);
  watch.write(Buffer.from('d'));
  clock.advanceTo(10);
  assert.deepEqual(watch.texts, ['a', 'bc', 'd']);
  clock.advanceTo(15);
  assert.equal(clock.waiting, 0);
  watch.write(Buffer.from('e'));
  assert.deepEqual(watch.texts, ['a', 'bc', 'd', 'e']);
});

it('joins the same lines once for all who hold them, and others for those who hold others', () => {
  const clock = new Clock();
  const pace = new WatchPace(clock);
  const [one, two, other] = [new Watch(clock, pace), new Watch(clock, pace), new Watch(clock, pace)];
  const lines = ['a', 'b', 'c'].map((text) => Buffer.from(text));
  for (const line of lines) for (const watch of [one, two]) watch.write(line);
  for (const line of lines.toReversed()) other.write(line);
  clock.advanceTo(5);
  assert.deepEqual(
    [one.texts, two.texts, other.texts],
    [
      ['a', 'bc'],
      ['a', 'bc'],
      ['c', 'ba'],
    ],
  );
  assert.equal(one.sent[1]?.bytes, two.sent[1]?.bytes);
});

it('does not ask those who have gone', () => {
  const clock = new Clock();
  const pace = new WatchPace(clock);
  const watch = new Watch(clock, pace);
  watch.write(Buffer.from('a'));
  watch.write(Buffer.from('b'));
  pace.forget(watch);
  clock.advanceTo(5);
  assert.deepEqual(watch.texts, ['a']);
});
