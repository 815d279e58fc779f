import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { NodeId } from '../../../core/raft/index.ts';
import type { Engine } from './engine.ts';

const HAND_OVER_MS = 1000;
const HAND_OVER_TRY_MS = 150;

/** So that the others need not find out that this member is gone. */
export async function handOver(engine: Engine, clock: Clock, log: Log): Promise<void> {
  if (!engine.leads || engine.replica.alone || engine.replica.ended) return;
  const deadline = clock.monotonicMs() + HAND_OVER_MS;
  try {
    for (let tried: NodeId | undefined; engine.replica.leads && clock.monotonicMs() < deadline; ) {
      const successor = engine.replica.bestFollower((id) => id !== tried) ?? engine.replica.bestFollower();
      if (successor === undefined) return;
      engine.replica.transferLeadership(successor);
      tried = successor;
      // One that does not take it at once may be busy; the next one need not be.
      const until = clock.monotonicMs() + HAND_OVER_TRY_MS;
      while (engine.replica.leads && clock.monotonicMs() < until)
        await engine.leadershipChange(until - clock.monotonicMs());
    }
  } catch (error) {
    log.warn('leadership could not be handed over', { cause: messageOf(error) });
  }
}
