/** Steps of a member before it stops, so that no client request fails. */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { RpcListener } from '../../wire/grpc/port.ts';
import type { NodeId } from '../core/raft/index.ts';
import type { Engine } from './engine.ts';
import type { Peers } from './peers/peers.ts';

export interface LeaveDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
  readonly listener: RpcListener;
  readonly peers: () => Pick<Peers, 'serving'> | undefined;
}

const TRANSFER_MS = 1000;
const TRANSFER_TRY_MS = 150;
/** Time limit for requests in progress. Later, they fail. */
const DRAIN_MS = 1000;
/**
 * Delay in which the other members receive a message of the next leader. Until then, they forward requests to the
 * former leader.
 */
const KNOWN_MS = 100;
const POLL_MS = 5;

/** Transfers leadership, redirects clients to other members and waits until requests in progress are answered. */
export async function leaveStoreCluster(deps: LeaveDeps): Promise<void> {
  const { engine, clock, log, listener, peers } = deps;
  const began = clock.monotonicMs();
  const led = engine.leads && !engine.replica.alone && !engine.replica.ended;
  if (led) await transferLeadership(engine, clock, log);
  await listener.drain(DRAIN_MS);
  if (!led) return;
  await pause(clock, KNOWN_MS - (clock.monotonicMs() - began));
  const deadline = clock.monotonicMs() + DRAIN_MS;
  while ((peers()?.serving ?? 0) > 0 && clock.monotonicMs() < deadline) await pause(clock, POLL_MS);
}

const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimer(Math.max(0, ms), resolve);
  });

/** Transfers leadership, so that the cluster does not have to wait for an election timeout. */
async function transferLeadership(engine: Engine, clock: Clock, log: Log): Promise<void> {
  const deadline = clock.monotonicMs() + TRANSFER_MS;
  try {
    for (let tried: NodeId | undefined; engine.replica.leads && clock.monotonicMs() < deadline; ) {
      const successor = engine.replica.bestFollower((id) => id !== tried) ?? engine.replica.bestFollower();
      if (successor === undefined) return;
      engine.replica.transferLeadership(successor);
      tried = successor;
      // A follower that does not take leadership in time may be busy, so the next follower is tried.
      const until = clock.monotonicMs() + TRANSFER_TRY_MS;
      while (engine.replica.leads && clock.monotonicMs() < until)
        await engine.leadership.change(until - clock.monotonicMs());
    }
  } catch (error) {
    log.warn('leadership transfer failed', { cause: messageOf(error) });
  }
}
