/** Empties namespaces that are being deleted and lets them go. The texts are in core/reconcile/namespace. */
import type { Namespace, NamespaceCondition } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import {
  conditionsDiffer,
  isFinished,
  KUBERNETES_FINALIZER,
  planNamespaceConditions,
  type SweepResult,
} from '../../core/reconcile/namespace/plan.ts';
import type { DiscoveredKind } from './discovery.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';

/** What finalizers hold back shows no event we watch: looked at again after this. */
const RECHECK_MS = 5_000;
/** Requests of one sweep under way at a time. */
const PARALLEL = 8;

export const namespaceController: ControllerSpec = {
  name: 'namespace',
  reads: [resources.namespaces, resources.pods],
  writes: [resources.namespaces],
  uses: ['discovery', 'anyKind'],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const discover = handle.use('discovery');
  const anyKind = handle.use('anyKind');
  const namespaces = handle.informer(resources.namespaces);
  const pods = handle.informer(resources.pods);
  const namespaceClient = handle.writer(resources.namespaces);

  return (scope) => {
    const queue = scope.queue(sync, 4);
    const wake = (namespace: Namespace): void => {
      if (namespace.metadata?.deletionTimestamp !== undefined) queue.add(namespace.metadata.name ?? '');
    };
    scope.onChange(namespaces, { added: wake, updated: wake });
    scope.onChange(pods, {
      deleted: (pod) => {
        const namespace = namespaces.get(pod.metadata?.namespace ?? '');
        if (namespace !== undefined) wake(namespace);
      },
    });

    async function sync(name: string): Promise<void> {
      const cached = namespaces.get(name);
      if (cached?.metadata?.deletionTimestamp === undefined) return;
      let namespace = await live(name, cached.metadata.uid);
      if (namespace === undefined || !namespace.spec?.finalizers?.includes(KUBERNETES_FINALIZER)) return;
      if (namespace.status?.phase !== 'Terminating') {
        namespace = await namespaceClient.update(
          { ...namespace, status: { ...namespace.status, phase: 'Terminating' } },
          { subresource: 'status' },
        );
      }
      const swept = await sweep(name);
      if (isFinished(swept)) {
        await finalize(namespace);
        return;
      }
      await writeConditions(namespace, swept);
      if (swept.deletionErrors.length + swept.discoveryErrors.length > 0) {
        throw new Error([...swept.discoveryErrors, ...swept.deletionErrors].join('; '));
      }
      queue.addAfter(name, RECHECK_MS);
    }

    async function live(name: string, uid: string | undefined): Promise<Namespace | undefined> {
      try {
        const namespace = await namespaceClient.get(name);
        return namespace.metadata?.uid === uid ? namespace : undefined;
      } catch (error) {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      }
    }

    /** Pods go first: they may need the rest (secrets, network policies) to end well. Source: KEP-5080. */
    async function sweep(name: string): Promise<SweepResult> {
      const discovery = await discover(scope.signal);
      const kinds = discovery.kinds.filter(isContent);
      const result = {
        discoveryErrors: discovery.errors,
        deletionErrors: [] as string[],
        remaining: new Map<string, number>(),
        finalizers: new Map<string, number>(),
      };
      const isPods = (kind: DiscoveredKind): boolean => kind.group === '' && kind.plural === 'pods';
      await sweepKinds(name, kinds.filter(isPods), result);
      if (result.remaining.size === 0)
        await sweepKinds(
          name,
          kinds.filter((kind) => !isPods(kind)),
          result,
        );
      return result;
    }

    async function sweepKinds(
      namespace: string,
      kinds: readonly DiscoveredKind[],
      result: { deletionErrors: string[]; remaining: Map<string, number>; finalizers: Map<string, number> },
    ): Promise<void> {
      const waiting = [...kinds];
      const work = async (): Promise<void> => {
        for (let kind = waiting.shift(); kind !== undefined; kind = waiting.shift()) {
          const title = kind.group === '' ? `${kind.plural}.` : `${kind.plural}.${kind.group}`;
          try {
            for (const object of await empty(kind, namespace)) {
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

    /** Deletes everything of a kind in the namespace; resolves with what is still there. */
    async function empty(kind: DiscoveredKind, namespace: string): Promise<readonly KubeObject[]> {
      const objects = anyKind.client(kind);
      const before = await objects.list({ namespace, limit: 500 });
      if (before.items.length === 0) return [];
      if (kind.verbs.has('deletecollection')) {
        await anyKind.deleteCollection(kind, namespace);
      } else {
        for (const object of before.items) {
          if (object.metadata?.deletionTimestamp === undefined) {
            await ignoreNotFound(() => objects.delete(object.metadata?.name ?? '', namespace));
          }
        }
      }
      return (await objects.list({ namespace, limit: 500 })).items;
    }

    async function finalize(namespace: Namespace): Promise<void> {
      const finalizers = (namespace.spec?.finalizers ?? []).filter((each) => each !== KUBERNETES_FINALIZER);
      await ignoreNotFound(async () => {
        await namespaceClient.update(
          { ...namespace, spec: { ...namespace.spec, finalizers } },
          { subresource: 'finalize' },
        );
      });
    }

    async function writeConditions(namespace: Namespace, swept: SweepResult): Promise<void> {
      const existing: readonly NamespaceCondition[] = namespace.status?.conditions ?? [];
      const conditions = planNamespaceConditions(existing, swept, handle.plan().nowMs);
      if (!conditionsDiffer(existing, conditions)) return;
      await ignoreNotFound(async () => {
        await namespaceClient.update(
          { ...namespace, status: { ...namespace.status, conditions } },
          { subresource: 'status' },
        );
      });
    }
  };
}

function isContent(kind: DiscoveredKind): boolean {
  // The same objects appear in both event groups.
  if (kind.plural === 'events' && kind.group === 'events.k8s.io') return false;
  return kind.namespaced && kind.verbs.has('list') && kind.verbs.has('delete');
}
