import { isApiError } from '../../api/meta/status.ts';
import { assert, ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import { isConnectionError } from '../errors.ts';
import type { ApiClient, LeaderElector } from '../types.ts';
import type { Competition } from './competition.ts';
import { LeaseLock } from './lease-lock.ts';
import { LeaseFence, type WriteFence } from './write-fence.ts';

export interface LeaderElectorOptions {
  /** Client for the lease. It must not be fenced. */
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Identity that is unique among the candidates, such as the host name with a random suffix. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /**
   * Duration of the lease: time for which other candidates wait after the last renewal that they have observed.
   * Default: 15,000.
   */
  readonly leaseDurationMs?: number;
  /** Time after the last renewal at which the leader gives up. Default: 10,000. */
  readonly renewDeadlineMs?: number;
  /** Interval between attempts. Default: 2,000. */
  readonly retryPeriodMs?: number;
  /** If it reports a single candidate, the lease is renewed rarely, with the times of `SOLE`. */
  readonly competition?: Competition;
}

interface LeaseTimes {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

/**
 * Times for a single master. Renewals are rare, because no other candidate reads them. The next process of this master
 * has the same identity, so it does not wait for the end of the lease. Source: LeaderElectionSNOConfig in
 * pkg/config/leaderelection of openshift/library-go.
 */
const SOLE: LeaseTimes = { leaseDurationMs: 270_000, renewDeadlineMs: 240_000, retryPeriodMs: 60_000 };

export interface FencedLeaderElector extends LeaderElector {
  /** Fence for the leader's client (`FenceableClient.fenced`). It rejects writes when the lease is no longer held. */
  readonly fence: WriteFence;
}

const JITTER = 1.2;
/**
 * Retry interval while no API server responds. It is short to speed up the start of a host; no other candidate can
 * acquire the lease in this time.
 */
const KNOCK_MS = 100;

/**
 * Leader election through a Lease. It is compatible with client-go's leaderelection: same record, same timing, release
 * on shutdown. Standbys watch the lease and acquire it immediately after its release. Writes through a client with this
 * elector's `fence` are rejected from the renew deadline on, before another candidate can become leader.
 */
export function createLeaderElector(options: LeaderElectorOptions): FencedLeaderElector {
  return new LeaseElector(options);
}

class LeaseElector implements FencedLeaderElector {
  readonly fence: LeaseFence;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #log: Log;
  readonly #identity: string;
  readonly #retryPeriodMs: number;
  readonly #competition: Competition | undefined;
  readonly #times: LeaseTimes;
  /** Times with which the lease was last written. */
  #written: LeaseTimes;
  readonly #lease: LeaseLock;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** Renewal in progress. The lease must not be released before it has ended. */
  #renewal: Promise<unknown> = Promise.resolve();

  constructor(options: LeaderElectorOptions) {
    const { clock, random, log, identity, leaseDurationMs = 15_000, renewDeadlineMs = 10_000 } = options;
    this.#retryPeriodMs = options.retryPeriodMs ?? 2_000;
    this.#competition = options.competition;
    this.#times = { leaseDurationMs, renewDeadlineMs, retryPeriodMs: this.#retryPeriodMs };
    this.#written = this.#times;
    assert(leaseDurationMs > renewDeadlineMs, 'the lease must outlast the renew deadline');
    assert(renewDeadlineMs > this.#retryPeriodMs * JITTER, 'the renew deadline must allow more than one try');
    this.#clock = clock;
    this.#random = random;
    this.#log = log;
    this.#identity = identity;
    this.#lease = new LeaseLock(options);
    this.fence = new LeaseFence(clock, this.#lease.lock);
  }

  async run(lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
    assert(this.#running === undefined, 'a leader elector runs once');
    this.#running = (async () => {
      while (!this.#stopping.signal.aborted) {
        if ((await this.#term(lead)) === 'done') return;
      }
    })();
    try {
      await this.#running;
    } catch (error) {
      if (!this.#stopping.signal.aborted) throw error;
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the leader elector was stopped'));
    await this.#running?.catch(ignore('the caller of run() gets its error'));
  }

  async #hold(): Promise<boolean> {
    const sent = this.fence.now();
    const times = this.#competition?.alone === true ? SOLE : this.#times;
    const held = await this.#lease.tryHold(times.leaseDurationMs);
    if (held) {
      this.fence.renewed(sent, times.renewDeadlineMs);
      this.#written = times;
    }
    return held;
  }

  async #acquire(): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, over.signal]);
    let freed = new AbortController();
    let watching: Promise<void> | undefined;
    try {
      for (;;) {
        this.#stopping.signal.throwIfAborted();
        freed = new AbortController();
        let pauseMs = this.#retryPeriodMs;
        try {
          if (await this.#hold()) return;
          // The watch is started again when the server ends it. Without permission to watch, only polling is used.
          watching ??= this.#watch(signal, () => freed.abort()).finally(() => {
            watching = undefined;
          });
          pauseMs = Math.min(pauseMs, this.#lease.expiresInMs);
        } catch (error) {
          pauseMs = this.#noteFailure(error);
        }
        const jitter = 1 + this.#random.random() * (JITTER - 1);
        await this.#pause(pauseMs * jitter, freed.signal);
      }
    } finally {
      over.abort();
      await watching;
    }
  }

  /** Waits for `ms`. Returns early if the lease is released. */
  async #pause(ms: number, freed: AbortSignal): Promise<void> {
    await sleep(this.#clock, ms, AbortSignal.any([this.#stopping.signal, freed])).catch((reason: unknown) => {
      if (this.#stopping.signal.aborted) throw reason;
    });
  }

  async #watch(signal: AbortSignal, freed: () => void): Promise<void> {
    try {
      await this.#lease.watch(signal, freed);
    } catch (error) {
      if (!signal.aborted) this.#log.v(4, 'lease watch ended', { lock: this.#lease.lock, error: messageOf(error) });
    }
  }

  /** Logs a failed attempt. Returns the milliseconds until the next attempt. */
  #noteFailure(error: unknown): number {
    const away = isConnectionError(error);
    const expected = away || isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists');
    this.#log.v(expected ? 4 : 2, 'lease not acquired', { lock: this.#lease.lock, error: messageOf(error) });
    return away ? Math.min(this.#retryPeriodMs, KNOCK_MS) : this.#retryPeriodMs;
  }

  /**
   * Renews the lease repeatedly. Returns if the lease could not be renewed in time. Throws the reason of `signal` if it
   * is aborted.
   */
  async #renew(signal: AbortSignal): Promise<void> {
    let pauseMs = this.#written.retryPeriodMs;
    for (;;) {
      await this.#rest(Math.min(pauseMs, Math.max(0, this.fence.leftMs)), signal);
      if (this.fence.leftMs <= 0) return;
      const deadline = new AbortController();
      // The request is not awaited beyond the deadline, because a request that hangs must not prolong the leadership.
      const attempt = this.#hold().then(
        (held) => ({ held }),
        (error: unknown) => ({ error }),
      );
      this.#renewal = attempt;
      const result = await Promise.race([
        attempt,
        sleep(this.#clock, this.fence.leftMs, AbortSignal.any([signal, deadline.signal])).then(() => ({})),
      ]);
      deadline.abort(new Error('answered'));
      if ('held' in result && !result.held) return;
      if ('error' in result)
        this.#log.warn('lease not renewed', { lock: this.#lease.lock, error: messageOf(result.error) });
      if (this.fence.leftMs <= 0) return;
      pauseMs = 'held' in result ? this.#written.retryPeriodMs : this.#retryPeriodMs;
    }
  }

  /**
   * Waits for `ms`. Returns early if candidates appear or disappear, because the lease must then be written with other
   * times.
   */
  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    const early = new AbortController();
    const unsubscribe = this.#competition?.onChange(() => early.abort());
    await sleep(this.#clock, ms, AbortSignal.any([signal, early.signal]))
      .catch((reason: unknown) => {
        if (signal.aborted) throw reason;
      })
      .finally(unsubscribe);
  }

  async #release(): Promise<void> {
    const late = new AbortController();
    await Promise.race([
      this.#renewal,
      sleep(this.#clock, this.#retryPeriodMs, late.signal).catch(ignore('an aborted pause ends early')),
    ]);
    late.abort();
    const { lock } = this.#lease;
    try {
      if (await this.#lease.release()) this.#log.info('lease released', { lock });
    } catch (error) {
      this.#log.warn('lease not released; other candidates wait until it expires', { lock, error: messageOf(error) });
    }
  }

  async #term(lead: (signal: AbortSignal) => Promise<void>): Promise<'done' | 'lost'> {
    await this.#acquire();
    const { lock } = this.#lease;
    this.#log.info('became leader', { lock, identity: this.#identity });
    const lost = new AbortController();
    const over = new AbortController();
    const signal = AbortSignal.any([lost.signal, this.#stopping.signal]);
    // The renewal continues while the leader's work stops, because the last writes of that work need the lease.
    const renewing = this.#renew(over.signal).then(
      () => {
        this.#log.error('lease lost', { lock, identity: this.#identity });
        this.fence.cut();
        lost.abort(new Error(`lost the lease ${lock}`));
      },
      () => {},
    );
    try {
      if (!signal.aborted) await lead(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      this.#log.v(4, 'task of the leader ended', { lock, error: messageOf(error) });
    } finally {
      over.abort(new Error('leadership has ended'));
      await renewing;
      this.fence.close();
      if (!lost.signal.aborted) await this.#release();
    }
    return lost.signal.aborted ? 'lost' : 'done';
  }
}
