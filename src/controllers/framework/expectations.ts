/**
 * Tracks requested changes that have not appeared in the informer yet. Until these changes appear, a controller must
 * not count objects, or it would create pods twice. Source: upstream's ControllerExpectations and
 * UIDTrackingControllerExpectations.
 */
import type { Clock } from '../../base/time/clock.ts';

/**
 * Time after which an expectation expires: its event was missed, and the controller counts the objects again.
 * Upstream's value.
 */
const TIMEOUT_MS = 5 * 60_000;

interface Expected {
  creations: number;
  readonly deletions: Set<string>;
  readonly sinceMs: number;
}

export class Expectations {
  readonly #byKey = new Map<string, Expected>();
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Whether all expected changes were observed or have expired. */
  settled(key: string): boolean {
    const expected = this.#byKey.get(key);
    if (expected === undefined) return true;
    if (expected.creations <= 0 && expected.deletions.size === 0) return true;
    return this.#clock.monotonicMs() - expected.sinceMs > TIMEOUT_MS;
  }

  expectCreations(key: string, count: number): void {
    this.#byKey.set(key, { creations: count, deletions: new Set(), sinceMs: this.#clock.monotonicMs() });
  }

  /** Expects the deletion of these objects, whose UIDs are `ids`. Replaces earlier expectations of the key. */
  expectDeletions(key: string, ids: Iterable<string>): void {
    this.#byKey.set(key, { creations: 0, deletions: new Set(ids), sinceMs: this.#clock.monotonicMs() });
  }

  expect(key: string, creations: number, deletions: Iterable<string>): void {
    this.#byKey.set(key, { creations, deletions: new Set(deletions), sinceMs: this.#clock.monotonicMs() });
  }

  /** Must be called when a creation was observed or has failed. */
  creationObserved(key: string, count = 1): void {
    const expected = this.#byKey.get(key);
    if (expected !== undefined) expected.creations -= count;
  }

  deletionObserved(key: string, id: string): void {
    this.#byKey.get(key)?.deletions.delete(id);
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }
}
