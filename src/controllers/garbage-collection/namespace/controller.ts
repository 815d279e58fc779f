/**
 * Deletes the content of terminating namespaces and then removes their finalizer. Condition texts are in
 * controllers/garbage-collection/namespace.
 */

import type { Namespace, NamespaceCondition, Pod } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { Slots } from '../../../base/concurrency/slots.ts';
import { messageOf } from '../../../base/errors.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import type { AnyKind } from '../../framework/capabilities.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { DiscoveredKind, Discovery } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { ContentScan } from './content-scan.ts';
import {
  conditionsDiffer,
  isFinished,
  KUBERNETES_FINALIZER,
  planNamespaceConditions,
  type SweepResult,
} from './plan.ts';

/** Interval for checking objects that finalizers block, because no watched event announces their removal. */
const RECHECK_MS = 5_000;
/**
 * Maximum number of namespaces that are handled at the same time. Namespaces that wait for the list of their content
 * share one scan.
 */
const NAMESPACES = 500;
/** Maximum number of kinds that are deleted at the same time, over all namespaces. */
const PARALLEL = 16;

export const namespaceController: ControllerSpec = {
  name: 'namespace',
  reads: [resources.namespaces, resources.pods],
  writes: [resources.namespaces],
  uses: ['discovery', 'anyKind'],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    discover: handle.use('discovery'),
    anyKind: handle.use('anyKind'),
    namespaces: handle.informer(resources.namespaces),
    pods: handle.informer(resources.pods),
    namespaceClient: handle.writer(resources.namespaces),
  };

  return (scope) => new NamespaceController(handle, access, scope).start();
}

interface Access {
  readonly discover: (signal?: AbortSignal) => Promise<Discovery>;
  readonly anyKind: AnyKind;
  readonly namespaces: Informer<Namespace>;
  readonly pods: Informer<Pod>;
  readonly namespaceClient: ResourceClient<Namespace>;
}

class NamespaceController extends ControllerTerm {
  readonly #access: Access;
  readonly #scan: ContentScan;
  readonly #slots = new Slots(PARALLEL);

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, NAMESPACES);
    this.#access = access;
    const { discover, anyKind } = access;
    this.#scan = new ContentScan({
      discover,
      client: (kind) => anyKind.client(kind),
      clock: handle.clock,
      signal: scope.signal,
    });
  }

  override start(): void {
    this.scope.onChange(this.#access.namespaces, { added: this.#wake, updated: this.#wake });
    this.scope.onChange(this.#access.pods, {
      deleted: (pod) => {
        const namespace = this.#access.namespaces.get(pod.metadata?.namespace ?? '');
        if (namespace !== undefined) this.#wake(namespace);
      },
    });
  }

  readonly #wake = (namespace: Namespace): void => {
    const { name = '', deletionTimestamp } = namespace.metadata ?? {};
    if (deletionTimestamp === undefined) return;
    const { nowMs } = this.handle.plan();
    const dueMs = timeMs(deletionTimestamp, nowMs) + this.handle.options.namespaceGraceMs;
    if (dueMs <= nowMs) this.queue.add(name);
    else this.queue.addAfter(name, Math.min(dueMs - nowMs, this.handle.options.namespaceGraceMs));
  };

  protected override async sync(name: string): Promise<void> {
    const cached = this.#access.namespaces.get(name);
    if (cached?.metadata?.deletionTimestamp === undefined) return;
    const { uid } = cached.metadata;
    let namespace = await this.#slots.run(() => this.#live(name, uid));
    if (namespace === undefined || !namespace.spec?.finalizers?.includes(KUBERNETES_FINALIZER)) return;
    if (namespace.status?.phase !== 'Terminating') {
      namespace = await this.#access.namespaceClient.update(
        { ...namespace, status: { ...namespace.status, phase: 'Terminating' } },
        { subresource: 'status' },
      );
    }
    const swept = await this.#sweep(name);
    if (isFinished(swept)) {
      const finished = namespace;
      await this.#slots.run(() => this.#finalize(finished));
      return;
    }
    await this.#writeConditions(namespace, swept);
    if (swept.deletionErrors.length + swept.discoveryErrors.length > 0) {
      throw new Error([...swept.discoveryErrors, ...swept.deletionErrors].join('; '));
    }
    this.queue.addAfter(name, RECHECK_MS);
  }

  async #live(name: string, uid: string | undefined): Promise<Namespace | undefined> {
    try {
      const namespace = await this.#access.namespaceClient.get(name);
      return namespace.metadata?.uid === uid ? namespace : undefined;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  /**
   * Deletes the content of a namespace, pods first, because pods may need secrets and network policies to terminate
   * properly. Source: KEP-5080.
   */
  async #sweep(name: string): Promise<SweepResult> {
    const { kinds, discoveryErrors } = await this.#scan.find(name);
    const result = {
      discoveryErrors,
      deletionErrors: [] as string[],
      remaining: new Map<string, number>(),
      finalizers: new Map<string, number>(),
    };
    const isPods = (kind: DiscoveredKind): boolean => kind.group === '' && kind.plural === 'pods';
    const pods = [...kinds].filter(isPods);
    await this.#sweepKinds(name, pods, result);
    const others = [...kinds].filter((kind) => !isPods(kind));
    if (result.remaining.size === 0) await this.#sweepKinds(name, others, result);
    return result;
  }

  async #sweepKinds(
    namespace: string,
    kinds: readonly DiscoveredKind[],
    result: { deletionErrors: string[]; remaining: Map<string, number>; finalizers: Map<string, number> },
  ): Promise<void> {
    const work = async (kind: DiscoveredKind): Promise<void> => {
      this.scope.signal.throwIfAborted();
      const title = kind.group === '' ? `${kind.plural}.` : `${kind.plural}.${kind.group}`;
      try {
        for (const object of await this.#empty(kind, namespace)) {
          result.remaining.set(title, (result.remaining.get(title) ?? 0) + 1);
          for (const finalizer of object.metadata?.finalizers ?? []) {
            result.finalizers.set(finalizer, (result.finalizers.get(finalizer) ?? 0) + 1);
          }
        }
      } catch (error) {
        result.deletionErrors.push(`${title}: ${messageOf(error)}`);
      }
    };
    await Promise.all(kinds.map((kind) => this.#slots.run(() => work(kind))));
  }

  /** Deletes all objects of a kind in the namespace. Resolves with the objects that still exist. */
  async #empty(kind: DiscoveredKind, namespace: string): Promise<readonly KubeObject[]> {
    const objects = this.#access.anyKind.client(kind);
    if (kind.verbs.has('deletecollection')) {
      await this.#access.anyKind.deleteCollection(kind, namespace);
    } else {
      const { items } = await objects.list({ namespace, limit: 500 });
      const live = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
      await attemptAll(live, ({ metadata }) => ignoreNotFound(() => objects.delete(metadata?.name ?? '', namespace)));
    }
    return (await objects.list({ namespace, limit: 500 })).items;
  }

  async #finalize(namespace: Namespace): Promise<void> {
    const finalizers = (namespace.spec?.finalizers ?? []).filter((each) => each !== KUBERNETES_FINALIZER);
    await ignoreNotFound(async () => {
      await this.#access.namespaceClient.update(
        { ...namespace, spec: { ...namespace.spec, finalizers } },
        { subresource: 'finalize' },
      );
    });
  }

  async #writeConditions(namespace: Namespace, swept: SweepResult): Promise<void> {
    const existing: readonly NamespaceCondition[] = namespace.status?.conditions ?? [];
    const conditions = planNamespaceConditions(existing, swept, this.handle.plan().nowMs);
    if (!conditionsDiffer(existing, conditions)) return;
    await ignoreNotFound(async () => {
      await this.#access.namespaceClient.update(
        { ...namespace, status: { ...namespace.status, conditions } },
        { subresource: 'status' },
      );
    });
  }
}
