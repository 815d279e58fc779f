import type { Clock, RandomSource } from '../base/clock.ts';
import { isConnectionError } from './errors.ts';
import { sleep } from './transport.ts';
import type { ApiClient } from './types.ts';

/**
 * A shared probe for all informers of a process while the server is unreachable. Individual informers would either
 * cause dozens of handshakes per second or back off so far that a restarted server waits for its clients.
 */
export interface Reachability {
  /** Resolves when the server sends any response; rejects with the signal's reason. */
  wait(signal: AbortSignal): Promise<void>;
}

/** A restarted server is detected within this time plus a handshake. */
const PROBE_PERIOD_MS = 250;
const PROBE_JITTER = 0.4;
/** Waiting informers resume at random times within this interval. */
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
