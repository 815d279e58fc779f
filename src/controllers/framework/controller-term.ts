import type { WorkQueue } from '../../client/types.ts';
import type { ControllerHandle, RunScope } from './framework.ts';

/**
 * One term of leadership of a controller with a queue of keys. When the term ends, the framework closes the queue, the
 * subscriptions and the timers of the scope, so a term has no method to stop it.
 */
export abstract class ControllerTerm {
  protected readonly handle: ControllerHandle;
  protected readonly scope: RunScope;
  protected readonly queue: WorkQueue;

  /** `workers`: number of keys that are reconciled at the same time. */
  constructor(handle: ControllerHandle, scope: RunScope, workers?: number) {
    this.handle = handle;
    this.scope = scope;
    this.queue = scope.queue((key) => this.sync(key), workers);
  }

  /** Subscribes to the informers, and adds the keys of changed objects to the queue. */
  abstract start(): void | Promise<void>;

  /** Reconciles the object of a key. A key whose reconcile rejects is retried with back-off. */
  protected abstract sync(key: string): Promise<void>;
}
