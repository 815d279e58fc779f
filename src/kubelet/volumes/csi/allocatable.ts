/**
 * Keeps the volume limits of drivers in the CSINode current: calls NodeGetInfo every
 * `nodeAllocatableUpdatePeriodSeconds` of the CSIDriver. Source: KEP-4876, pkg/volume/csi csi_node_updater.go.
 */
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../../base/time/clock.ts';
import { createInformerFactory } from '../../../client/index.ts';
import type { ApiClient, Informer, InformerFactory } from '../../../client/types.ts';
import type { CsiDrivers } from './drivers.ts';

export interface AllocatableUpdatesOptions {
  readonly drivers: Pick<CsiDrivers, 'has' | 'refresh'>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

/**
 * Interval at which the driver's limit is read again. Undefined if the limit is read only at the driver's registration.
 */
export function updatePeriodMs(object: CSIDriver | undefined): number | undefined {
  const spec = object?.spec as { readonly nodeAllocatableUpdatePeriodSeconds?: number } | undefined;
  const seconds = spec?.nodeAllocatableUpdatePeriodSeconds;
  return seconds === undefined ? undefined : Math.min(seconds * 1_000, MAX_PERIOD_MS);
}

/** One day: timers do not support every number of seconds. */
const MAX_PERIOD_MS = 86_400_000;

export class AllocatableUpdates {
  readonly #options: AllocatableUpdatesOptions;
  readonly #timers = new Map<string, Timer>();
  #client: ApiClient | undefined;
  #factory: InformerFactory | undefined;
  #objects: Informer<CSIDriver> | undefined;

  constructor(options: AllocatableUpdatesOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Handles a registered driver. The first one starts the watch of CSIDriver objects. */
  registered(driver: string): void {
    this.#watch();
    this.#arm(driver);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.#factory?.stop();
  }

  #watch(): void {
    const { clock, random, log } = this.#options;
    const client = this.#client;
    if (this.#factory !== undefined || client === undefined) return;
    this.#factory = createInformerFactory({ client, clock, random, log });
    this.#objects = this.#factory.informer<CSIDriver>(resources.csiDrivers);
    const arm = ({ metadata }: CSIDriver): void => this.#arm(metadata?.name ?? '');
    this.#objects.onChange({
      added: arm,
      updated: (object, before) => {
        if (updatePeriodMs(object) !== updatePeriodMs(before)) arm(object);
      },
      deleted: arm,
    });
    this.#factory.startAndSync().catch((error: unknown) => {
      log.warn('CSIDriver objects are not watched', { error: messageOf(error) });
    });
  }

  #arm(driver: string): void {
    this.#timers.get(driver)?.cancel();
    this.#timers.delete(driver);
    const { drivers, clock, log } = this.#options;
    const periodMs = updatePeriodMs(this.#objects?.get(driver));
    if (periodMs === undefined || !drivers.has(driver)) return;
    const run = (): void => {
      if (!drivers.has(driver)) return;
      drivers
        .refresh(driver)
        .catch((error: unknown) => log.warn('limit of CSI driver not updated', { driver, error: messageOf(error) }))
        .finally(() => {
          if (this.#timers.get(driver) === timer) this.#arm(driver);
        });
    };
    const timer = clock.setTimer(periodMs, run);
    this.#timers.set(driver, timer);
  }
}
