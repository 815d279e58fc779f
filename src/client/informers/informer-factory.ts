import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import { createReachability } from '../reachability.ts';
import type { ApiClient, Informer, InformerFactory, InformerOptions } from '../types.ts';
import { ReflectingInformer } from './informer.ts';
import type { LastKnown } from './last-known.ts';

export interface InformerFactoryDeps {
  readonly client: ApiClient;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Storage for informers with the option `lastKnown`; undefined disables the option. */
  readonly lastKnown?: LastKnown | undefined;
}

/**
 * Time without a response after which the API server counts as unreachable. A running API server responds sooner, and
 * one that is starting usually does too.
 */
const AWAY_MS = 3_000;

interface Shared {
  readonly synced: Promise<void>;
  /**
   * Whether the informer has stopped because its kind was removed. If the kind is served again, a new informer is
   * created.
   */
  readonly stopped: boolean;
  start(): void;
  stop(): Promise<void>;
}

export function createInformerFactory(deps: InformerFactoryDeps): InformerFactory {
  const reachability = createReachability(deps);
  const informers = new Map<string, Shared>();
  let stopped = false;
  const { clock, lastKnown } = deps;
  const startedMs = clock.monotonicMs();
  let heard = false;
  const memory =
    lastKnown === undefined
      ? undefined
      : {
          lastKnown,
          onListed: (): void => {
            heard = true;
          },
          away: (signal: AbortSignal) =>
            sleep(clock, heard ? AWAY_MS : Math.max(0, startedMs + AWAY_MS - clock.monotonicMs()), signal),
        };
  return {
    informer<T extends KubeObject>(type: ResourceType<T>, options: InformerOptions = {}): Informer<T> {
      const key = JSON.stringify([
        type.group,
        type.version,
        type.plural,
        options.namespace,
        options.labelSelector,
        options.fieldSelector,
        options.metadataOnly === true,
        options.optional === true,
        options.lastKnown?.set,
        options.reduce === undefined ? undefined : informers.size,
      ]);
      const known = informers.get(key);
      // The key contains the type, so the stored informer has type T.
      if (known !== undefined && !known.stopped) return known as unknown as Informer<T>;
      const informer = new ReflectingInformer<T>(type, options, {
        resource: deps.client.resource(type),
        reachability,
        clock: deps.clock,
        random: deps.random,
        log: deps.log,
        memory,
      });
      informers.set(key, informer);
      return informer;
    },

    async startAndSync(signal) {
      signal?.throwIfAborted();
      if (stopped) throw new Error('the informer factory was stopped');
      const all = [...informers.values()];
      for (const informer of all) informer.start();
      const synced = Promise.all(all.map((informer) => informer.synced)).then(() => {});
      if (signal === undefined) return synced;
      await new Promise<void>((resolve, reject) => {
        const onAbort = (): void => reject(signal.reason);
        signal.addEventListener('abort', onAbort, { once: true });
        synced.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
      });
    },

    async stop() {
      stopped = true;
      await Promise.all([...informers.values()].map((informer) => informer.stop()));
    },
  };
}
