import type { Lease, LeaseSpec } from '../../api/generated/coordination/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { microTimestamp } from '../../base/time/timestamps.ts';
import type { ApiClient, ResourceClient } from '../types.ts';

export interface LeaseLockOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A Lease from the point of view of one candidate. The record is that of client-go. Changes of the lease are measured
 * by the local monotonic clock, because the time stamps in the lease come from clocks of other hosts.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  readonly #leases: ResourceClient<Lease>;
  readonly lock: string;
  #lease: Lease | undefined;
  #changedMs = 0;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
    this.#leases = options.client.resource(resources.leases);
    this.lock = `${options.namespace}/${options.name}`;
  }

  /** Milliseconds until another candidate may acquire the lease, according to the last known state. */
  get expiresInMs(): number {
    const leftMs = this.#changedMs + durationMs(this.#lease?.spec) - this.#options.clock.monotonicMs();
    return isFree(this.#lease?.spec) ? 0 : Math.max(0, leftMs);
  }

  /** Tries once to acquire or renew the lease. Returns false if another candidate holds it. Throws ApiError. */
  async tryHold(leaseDurationMs: number): Promise<boolean> {
    const { clock, name, namespace } = this.#options;
    const now = microTimestamp(clock.nowMs());
    if (this.#lease === undefined || !this.#isHolder(this.#lease)) {
      const found = await this.#find();
      if (found === undefined) {
        const spec = this.#record(undefined, now, leaseDurationMs);
        this.#observe(await this.#leases.create({ metadata: { name, namespace }, spec }));
        return true;
      }
      this.#observe(found);
      if (!this.#isHolder(found) && this.expiresInMs > 0) return false;
    }
    const base = this.#lease ?? {};
    try {
      this.#observe(await this.#leases.update({ ...base, spec: this.#record(base.spec, now, leaseDurationMs) }));
    } catch (error) {
      // Another candidate has written or deleted the lease. The next attempt uses its current state.
      if (!isApiError(error, 'Conflict') && !isApiError(error, 'NotFound')) throw error;
      await this.#refresh();
      const present = this.#lease;
      if (present !== undefined && !isFree(present.spec) && !this.#isHolder(present)) return false;
      throw error;
    }
    return true;
  }

  /** Releases the lease if this candidate holds it. Resolves with whether the lease was held. Throws ApiError. */
  async release(): Promise<boolean> {
    const lease = this.#lease;
    if (lease === undefined || !this.#isHolder(lease)) return false;
    const now = microTimestamp(this.#options.clock.nowMs());
    const spec: LeaseSpec = {
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: lease.spec?.leaseTransitions ?? 0,
    };
    this.#observe(await this.#leases.update({ ...lease, spec }));
    return true;
  }

  /** Watches the lease until the server ends the watch. Calls `freed` when the lease has no holder. Throws ApiError. */
  async watch(signal: AbortSignal, freed: () => void): Promise<void> {
    const { name, namespace } = this.#options;
    const resourceVersion = this.#lease?.metadata?.resourceVersion;
    const events = this.#leases.watch({
      namespace,
      fieldSelector: `metadata.name=${name}`,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      signal,
    });
    for await (const { type, object } of events) {
      if (type === 'BOOKMARK' || object.metadata?.name !== name) continue;
      if (type === 'DELETED') this.#lease = undefined;
      else this.#observe(object);
      if (isFree(this.#lease?.spec)) freed();
    }
  }

  #isHolder(lease: Lease): boolean {
    return lease.spec?.holderIdentity === this.#options.identity;
  }

  #observe(lease: Lease): void {
    const { clock, log } = this.#options;
    const before = this.#lease;
    const holder = lease.spec?.holderIdentity ?? '';
    if (holder !== (before?.spec?.holderIdentity ?? '')) log.info('lease holder changed', { lock: this.lock, holder });
    if (before === undefined || !sameRecord(before.spec, lease.spec)) this.#changedMs = clock.monotonicMs();
    this.#lease = lease;
  }

  async #find(): Promise<Lease | undefined> {
    const { name, namespace } = this.#options;
    try {
      return await this.#leases.get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async #refresh(): Promise<void> {
    const found = await this.#find();
    if (found === undefined) this.#lease = undefined;
    else this.#observe(found);
  }

  #record(before: LeaseSpec | undefined, now: string, leaseDurationMs: number): LeaseSpec {
    const { identity } = this.#options;
    const kept = before?.holderIdentity === identity;
    return {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: kept && before?.acquireTime !== undefined ? before.acquireTime : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (before === undefined || kept ? 0 : 1),
    };
  }
}

function isFree(spec: LeaseSpec | undefined): boolean {
  return (spec?.holderIdentity ?? '') === '';
}

function durationMs(spec: LeaseSpec | undefined): number {
  return (spec?.leaseDurationSeconds ?? 0) * 1000;
}

function sameRecord(a: LeaseSpec | undefined, b: LeaseSpec | undefined): boolean {
  return (
    a?.holderIdentity === b?.holderIdentity &&
    a?.renewTime === b?.renewTime &&
    a?.acquireTime === b?.acquireTime &&
    a?.leaseTransitions === b?.leaseTransitions &&
    a?.leaseDurationSeconds === b?.leaseDurationSeconds
  );
}
