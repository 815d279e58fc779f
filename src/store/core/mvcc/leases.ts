import { MvccError } from './errors.ts';

export interface Lease {
  readonly id: bigint;
  readonly ttlSeconds: number;
  /** Monotonic milliseconds. */
  expiresAtMs: number;
  /** Remaining seconds at the last checkpoint, if they were less than the full TTL. */
  checkpoint?: number | undefined;
  /** Keys whose newest version has this lease. */
  readonly keys: Set<string>;
}

/**
 * Shortest TTL that etcd grants with its default election timeout, and the longest TTL that etcd accepts. Source: etcd
 * lease/lessor.go, embed/config.go.
 */
const MIN_TTL_SECONDS = 2;
const MAX_TTL_SECONDS = 9_000_000_000;

/** Leases of a store. Time is an argument. The caller deletes the keys of an expired lease. */
export class Leases {
  #leases = new Map<bigint, Lease>();

  get size(): number {
    return this.#leases.size;
  }

  get(id: bigint): Lease | undefined {
    return this.#leases.get(id);
  }

  /** IDs of all leases, in the order of their expiry. */
  ids(): bigint[] {
    return [...this.#leases.values()].sort((a, b) => a.expiresAtMs - b.expiresAtMs).map((lease) => lease.id);
  }

  /** TTL that a new lease would get: values below the minimum are raised to it. Throws like `grant`. */
  checked(id: bigint, ttlSeconds: number): number {
    if (ttlSeconds > MAX_TTL_SECONDS) throw new MvccError('lease-ttl-too-large');
    if (this.#leases.has(id)) throw new MvccError('lease-exists');
    return Math.max(ttlSeconds, MIN_TTL_SECONDS);
  }

  /** Throws MvccError 'lease-exists' or 'lease-ttl-too-large'. */
  grant(id: bigint, ttlSeconds: number, nowMs: number): Lease {
    const ttl = this.checked(id, ttlSeconds);
    const lease: Lease = { id, ttlSeconds: ttl, expiresAtMs: nowMs + ttl * 1000, keys: new Set() };
    this.#leases.set(id, lease);
    return lease;
  }

  /**
   * Sets the remaining time reported by another member. Unknown leases are ignored. If a checkpoint exists, the
   * remaining time is at most the checkpoint, because renewals are checkpointed as well; a restarted member reports the
   * full TTL.
   */
  setRemaining(id: bigint, remainingMs: number, nowMs: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    const most = (lease.checkpoint ?? lease.ttlSeconds) * 1000;
    lease.expiresAtMs = nowMs + Math.min(remainingMs, most);
  }

  /** Like `setRemaining`, but never shortens the lease, which may have been renewed since. */
  prolong(id: bigint, remainingMs: number, nowMs: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    const known = lease.expiresAtMs;
    this.setRemaining(id, remainingMs, nowMs);
    lease.expiresAtMs = Math.max(known, lease.expiresAtMs);
  }

  /** Extends each lease by `graceMs`, up to its full TTL. Called when a member becomes the primary lessor. */
  extend(graceMs: number, nowMs: number): void {
    for (const lease of this.#leases.values()) {
      const left = Math.max(0, lease.expiresAtMs - nowMs);
      lease.expiresAtMs = nowMs + Math.min(left + graceMs, lease.ttlSeconds * 1000);
    }
  }

  all(): IterableIterator<Lease> {
    return this.#leases.values();
  }

  become(other: Leases): void {
    this.#leases = other.#leases;
  }

  /** Restores a lease unchanged. */
  restore(lease: Lease): void {
    this.#leases.set(lease.id, lease);
  }

  remove(id: bigint): Lease | undefined {
    const lease = this.#leases.get(id);
    this.#leases.delete(id);
    return lease;
  }

  /** Renews the lease for its full TTL. Throws MvccError 'lease-not-found'. */
  renew(id: bigint, nowMs: number): Lease {
    const lease = this.#leases.get(id);
    if (lease === undefined || lease.expiresAtMs <= nowMs) throw new MvccError('lease-not-found');
    lease.expiresAtMs = nowMs + lease.ttlSeconds * 1000;
    return lease;
  }

  /** Moves `key` from one lease to another; 0 means no lease. */
  move(key: string, from: bigint, to: bigint): void {
    if (from === to) return;
    if (from !== 0n) this.#leases.get(from)?.keys.delete(key);
    if (to !== 0n) this.#leases.get(to)?.keys.add(key);
  }

  expired(nowMs: number): Lease[] {
    return [...this.#leases.values()].filter((lease) => lease.expiresAtMs <= nowMs);
  }

  /** Expiry of the next lease, in monotonic milliseconds. */
  nextExpiryMs(): number | undefined {
    let next: number | undefined;
    for (const lease of this.#leases.values()) {
      if (next === undefined || lease.expiresAtMs < next) next = lease.expiresAtMs;
    }
    return next;
  }
}
