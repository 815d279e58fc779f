/**
 * Store leases of expiring objects (events). A lease per object would be as expensive as the object, so all objects
 * written within a minute share one lease and live up to a minute longer. Source: k8s.io/apiserver etcd3 lease_manager.
 */
import type { Clock } from '../../base/time/clock.ts';
import type { Store } from '../../store/port.ts';

const SHARE_MS = 60_000;
/** Maximum number of objects of one lease, all of which are deleted when the lease expires. */
const MAX_OBJECTS = 1000;

interface Bucket {
  readonly lease: Promise<string>;
  readonly untilMs: number;
  objects: number;
}

export class ExpiryLeases {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #buckets = new Map<number, Bucket>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  lease(ttlSeconds: number): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    let bucket = this.#buckets.get(ttlSeconds);
    if (bucket === undefined || bucket.untilMs <= nowMs || bucket.objects >= MAX_OBJECTS) {
      const fresh: Bucket = {
        lease: this.#store.grantLease(ttlSeconds + SHARE_MS / 1000),
        untilMs: nowMs + SHARE_MS,
        objects: 0,
      };
      fresh.lease.catch(() => {
        if (this.#buckets.get(ttlSeconds) === fresh) this.#buckets.delete(ttlSeconds);
      });
      this.#buckets.set(ttlSeconds, fresh);
      bucket = fresh;
    }
    bucket.objects += 1;
    return bucket.lease;
  }
}
