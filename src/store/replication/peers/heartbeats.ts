import type { Clock } from '../../../base/time/clock.ts';
import type { Message, NodeId } from '../../core/raft/index.ts';

/** Intervals after which a heartbeat counts as late. */
const LATE_HEARTBEATS = 2;

/** Detects heartbeats delayed by a busy event loop. Source: etcd raft.go, contention.TimeoutDetector. */
export class Heartbeats {
  readonly #clock: Clock;
  readonly #onLate: (to: NodeId, ms: number) => void;
  /** Time of the last heartbeat to each follower. */
  readonly #sent = new Map<NodeId, number>();

  constructor(clock: Clock, onLate: (to: NodeId, ms: number) => void) {
    this.#clock = clock;
    this.#onLate = onLate;
  }

  sent(messages: readonly Message[], heartbeatMs: number): void {
    for (const { type, to } of messages) {
      if (type !== 'heartbeat') continue;
      const now = this.#clock.monotonicMs();
      const late = now - (this.#sent.get(to) ?? now) - LATE_HEARTBEATS * heartbeatMs;
      if (late > 0) this.#onLate(to, late);
      this.#sent.set(to, now);
    }
  }

  reset(): void {
    this.#sent.clear();
  }
}
