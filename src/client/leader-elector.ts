import type { Lease, LeaseSpec } from 'kubernetes-types/coordination/v1';
import { isApiError } from '../api/meta/status.ts';
import { resources } from '../api/resources.ts';
import type { Clock, RandomSource } from '../base/clock.ts';
import { assert, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { isConnectionError } from './errors.ts';
import { sleep } from './transport.ts';
import type { ApiClient, LeaderElector } from './types.ts';

export interface LeaderElectorOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique among the candidates: host name plus something random. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** How long others wait after the last renewal they saw. Default 15,000. */
  readonly leaseDurationMs?: number;
  /** How long the leader tries to renew before it gives up. Default 10,000. */
  readonly renewDeadlineMs?: number;
  /** Between two tries. Default 2,000. */
  readonly retryPeriodMs?: number;
}

const JITTER = 1.2;
/** While no API server answers, no candidate can hold the lease: a short retry makes a host's start seconds shorter. */
const KNOCK_MS = 100;

/**
 * What was last seen of the lease, and when, by this machine's monotonic clock: the stamps on it come from other
 * clocks.
 */
interface Observation {
  readonly lease: Lease;
  readonly atMs: number;
}

/**
 * Leadership as a Lease, interoperable with client-go's leaderelection: same record, same timing, released on shutdown.
 * Does not fence: a leader that was stopped by its kernel may still write for a moment after it lost the lease.
 */
export function createLeaderElector(options: LeaderElectorOptions): LeaderElector {
  const leaseDurationMs = options.leaseDurationMs ?? 15_000;
  const renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
  const retryPeriodMs = options.retryPeriodMs ?? 2_000;
  assert(leaseDurationMs > renewDeadlineMs, 'the lease must outlast the renew deadline');
  assert(renewDeadlineMs > retryPeriodMs * JITTER, 'the renew deadline must allow more than one try');
  const { clock, random, log, identity, namespace, name } = options;
  const leases = options.client.resource(resources.leases);
  const lock = `${namespace}/${name}`;
  const stopping = new AbortController();
  let observed: Observation | undefined;
  let running: Promise<void> | undefined;
  /** A renewal under way; a release must not overtake it. */
  let renewal: Promise<unknown> = Promise.resolve();

  const observe = (lease: Lease): Observation => {
    const unchanged = observed !== undefined && sameRecord(observed.lease.spec, lease.spec);
    const holder = lease.spec?.holderIdentity ?? '';
    if (holder !== (observed?.lease.spec?.holderIdentity ?? '')) log.info('leader', { lock, holder });
    observed = { lease, atMs: unchanged && observed !== undefined ? observed.atMs : clock.monotonicMs() };
    return observed;
  };

  const holds = (lease: Lease | undefined): boolean => lease?.spec?.holderIdentity === identity;

  /** One try to get or renew the lease. Throws ApiError. */
  const tryHold = async (): Promise<boolean> => {
    const now = microTime(clock.nowMs());
    if (observed === undefined || !holds(observed.lease)) {
      const found = await find();
      if (found === undefined) {
        observe(await leases.create({ metadata: { name, namespace }, spec: record(undefined, now) }));
        return true;
      }
      const seen = observe(found);
      if (!holds(found) && !isFree(found.spec) && clock.monotonicMs() - seen.atMs < durationMs(found.spec))
        return false;
    }
    const base = observed?.lease ?? {};
    try {
      observe(await leases.update({ ...base, spec: record(base.spec, now) }));
    } catch (error) {
      // Somebody else wrote the lease, or deleted it: look at it again next time instead of guessing.
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) await refresh();
      throw error;
    }
    return true;
  };

  const find = async (): Promise<Lease | undefined> => {
    try {
      return await leases.get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  };

  const refresh = async (): Promise<void> => {
    const found = await find();
    if (found === undefined) observed = undefined;
    else observe(found);
  };

  const record = (before: LeaseSpec | undefined, now: string): LeaseSpec => {
    const kept = before?.holderIdentity === identity;
    return {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: kept && before?.acquireTime !== undefined ? before.acquireTime : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (before === undefined || kept ? 0 : 1),
    };
  };

  const acquire = async (): Promise<void> => {
    for (;;) {
      stopping.signal.throwIfAborted();
      let pauseMs = retryPeriodMs;
      try {
        if (await tryHold()) return;
      } catch (error) {
        if (isConnectionError(error)) pauseMs = Math.min(retryPeriodMs, KNOCK_MS);
        log.v(
          isConnectionError(error) || isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists') ? 4 : 2,
          'cannot acquire the lease',
          {
            lock,
            error: messageOf(error),
          },
        );
      }
      await sleep(clock, pauseMs * (1 + random.random() * (JITTER - 1)), stopping.signal);
    }
  };

  /** Returns when the lease could not be renewed in time; throws the signal's reason. */
  const renew = async (signal: AbortSignal): Promise<void> => {
    let renewedMs = clock.monotonicMs();
    for (;;) {
      await sleep(clock, retryPeriodMs, signal);
      const deadline = new AbortController();
      const leftMs = Math.max(0, renewedMs + renewDeadlineMs - clock.monotonicMs());
      // A request that hangs must not keep a leader in office beyond its deadline.
      const attempt = tryHold().then(
        (held) => ({ held }),
        (error: unknown) => ({ error }),
      );
      renewal = attempt;
      const result = await Promise.race([
        attempt,
        sleep(clock, leftMs, AbortSignal.any([signal, deadline.signal])).then(() => ({ expired: true })),
      ]);
      deadline.abort(new Error('answered'));
      if ('held' in result) {
        if (!result.held) return;
        renewedMs = clock.monotonicMs();
        continue;
      }
      if ('error' in result) log.warn('cannot renew the lease', { lock, error: messageOf(result.error) });
      if (clock.monotonicMs() - renewedMs >= renewDeadlineMs) return;
    }
  };

  const release = async (): Promise<void> => {
    const late = new AbortController();
    await Promise.race([renewal, sleep(clock, retryPeriodMs, late.signal).catch(() => {})]);
    late.abort();
    if (observed === undefined || !holds(observed.lease)) return;
    const now = microTime(clock.nowMs());
    const { lease } = observed;
    try {
      const released = await leases.update({
        ...lease,
        spec: {
          holderIdentity: '',
          leaseDurationSeconds: 1,
          acquireTime: now,
          renewTime: now,
          leaseTransitions: lease.spec?.leaseTransitions ?? 0,
        },
      });
      observe(released);
      log.info('released the lease', { lock });
    } catch (error) {
      log.warn('cannot release the lease, others wait until it expires', { lock, error: messageOf(error) });
    }
  };

  const term = async (lead: (signal: AbortSignal) => Promise<void>): Promise<'done' | 'lost'> => {
    await acquire();
    log.info('became leader', { lock, identity });
    const lost = new AbortController();
    const over = new AbortController();
    const signal = AbortSignal.any([lost.signal, stopping.signal]);
    const renewing = renew(AbortSignal.any([stopping.signal, over.signal])).then(
      () => {
        log.error('lost the lease', { lock, identity });
        lost.abort(new Error(`lost the lease ${lock}`));
      },
      () => {},
    );
    try {
      await lead(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      log.v(4, 'the led work ended', { lock, error: messageOf(error) });
    } finally {
      over.abort(new Error('the term is over'));
      await renewing;
      if (!lost.signal.aborted) await release();
    }
    return lost.signal.aborted ? 'lost' : 'done';
  };

  return {
    async run(lead) {
      assert(running === undefined, 'a leader elector runs once');
      running = (async () => {
        while (!stopping.signal.aborted) {
          if ((await term(lead)) === 'done') return;
        }
      })();
      try {
        await running;
      } catch (error) {
        if (!stopping.signal.aborted) throw error;
      }
    },
    async stop() {
      stopping.abort(new Error('the leader elector was stopped'));
      await running?.catch(() => {});
    },
  };
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

/** metav1.MicroTime. */
function microTime(nowMs: number): string {
  return new Date(nowMs).toISOString().replace('Z', '000Z');
}
