/**
 * Controller manager: runs all controllers under one Lease. It fills the informers before it acquires the lease, so
 * that a standby can take over immediately and the first start performs both in parallel.
 */
import { ignore, messageOf } from '../../base/errors.ts';
import { type ControllersDeps, DEFAULT_OPTIONS } from '../../controllers/framework/deps.ts';
import { createHandle, startController } from '../../controllers/framework/framework.ts';
import { controllers } from './registry.ts';

export interface Controllers {
  /** Starts the informers and the leader election. Resolves when both are started, before this process leads. */
  start(): Promise<void>;
  /** Stops all controllers, releases the lease and resolves when no part of this component runs any more. */
  stop(): Promise<void>;
  /** True while this process leads. */
  readonly leading: boolean;
}

export function createControllers(deps: ControllersDeps): Controllers {
  const options = { ...DEFAULT_OPTIONS, ...deps.options };
  const stopping = new AbortController();
  let leading = false;
  let term: Promise<void> | undefined;

  return {
    get leading() {
      return leading;
    },
    async start() {
      const prepared = controllers
        .filter((spec) => !options.disabled.includes(spec.name))
        .map((spec) => {
          const handle = createHandle(spec, deps, options);
          return { spec, handle, run: spec.prepare(handle) };
        });
      const synced = deps.informers.startAndSync(stopping.signal);
      synced.catch((error: unknown) => {
        if (!stopping.signal.aborted) deps.log.error('informers did not sync', { error: messageOf(error) });
      });
      term = deps.elector.run(async (signal) => {
        await synced;
        if (signal.aborted) return;
        leading = true;
        deps.log.info('acquired leadership; starting controllers', { controllers: prepared.length });
        const stops: (() => Promise<void>)[] = [];
        for (const { spec, handle, run } of prepared) {
          if (signal.aborted) break;
          stops.push(startController(spec.name, handle, deps.random, run));
          // Controllers start in separate turns, because each of them receives all of its objects at its start.
          await new Promise<void>((resolve) => void deps.clock.setTimer(0, resolve));
        }
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener('abort', () => resolve(), { once: true });
        });
        leading = false;
        await Promise.all(stops.map((stop) => stop()));
        deps.log.info('controllers stopped');
      });
      term.catch((error: unknown) => deps.log.error('leader election ended', { error: messageOf(error) }));
    },
    async stop() {
      stopping.abort();
      await deps.elector.stop();
      await term?.catch(ignore('logged when the election ended'));
    },
  };
}
