import type { Clock, RandomSource } from '../base/time/clock.ts';
import { sleep } from '../base/time/sleep.ts';
import { isConnectionError } from './errors.ts';
import type { ApiClient } from './types.ts';

/**
 * A probe that all informers of a process share while the server is unreachable. Separate probes would either cause
 * dozens of handshakes per second, or back off so far that clients notice a restarted server late.
 */
export interface Reachability {
  /** Resolves when the server sends any response. Rejects with the signal's reason if it is aborted. */
  wait(signal: AbortSignal): Promise<void>;
}

/** Interval of probes. A restarted server is detected within this time plus the time of a handshake. */
const PROBE_PERIOD_MS = 250;
const PROBE_JITTER = 0.4;
/** Interval in which the waiting informers continue, each at a random time. */
const RELEASE_SPREAD_MS = 100;

export function createReachability(deps: {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: RandomSource;
}): Reachability {
  const { client, clock, random } = deps;
  let probing: Promise<void> | undefined;
  let waiting = 0;

  const probe = async (): Promise<void> => {
    while (waiting > 0) {
      await sleep(clock, PROBE_PERIOD_MS * (1 + random.random() * PROBE_JITTER));
      try {
        await client.request('GET', '/version');
        return;
      } catch (error) {
        if (!isConnectionError(error)) return;
      }
    }
  };

  return {
    async wait(signal) {
      signal.throwIfAborted();
      waiting++;
      try {
        probing ??= probe().finally(() => {
          probing = undefined;
        });
        await abortable(probing, signal);
      } finally {
        waiting--;
      }
      await sleep(clock, random.random() * RELEASE_SPREAD_MS, signal);
    },
  };
}

function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
