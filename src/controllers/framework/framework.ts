/**
 * Framework of the controllers. A controller declares the kinds that it reads and writes, requests its informers in
 * `prepare` before anything runs, and gets a scope while this process leads. Everything opened through the scope is
 * closed when leadership ends, so a controller needs no clean-up code and can be started again.
 */
import { apiVersionOf, type KubeObject, type ResourceType } from '../../api/meta/object.ts';
import { assert, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type {
  ChangeHandler,
  EventRecorder,
  Informer,
  InformerOptions,
  Reconcile,
  ResourceClient,
  WorkQueue,
} from '../../client/types.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { type Capabilities, createCapabilities } from './capabilities.ts';
import type { PlanContext } from './core/plan-context.ts';
import type { ControllersDeps, ControllersOptions } from './deps.ts';
import { addSharedIndex } from './shared-indices.ts';

export interface Access {
  /** Kinds whose objects the controller reads from an informer. */
  readonly reads: readonly ResourceType[];
  /** Kinds whose objects the controller writes, or reads live where stale data would be harmful. */
  readonly writes: readonly ResourceType[];
  /** Further capabilities that the controller uses. */
  readonly uses?: readonly (keyof Capabilities)[];
}

export interface ControllerSpec extends Access {
  readonly name: string;
  /** Source of the controller's events. Default: `<name>-controller`. */
  readonly eventSource?: string;
  prepare(handle: ControllerHandle): ControllerRun;
}

/**
 * Starts a controller, once per term of leadership. May be asynchronous, for example for discovery. Failures are logged
 * and retried.
 */
export type ControllerRun = (scope: RunScope) => void | Promise<void>;

/**
 * What a controller may access. Use of undeclared kinds or capabilities is a programming error and throws immediately.
 */
export interface ControllerHandle {
  readonly clock: Clock;
  /** Recorder with the controller's own event source. */
  readonly recorder: EventRecorder;
  readonly options: ControllersOptions;
  readonly log: Log;
  informer<T extends KubeObject>(type: ResourceType<T>, options?: InformerOptions): Informer<T>;
  /**
   * Adds an index to a shared informer. Throws if another controller has added a different function under the same
   * name.
   */
  addIndex<T extends KubeObject>(informer: Informer<T>, name: string, valuesOf: (object: T) => readonly string[]): void;
  writer<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T>;
  use<K extends keyof Capabilities>(name: K): Capabilities[K];
  /** Current time and randomness for a planner. */
  plan(): PlanContext;
}

export interface RunScope {
  /** Aborted when leadership ends. */
  readonly signal: AbortSignal;
  onChange<T extends KubeObject>(informer: Informer<T>, handler: ChangeHandler<T>): void;
  queue(reconcile: Reconcile, workers?: number): WorkQueue;
  /** Runs `task` after `delayMs`, and again `delayMs` after the end of each run. Failures are logged. */
  every(delayMs: number, task: () => void | Promise<void>): void;
  after(delayMs: number, task: () => void | Promise<void>): void;
}

const nameOf = (type: ResourceType): string => `${type.plural}.${apiVersionOf(type)}`;

export function createHandle(
  spec: ControllerSpec,
  deps: ControllersDeps,
  options: ControllersOptions,
): ControllerHandle {
  const reads = new Set(spec.reads.map(nameOf));
  const writes = new Set(spec.writes.map(nameOf));
  const capabilities = createCapabilities(deps);
  return {
    clock: deps.clock,
    recorder: namedRecorder(deps.recorder, spec.eventSource ?? `${spec.name}-controller`),
    options,
    log: deps.log.named(spec.name),
    informer: (type, informerOptions) => {
      assert(reads.has(nameOf(type)), `controller ${spec.name} does not declare that it reads ${nameOf(type)}`);
      return deps.informers.informer(type, informerOptions);
    },
    addIndex: (informer, name, valuesOf) => addSharedIndex(informer, name, valuesOf, spec.name),
    writer: (type) => {
      assert(writes.has(nameOf(type)), `controller ${spec.name} does not declare that it writes ${nameOf(type)}`);
      return deps.client.resource(type);
    },
    use: (name) => {
      assert(spec.uses?.includes(name) === true, `controller ${spec.name} does not declare that it uses ${name}`);
      return capabilities[name];
    },
    plan: () => ({ nowMs: deps.clock.nowMs(), random: () => deps.random.random() }),
  };
}

/**
 * Recorder with the source name of one controller. All controllers share the queue and the correlation of one recorder.
 */
function namedRecorder(recorder: EventRecorder, component: string): EventRecorder {
  return {
    event: (object, type, reason, message, about) =>
      recorder.event(object, type, reason, message, { component, ...about }),
    stop: () => recorder.stop(),
  };
}

/**
 * Starts one controller for a term. The returned function stops it and resolves when its last reconcile has returned.
 */
export function startController(
  name: string,
  { clock, log }: ControllerHandle,
  random: RandomSource,
  run: ControllerRun,
): () => Promise<void> {
  const abort = new AbortController();
  const queues: WorkQueue[] = [];
  const unsubscribes: (() => void)[] = [];
  const timers = new Set<{ cancel(): void }>();
  const active = new Set<Promise<void>>();

  const attempt = (task: () => void | Promise<void>): Promise<void> => {
    const running = (async () => {
      try {
        await task();
      } catch (error) {
        if (!abort.signal.aborted) log.warn('periodic task failed', { error: messageOf(error) });
      }
    })();
    active.add(running);
    return running.finally(() => active.delete(running));
  };
  const later = (delayMs: number, task: () => void): void => {
    if (abort.signal.aborted) return;
    const timer = clock.setTimer(delayMs, () => {
      timers.delete(timer);
      if (!abort.signal.aborted) task();
    });
    timers.add(timer);
  };

  const scope: RunScope = {
    signal: abort.signal,
    onChange: (informer, handler) => {
      if (!abort.signal.aborted) unsubscribes.push(informer.onChange(handler));
    },
    queue: (reconcile, workers = 5) => {
      const queue = createWorkQueue({
        name,
        workers,
        clock,
        random,
        log,
        reconcile: async (key) => {
          if (!abort.signal.aborted) await reconcile(key);
        },
      });
      queues.push(queue);
      return queue;
    },
    every: (delayMs, task) => {
      const again = (): void => later(delayMs, () => void attempt(task).then(again));
      again();
    },
    after: (delayMs, task) => later(delayMs, () => void attempt(task)),
  };

  const begin = async (): Promise<void> => {
    try {
      await run(scope);
    } catch (error) {
      if (abort.signal.aborted) return;
      log.error('start failed; retrying', { error: messageOf(error) });
      later(1_000, () => void attempt(begin));
    }
  };
  void attempt(begin);

  return async () => {
    abort.abort();
    for (const timer of timers) timer.cancel();
    timers.clear();
    for (const unsubscribe of unsubscribes) unsubscribe();
    await Promise.all([...queues.map((queue) => queue.stop()), ...active]);
  };
}
