import type { Container, EphemeralContainer, ImageVolumeSource, Pod } from '../../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../../base/brand.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import {
  type ImageService,
  type ImageStatus,
  type OnPullProgress,
  type RegistryAuth,
  RuntimeError,
} from '../../../runtime/port.ts';
import { advanceBackOff, BACK_OFF, type BackOffEntry, backOffUntil, goSeconds } from '../../core/pod-plan/back-off.ts';
import type { WaitingReason } from '../../core/pod-plan/snapshot.ts';
import type { PodServices } from '../services.ts';
import { podRegistryAuth } from './registry-auth.ts';

/** Error for a container that cannot start now, with the time of the next attempt. */
export class StartError extends Error {
  readonly waiting: WaitingReason;
  /** Monotonic time. */
  readonly retryAtMs: number | undefined;
  constructor(waiting: WaitingReason, retryAtMs?: number) {
    super(`${waiting.reason}: ${waiting.message}`);
    this.name = 'StartError';
    this.waiting = waiting;
    this.retryAtMs = retryAtMs;
  }
}

/** Pulls the image of an image volume with the volume's pull policy and the pod's pull secrets. */
export function pullVolumeImage(
  services: Pick<PodServices, 'puller' | 'config' | 'credentials' | 'events'>,
  pod: Pod,
  { reference = '', pullPolicy }: ImageVolumeSource,
): Promise<ImageStatus> {
  const container = {
    name: '',
    image: reference,
    ...(pullPolicy === undefined ? {} : { imagePullPolicy: pullPolicy }),
  };
  return services.puller.ensure(
    pod,
    container,
    () => podRegistryAuth(services, pod, reference),
    (type, reason, message) => services.events.pod(pod, type, reason, message),
  );
}

export type PullEvent = (type: 'Normal' | 'Warning', reason: string, message: string) => void;

interface ImageRequest {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly secrets: () => Promise<RegistryAuth | undefined>;
  readonly event: PullEvent;
  readonly signal: AbortSignal;
}

/**
 * Pulls images by pull policy with bounded concurrency and back-off per pod and image. Source: pkg/kubelet/images
 * image_manager.
 */
export class ImagePuller {
  private readonly images: ImageService;
  private readonly clock: Clock;
  private readonly limit: number;
  private readonly isCutOff: () => boolean;
  private readonly backOff = new Map<string, BackOffEntry & { readonly cause: string }>();
  /** Pods that have requested images, until `forget`. */
  private readonly pods = new Map<Uid, AbortController>();
  private running = 0;
  private readonly queue: (() => void)[] = [];

  /** `isCutOff`: the node runs last known pods without an API server. Images on disk are then used if a pull fails. */
  constructor(
    options: { readonly images: ImageService; readonly clock: Clock; readonly maxParallel: number },
    isCutOff: () => boolean,
  ) {
    this.images = options.images;
    this.isCutOff = isCutOff;
    this.clock = options.clock;
    this.limit = Math.max(1, options.maxParallel);
  }

  /**
   * Returns an image that is present on this node. Throws `StartError` with upstream's reasons. `cancel` ends the wait,
   * but not a pull that has started, because other pods may need the image.
   */
  ensure(
    pod: Pod,
    container: Container | EphemeralContainer,
    secrets: () => Promise<RegistryAuth | undefined>,
    event: PullEvent,
  ): Promise<ImageStatus> {
    const { signal } = this.controllerOf(toUid(pod.metadata?.uid));
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(new StartError(CANCELLED));
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      const report: PullEvent = (...details) => {
        if (!signal.aborted) event(...details);
      };
      this.find({ pod, container, secrets, event: report, signal })
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  /** Ends the waits of a pod that terminates. Its later calls of `ensure` throw, until `forget`. */
  cancel(uid: Uid): void {
    this.controllerOf(uid).abort();
  }

  private controllerOf(uid: Uid): AbortController {
    const found = this.pods.get(uid) ?? new AbortController();
    this.pods.set(uid, found);
    return found;
  }

  private async find({ pod, container, secrets, event, signal }: ImageRequest): Promise<ImageStatus> {
    const image = container.image ?? '';
    const policy = container.imagePullPolicy ?? 'IfNotPresent';
    const present = await this.inspect(image);
    if (present !== undefined && policy !== 'Always') {
      event('Normal', 'Pulled', `Container image "${image}" already present on machine`);
      return present;
    }
    if (policy === 'Never') {
      throw new StartError({
        reason: 'ErrImageNeverPull',
        message: `Container image "${image}" is not present with pull policy of Never`,
      });
    }
    // An image built on this host has no registry, so a pull attempt would only prevent the pod from starting.
    if (present !== undefined && isLocal(image)) {
      event('Normal', 'Pulled', `Container image "${image}" already present on machine`);
      return present;
    }
    const key = `${pod.metadata?.uid}_${image}`;
    const entry = this.backOff.get(key);
    const nowMs = this.clock.monotonicMs();
    const until = entry === undefined ? undefined : backOffUntil(entry, entry.sinceMs, nowMs, BACK_OFF);
    if (entry !== undefined && until !== undefined) {
      event('Normal', 'BackOff', `Back-off pulling image "${image}"`);
      throw new StartError(
        {
          reason: 'ImagePullBackOff',
          message: `Back-off pulling image "${image}": ${entry.cause}`,
        },
        until,
      );
    }
    event('Normal', 'Pulling', `Pulling image "${image}"`);
    const startedMs = this.clock.monotonicMs();
    try {
      await this.acquire();
      const beganMs = this.clock.monotonicMs();
      try {
        if (signal.aborted) throw new StartError(CANCELLED);
        await this.images.pull(image, await secrets(), this.progressOf(image, event));
      } finally {
        this.release();
      }
      const status = await this.inspect(image);
      if (status === undefined) throw new RuntimeError('image-pull', `image "${image}" is missing after it was pulled`);
      const endedMs = this.clock.monotonicMs();
      event(
        'Normal',
        'Pulled',
        `Successfully pulled image "${image}" in ${goDuration(endedMs - beganMs)} (${goDuration(endedMs - startedMs)} including waiting). Image size: ${status.sizeBytes} bytes.`,
      );
      this.backOff.delete(key);
      return status;
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof RuntimeError && error.code === 'image-invalid-name') {
        throw new StartError({
          reason: 'InvalidImageName',
          message: `Failed to apply default image tag "${image}": ${error.message}`,
        });
      }
      const message = messageOf(error);
      if (present !== undefined && this.isCutOff() && error instanceof RuntimeError && error.code === 'image-pull') {
        event('Normal', 'Pulled', `Container image "${image}" already present on machine; registry not in reach`);
        return present;
      }
      event('Warning', 'Failed', `Failed to pull image "${image}": ${message}`);
      const failedMs = this.clock.monotonicMs();
      const next = advanceBackOff(entry, entry?.sinceMs ?? failedMs, failedMs, BACK_OFF);
      this.backOff.set(key, { ...next, cause: `ErrImagePull: ${message}` });
      // Retry soon: the next attempt changes the reason from ErrImagePull to ImagePullBackOff.
      throw new StartError({ reason: 'ErrImagePull', message }, failedMs + SHOW_ERROR_MS);
    }
  }

  /** Removes the state of a deleted pod. */
  forget(uid: Uid): void {
    this.pods.delete(uid);
    for (const key of this.backOff.keys()) {
      if (key.startsWith(`${uid}_`)) this.backOff.delete(key);
    }
  }

  private async inspect(image: string): Promise<ImageStatus | undefined> {
    try {
      return await this.images.status(image);
    } catch (error) {
      if (error instanceof RuntimeError && error.code === 'image-invalid-name') {
        throw new StartError({
          reason: 'InvalidImageName',
          message: `Failed to apply default image tag "${image}": ${error.message}`,
        });
      }
      throw new StartError({
        reason: 'ImageInspectError',
        message: `Failed to inspect image "${image}": ${messageOf(error)}`,
      });
    }
  }

  /** Records occasional progress events of a slow pull. */
  private progressOf(image: string, event: PullEvent): OnPullProgress {
    let reportedMs = this.clock.monotonicMs();
    return (doneBytes, totalBytes) => {
      const nowMs = this.clock.monotonicMs();
      if (nowMs - reportedMs < PROGRESS_MS) return;
      reportedMs = nowMs;
      event('Normal', 'Pulling', `Pulling image "${image}": ${mebibytes(doneBytes)} of ${mebibytes(totalBytes)} MiB`);
    };
  }

  private async acquire(): Promise<void> {
    if (this.running < this.limit) {
      this.running += 1;
      return;
    }
    await new Promise<void>((resolve) => this.queue.push(resolve));
  }

  private release(): void {
    const next = this.queue.shift();
    if (next === undefined) this.running -= 1;
    else next();
  }
}

const CANCELLED: WaitingReason = {
  reason: 'ErrImagePull',
  message: 'the pull was cancelled because the pod terminates',
};

/** How long ErrImagePull is shown before ImagePullBackOff. */
const SHOW_ERROR_MS = 2_000;

/** Interval between progress events of a pull. */
const PROGRESS_MS = 10_000;

const mebibytes = (bytes: number): string => (bytes / 1024 ** 2).toFixed(1);

const isLocal = (image: string): boolean => image.startsWith('hyperedge.local/');

function goDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(3).replace(/\.?0+$/, '')}s` : goSeconds(ms);
}
