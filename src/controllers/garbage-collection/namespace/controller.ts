/**
 * Deletes the content of terminating namespaces and then removes their finalizer. Condition texts are in
 * controllers/garbage-collection/namespace.
 */

import type { Namespace, NamespaceCondition, Pod } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { timeMs } from '../../../base/times.ts';
import type { Informer, ResourceClient, WorkQueue } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import type { AnyKind } from '../../framework/capabilities.ts';
import type { DiscoveredKind, Discovery } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import {
  conditionsDiffer,
  isFinished,
  KUBERNETES_FINALIZER,
  planNamespaceConditions,
  type SweepResult,
} from './plan.ts';

/** Interval for checking objects that finalizers block, because no watched event announces their removal. */
const RECHECK_MS = 5_000;
/** Maximum number of concurrent requests of one sweep. */
const PARALLEL = 8;

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

  return (scope) => new NamespaceTerm(handle, access, scope).start();
}

interface Access {
  readonly discover: (signal?: AbortSignal) => Promise<Discovery>;
  readonly anyKind: AnyKind;
  readonly namespaces: Informer<Namespace>;
  readonly pods: Informer<Pod>;
  readonly namespaceClient: ResourceClient<Namespace>;
}

class NamespaceTerm {
  readonly #handle: ControllerHandle;
  readonly #scope: RunScope;
  readonly #access: Access;
  readonly #queue: WorkQueue;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    this.#handle = handle;
    this.#scope = scope;
    this.#access = access;
    this.#queue = scope.queue(this.#sync, 4);
  }

  start(): void {
    this.#scope.onChange(this.#access.namespaces, { added: this.#wake, updated: this.#wake });
    this.#scope.onChange(this.#access.pods, {
      deleted: (pod) => {
        const namespace = this.#access.namespaces.get(pod.metadata?.namespace ?? '');
        if (namespace !== undefined) this.#wake(namespace);
      },
    });
  }

  readonly #wake = (namespace: Namespace): void => {
    const { name = '', deletionTimestamp } = namespace.metadata ?? {};
    if (deletionTimestamp === undefined) return;
    const { nowMs } = this.#handle.plan();
    const dueMs = timeMs(deletionTimestamp, nowMs) + this.#handle.options.namespaceGraceMs;
    if (dueMs <= nowMs) this.#queue.add(name);
    else this.#queue.addAfter(name, Math.min(dueMs - nowMs, this.#handle.options.namespaceGraceMs));
  };

  readonly #sync = async (name: string): Promise<void> => {
    const cached = this.#access.namespaces.get(name);
    if (cached?.metadata?.deletionTimestamp === undefined) return;
    let namespace = await this.#live(name, cached.metadata.uid);
    if (namespace === undefined || !namespace.spec?.finalizers?.includes(KUBERNETES_FINALIZER)) return;
    if (namespace.status?.phase !== 'Terminating') {
      namespace = await this.#access.namespaceClient.update(
        { ...namespace, status: { ...namespace.status, phase: 'Terminating' } },
        { subresource: 'status' },
      );
    }
    const swept = await this.#sweep(name);
    if (isFinished(swept)) {
      await this.#finalize(namespace);
      return;
    }
    await this.#writeConditions(namespace, swept);
    if (swept.deletionErrors.length + swept.discoveryErrors.length > 0) {
      throw new Error([...swept.discoveryErrors, ...swept.deletionErrors].join('; '));
    }
    this.#queue.addAfter(name, RECHECK_MS);
  };

  async #live(name: string, uid: string | undefined): Promise<Namespace | undefined> {
    try {
      const namespace = await this.#access.namespaceClient.get(name);
      return namespace.metadata?.uid === uid ? namespace : undefined;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  /** Deletes pods first, because they may need secrets and network policies to terminate properly. Source: KEP-5080. */
  async #sweep(name: string): Promise<SweepResult> {
    const discovery = await this.#access.discover(this.#scope.signal);
    const kinds = discovery.kinds.filter(isContent);
    const result = {
      discoveryErrors: discovery.errors,
      deletionErrors: [] as string[],
      remaining: new Map<string, number>(),
      finalizers: new Map<string, number>(),
    };
    const isPods = (kind: DiscoveredKind): boolean => kind.group === '' && kind.plural === 'pods';
    await this.#sweepKinds(name, kinds.filter(isPods), result);
    if (result.remaining.size === 0)
      await this.#sweepKinds(
        name,
        kinds.filter((kind) => !isPods(kind)),
        result,
      );
    return result;
  }

  async #sweepKinds(
    namespace: string,
    kinds: readonly DiscoveredKind[],
    result: { deletionErrors: string[]; remaining: Map<string, number>; finalizers: Map<string, number> },
  ): Promise<void> {
    const waiting = [...kinds];
    const work = async (): Promise<void> => {
      for (let kind = waiting.shift(); kind !== undefined; kind = waiting.shift()) {
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
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  }

  /** Deletes all objects of a kind in the namespace. Resolves with the remaining ones. */
  async #empty(kind: DiscoveredKind, namespace: string): Promise<readonly KubeObject[]> {
    const objects = this.#access.anyKind.client(kind);
    const before = await objects.list({ namespace, limit: 500 });
    if (before.items.length === 0) return [];
    if (kind.verbs.has('deletecollection')) {
      await this.#access.anyKind.deleteCollection(kind, namespace);
    } else {
      const live = before.items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
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
    const conditions = planNamespaceConditions(existing, swept, this.#handle.plan().nowMs);
    if (!conditionsDiffer(existing, conditions)) return;
    await ignoreNotFound(async () => {
      await this.#access.namespaceClient.update(
        { ...namespace, status: { ...namespace.status, conditions } },
        { subresource: 'status' },
      );
    });
  }
}

function isContent(kind: DiscoveredKind): boolean {
  // The same objects appear in both event groups.
  if (kind.plural === 'events' && kind.group === 'events.k8s.io') return false;
  return kind.namespaced && kind.verbs.has('list') && kind.verbs.has('delete');
}
