/**
 * Deletes ResourceSlices of drivers that are no longer on this node, so that no pods are scheduled for their devices.
 * Source: pkg/kubelet/cm/dra/plugin wipeResourceSlices.
 */
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';

/** Upstream's wiping delay. A driver that is being updated registers again within this time. */
const DELAY_MS = 30_000;

export interface SliceWipingOptions {
  readonly nodeName: NodeName;
  /** Whether the driver can prepare claims. */
  readonly isPresent: (driver: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export class SliceWiping {
  readonly #options: SliceWipingOptions;
  #client: ApiClient | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: SliceWipingOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
    this.changed();
  }

  /**
   * Handles a change of the registered drivers. Also called once after start, for drivers that never register again.
   */
  changed(): void {
    if (this.#stopped || this.#client === undefined || this.#timer !== undefined) return;
    const client = this.#client;
    this.#timer = this.#options.clock.setTimer(DELAY_MS, () => {
      this.#timer = undefined;
      void this.#wipe(client).catch((error: unknown) => {
        this.#options.log.v(2, 'resource slices of absent drivers not deleted', { error: messageOf(error) });
        this.changed();
      });
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #wipe(client: ApiClient): Promise<void> {
    const { nodeName, isPresent, log } = this.#options;
    const slices = client.resource(resources.resourceSlices);
    const { items } = await slices.list({ fieldSelector: `spec.nodeName=${nodeName}` });
    for (const { metadata: { name = '', uid = '' } = {}, spec: { driver = '' } = {} } of items) {
      if (isPresent(driver)) continue;
      await slices.delete(name, undefined, { preconditions: { uid } });
      log.info('resource slice of an absent driver deleted', { slice: name, driver });
    }
  }
}
