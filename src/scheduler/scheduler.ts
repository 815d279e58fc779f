/**
 * Scheduler: watches pods without a node, decides with scheduler/core and binds pods through the API. Its informers run
 * even while another host leads, so that it can take over immediately.
 */
import { ignore, messageOf } from '../base/errors.ts';
import { createSources } from './data-sources.ts';
import type { SchedulerDeps } from './deps.ts';
import { startEpoch } from './epoch.ts';

export interface Scheduler {
  /** Starts the informers and takes part in the leader election. Resolves when both are started. */
  start(): Promise<void>;
  /** Stops scheduling and releases the lease. Resolves when no work of the scheduler remains. */
  stop(): Promise<void>;
  readonly leading: boolean;
}

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const stopping = new AbortController();
  let leading = false;
  let election: Promise<void> | undefined;
  return {
    get leading() {
      return leading;
    },
    async start() {
      const sources = createSources(deps);
      const synced = deps.informers.startAndSync(stopping.signal);
      synced.catch((error: unknown) => {
        if (!stopping.signal.aborted) deps.log.error('informers did not sync', { error: messageOf(error) });
      });
      election = deps.elector.run(async (signal) => {
        await synced;
        if (signal.aborted) return;
        leading = true;
        deps.log.info('acquired leadership; starting the scheduler');
        const stop = startEpoch(deps, sources);
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener('abort', () => resolve(), { once: true });
        });
        leading = false;
        await stop();
        deps.log.info('scheduling stopped');
      });
      election.catch((error: unknown) => deps.log.error('leader election ended', { error: messageOf(error) }));
    },
    async stop() {
      stopping.abort();
      await deps.elector.stop();
      await election?.catch(ignore('logged when the election ended'));
    },
  };
}
