import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError } from '../../../base/errors.ts';
import type { NodeId } from '../../../core/raft/index.ts';
import type { Forwarded } from './peer-protocol.ts';

interface Asked {
  readonly of: NodeId;
  readonly deadlineMs: number;
  resolve(answer: Forwarded): void;
  reject(error: Error): void;
}

const SWEEP_MS = 250;

/** Requests that other members have been asked and have not answered. */
export class Forwarding {
  readonly #clock: Clock;
  readonly #asked = new Map<number, Asked>();
  #lastNumber: number;
  #sweep: Timer | undefined;

  /**
   * Numbers begin behind `before`, which no other life of this member has: an answer to what it had asked before it lost its power can arrive on a connection
   * that it opened since, and would be taken for the answer to something else.
   */
  constructor(clock: Clock, before: number) {
    this.#clock = clock;
    this.#lastNumber = before;
  }

  /** Resolves to what `of` answers to what `send` sends with the number that it is given. Throws CodedError 'peer-unreachable'. */
  ask(of: NodeId, timeoutMs: number, send: (number: number) => void): Promise<Forwarded> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    return new Promise((resolve, reject) => {
      this.#asked.set(number, { of, deadlineMs: this.#clock.monotonicMs() + timeoutMs, resolve, reject });
      this.#arm();
      send(number);
    });
  }

  answered(number: number, by: NodeId, answer: Forwarded): void {
    const asked = this.#asked.get(number);
    if (asked?.of !== by) return;
    this.#asked.delete(number);
    asked.resolve(answer);
  }

  /** Nobody can say any more what has become of what `of` was asked. */
  lost(of: NodeId, why: string): void {
    for (const [number, asked] of this.#asked) if (asked.of === of) this.#fail(number, asked, why);
  }

  stop(): void {
    this.#sweep?.cancel();
    for (const [number, asked] of this.#asked) this.#fail(number, asked, 'the store is stopping');
  }

  #fail(number: number, { of, reject }: Asked, why: string): void {
    this.#asked.delete(number);
    reject(new CodedError('peer-unreachable', `member ${of}: ${why}`));
  }

  #arm(): void {
    if (this.#sweep !== undefined) return;
    this.#sweep = this.#clock.setTimer(SWEEP_MS, () => {
      this.#sweep = undefined;
      const now = this.#clock.monotonicMs();
      for (const [number, asked] of this.#asked)
        if (asked.deadlineMs <= now) this.#fail(number, asked, 'no answer in time');
      if (this.#asked.size > 0) this.#arm();
    });
  }
}
