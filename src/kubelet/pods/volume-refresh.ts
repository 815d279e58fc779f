import type { Pod } from '../../api/generated/core/v1.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Timer } from '../../base/time/clock.ts';
import { readySandboxes } from '../core/pod-plan/snapshot.ts';
import type { PodServices } from './services.ts';

export type VolumeRefreshServices = Pick<
  PodServices,
  'addresses' | 'clock' | 'events' | 'log' | 'tokens' | 'view' | 'volumes'
>;

const MIN_RENEWAL_MS = 1_000;
const CHECK_MS = 60_000;

/** Updates the projected files of one pod after its sources changed and before its tokens expire. */
export class VolumeRefresh {
  readonly #services: VolumeRefreshServices;
  readonly #uid: Uid;
  readonly #onDue: () => void;
  #renewal: Timer | undefined;
  /** Whether the files must be written again. */
  due = false;

  constructor(services: VolumeRefreshServices, uid: Uid, onDue: () => void) {
    this.#services = services;
    this.#uid = uid;
    this.#onDue = onDue;
  }

  /**
   * Writes the projected files again. Does nothing until the sandbox runs. On failure, returns false and leaves `due`
   * set.
   */
  async run(pod: Pod): Promise<boolean> {
    const services = this.#services;
    const ready = readySandboxes(services.view.get(this.#uid).sandboxes)[0];
    if (ready === undefined) return true;
    this.due = false;
    let done = true;
    try {
      await services.volumes.setUp(pod, services.addresses(pod, ready));
    } catch (error) {
      done = false;
      this.due = true;
      services.events.pod(pod, 'Warning', 'FailedMount', messageOf(error));
      const name = `${pod.metadata?.namespace}/${pod.metadata?.name}`;
      services.log.warn('volumes not updated', { pod: name, error: messageOf(error) });
    }
    this.awaitRenewal();
    return done;
  }

  /** Schedules the next run for the first token renewal or for the driver's next republish call. */
  awaitRenewal(): void {
    const { tokens, volumes, clock } = this.#services;
    const republishMs = volumes.republishInMs(this.#uid);
    this.#await(republishMs === undefined ? undefined : clock.monotonicMs() + republishMs, tokens);
  }

  /** Limits the wait to a minute, because a clock change may expire a token immediately. */
  #await(republishMs: number | undefined, tokens: VolumeRefreshServices['tokens']): void {
    const { clock } = this.#services;
    this.#renewal?.cancel();
    const leftMs = (): number =>
      Math.min(
        tokens.renewalInMs(this.#uid) ?? Number.POSITIVE_INFINITY,
        (republishMs ?? Number.POSITIVE_INFINITY) - clock.monotonicMs(),
      );
    if (leftMs() === Number.POSITIVE_INFINITY) return;
    this.#renewal = clock.setTimer(Math.max(MIN_RENEWAL_MS, Math.min(leftMs(), CHECK_MS)), () => {
      if (leftMs() > 0) {
        this.#await(republishMs, tokens);
        return;
      }
      this.due = true;
      this.#onDue();
    });
  }

  stop(): void {
    this.#renewal?.cancel();
  }
}
