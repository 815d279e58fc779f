import { CodedError } from '../../../base/errors.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { NodeId } from '../../core/raft/index.ts';
import type { Forwarded } from './peer-protocol.ts';

interface PendingRequest {
  readonly of: NodeId;
  readonly deadlineMs: number;
  resolve(answer: Forwarded): void;
  reject(error: Error): void;
}

const SWEEP_MS = 250;

/** Requests sent to other members that have no response yet. */
export class Forwarding {
  readonly #clock: Clock;
  readonly #pending = new Map<number, PendingRequest>();
  #lastNumber: number;
  #sweep: Timer | undefined;

  /**
   * Request numbers start at `before`, which is unique for each start of this member. Otherwise a response to an
   * earlier start's request could match a new request on a new connection.
   */
  constructor(clock: Clock, before: number) {
    this.#clock = clock;
    this.#lastNumber = before;
  }

  /** Sends a request with its number to `of` and resolves with the response. Throws CodedError 'peer-unreachable'. */
  request(of: NodeId, timeoutMs: number, send: (number: number) => void): Promise<Forwarded> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    return new Promise((resolve, reject) => {
      this.#pending.set(number, { of, deadlineMs: this.#clock.monotonicMs() + timeoutMs, resolve, reject });
      this.#arm();
      send(number);
    });
  }

  answered(number: number, by: NodeId, answer: Forwarded): void {
    const forwarded = this.#pending.get(number);
    if (forwarded?.of !== by) return;
    this.#pending.delete(number);
    forwarded.resolve(answer);
  }

  /** Rejects the requests sent to `of`, whose outcome is unknown. */
  lost(of: NodeId, why: string): void {
    for (const [number, pending] of this.#pending) if (pending.of === of) this.#fail(number, pending, why);
  }

  stop(): void {
    this.#sweep?.cancel();
    for (const [number, pending] of this.#pending) this.#fail(number, pending, 'the store is stopping');
  }

  #fail(number: number, { of, reject }: PendingRequest, why: string): void {
    this.#pending.delete(number);
    reject(new CodedError('peer-unreachable', `member ${of}: ${why}`));
  }

  #arm(): void {
    if (this.#sweep !== undefined) return;
    this.#sweep = this.#clock.setTimer(SWEEP_MS, () => {
      this.#sweep = undefined;
      const now = this.#clock.monotonicMs();
      for (const [number, pending] of this.#pending)
        if (pending.deadlineMs <= now) this.#fail(number, pending, 'no response in time');
      if (this.#pending.size > 0) this.#arm();
    });
  }
}
