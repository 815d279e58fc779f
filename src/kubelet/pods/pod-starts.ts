import type { Container, EphemeralContainer, Pod } from '../../api/generated/core/v1.ts';
import { toUid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { BackOffEntry } from '../core/pod-plan/back-off.ts';
import type { PodAction } from '../core/pod-plan/plan.ts';
import { containersOf, initContainersOf, type PodSnapshot, type WaitingReason } from '../core/pod-plan/snapshot.ts';
import { StartError } from './containers/image-puller.ts';
import type { PodExecutor } from './pod-executor.ts';
import type { Retries } from './retries.ts';
import type { PodServices } from './services.ts';

type PodStartServices = Pick<PodServices, 'clock' | 'events' | 'log' | 'puller' | 'view'>;

export type StartAction = Extract<PodAction, { type: 'createSandbox' | 'startContainer' }>;

export interface PodStartsOptions {
  readonly services: PodStartServices;
  readonly executor: PodExecutor;
  readonly retries: Retries;
  readonly pod: () => Pod;
  /** The pod with its allocated resources. */
  readonly allottedPod: () => Pod;
  /** Called when the sandbox runs and the volumes are mounted. */
  readonly onSandbox: () => void;
}

/** Name of an action's step, by which its retries are counted. */
export const stepOf = (action: StartAction): string => (action.type === 'createSandbox' ? 'sandbox' : action.name);

/** Creates the sandbox and starts containers sequentially. Keeps the failures for the next plan. */
export class PodStarts {
  readonly failures = new Map<string, WaitingReason>();
  readonly backOff = new Map<string, BackOffEntry>();
  /** Restart counts from an earlier kubelet, valid until the container starts again. */
  readonly restartCounts = new Map<string, number>();
  readonly #options: PodStartsOptions;

  constructor(options: PodStartsOptions) {
    this.#options = options;
  }

  async run(actions: readonly StartAction[], snapshot: PodSnapshot, signal: AbortSignal): Promise<void> {
    const { services, pod } = this.#options;
    const cancelPulls = (): void => services.puller.cancel(toUid(pod().metadata?.uid));
    signal.addEventListener('abort', cancelPulls, { once: true });
    try {
      for (const action of actions) {
        if (signal.aborted) return;
        if (action.type === 'createSandbox') await this.#createSandbox(action);
        else await this.#startContainer(action, snapshot, signal);
      }
    } finally {
      signal.removeEventListener('abort', cancelPulls);
    }
    await services.view.refresh();
  }

  /** Resets the back-off of containers whose image changed. */
  updated(before: Pod, after: Pod): void {
    const images = new Map(
      [...initContainersOf(before), ...containersOf(before)].map(({ name, image }) => [name, image]),
    );
    for (const { name, image } of [...initContainersOf(after), ...containersOf(after)])
      if (images.get(name) !== image) this.backOff.delete(name);
  }

  containerNamed(name: string): Container | EphemeralContainer | undefined {
    const { spec } = this.#options.allottedPod();
    return [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])].find(
      (each) => each.name === name,
    );
  }

  async #createSandbox(action: Extract<PodAction, { type: 'createSandbox' }>): Promise<void> {
    const { services, executor, retries, allottedPod, onSandbox } = this.#options;
    try {
      await executor.createSandbox(allottedPod(), action);
      retries.succeeded('sandbox');
      onSandbox();
    } catch (error) {
      retries.failed('sandbox', services.clock.monotonicMs());
      services.log.warn('pod sandbox not created', { pod: this.#name, error: messageOf(error) });
    }
  }

  async #startContainer(
    action: Extract<PodAction, { type: 'startContainer' }>,
    snapshot: PodSnapshot,
    signal: AbortSignal,
  ): Promise<void> {
    const { executor, retries, allottedPod } = this.#options;
    const container = this.containerNamed(action.name);
    const sandbox = snapshot.sandboxes.find((each) => each.id === action.sandboxId);
    if (container === undefined || sandbox === undefined) return;
    try {
      const { backOff } = this;
      await executor.startContainer({ pod: allottedPod(), container, sandbox, action, backOff, signal });
      this.failures.delete(action.name);
      retries.succeeded(action.name);
      this.restartCounts.delete(action.name);
    } catch (error) {
      if (!signal.aborted) this.#failed(action.name, error);
    }
  }

  #failed(name: string, error: unknown): void {
    const { services, retries, pod } = this.#options;
    const { waiting, retryAtMs } =
      error instanceof StartError ? error : new StartError({ reason: 'RunContainerError', message: messageOf(error) });
    this.failures.set(name, waiting);
    const { reason, message } = waiting;
    const shown = reason === 'ErrImagePull' || reason === 'ImagePullBackOff' ? reason : message;
    services.events.pod(pod(), 'Warning', 'Failed', `Error: ${shown}`, name);
    services.log.v(2, 'container not started', { pod: this.#name, container: name, reason, error: message });
    if (retryAtMs === undefined) retries.failed(name, services.clock.monotonicMs());
    else retries.failedUntil(name, retryAtMs);
  }

  get #name(): string {
    const { metadata } = this.#options.pod();
    return `${metadata?.namespace}/${metadata?.name}`;
  }
}
